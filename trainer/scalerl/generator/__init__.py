"""Prompts in, rollouts out. A map of the room:

generator        the protocol: what a generator is, whatever decodes
request          what is asked for and what comes of it
random_numbers   those of a request, whoever decodes it
torch_generator  the built-in one: continuous batching, weights swapped between decode steps
make             a generator for a recipe
"""
