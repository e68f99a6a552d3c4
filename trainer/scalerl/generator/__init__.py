"""Prompts in, rollouts out. A map of the room:

generator        the protocol: what a generator is, whatever decodes
request          what is asked for and what comes of it
request_queue    requests that wait for a slot, the same for every generator
random_numbers   those of a request, whoever decodes it
interruption     what an interruption forces, and the tokens of a rollout with it
torch_generator  the built-in one: continuous batching, weights swapped between decode steps
vllm_generator   vLLM as a generator: rollouts in parts that vLLM completes, interruptions between two of them
vllm_engine      what it asks of vLLM, whatever drives it, and with which arguments
vllm_steps       vLLM in this process, one step at a time
vllm_async       vLLM in a process of its own, driven from a thread: it runs ahead
vllm_together    its processes end together
vllm_worker      what runs inside vLLM's workers: new weights into the model they serve
vllm_import      vLLM's parts, imported in the environment that they need
vllm_log         what of vLLM's log is news
make             a generator for a recipe
"""
