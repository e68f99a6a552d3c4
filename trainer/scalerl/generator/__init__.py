"""Prompts in, rollouts out. A map of the room:

request          what is asked for and what comes of it
torch_generator  continuous batching, weights swapped between decode steps
make             a generator for a recipe
"""
