"""Prompts in, rollouts out. A map of the room:

generator        the base of all generators, with the queue of requests that wait for a slot
request          requests and finished rollouts
random_numbers   random numbers of a request, the same for every generator
interruption_phrase  the phrase that an interruption forces, and a rollout's tokens with it
torch_generator  the built-in generator: continuous batching, weights swapped between decode steps
vllm_generator   vLLM as a generator: rollouts completed in parts, with interruptions between parts
vllm_engine      the base of vLLM's drivers, and vLLM's arguments
vllm_steps       vLLM in this process, one step at a time
vllm_async       vLLM in its own process, driven from a thread, running ahead
vllm_together    ends vLLM's processes together
vllm_worker      loads new weights inside vLLM's workers
vllm_import      imports vLLM in the environment that it needs
conversation     an episode in progress: its turns, and other conversations of an agent that rewrites its history
episode_generator  several turns with an environment as one rollout, on any generator
make             a generator for a recipe
"""
