"""Kernels of the built-in policy on a CPU, compiled by numba. A map of the room:

compiled     how a function is compiled, and its machine code read and written
kept_code    the folders of kept code: which one is for these sources, and which are no longer used
rows         what the kernels share: exponential, RMS norm, rotation, SiLU, rounding to BF16
blas         the BLAS that their products call, on one thread
step_tokens  the new tokens of a decode step, in blocks of lanes
lanes        rows of a cache side by side
cache        how keys and values are written, read and copied there
attend       attention of a token of a prompt, and of the tokens of all lanes
decode       one layer of a decode step
step         a whole decode step
sampling     the next token of each row from its logits
passes       one block of a Llama and its gradient, for many tokens, one after the other
train        hidden states of whole sequences with their gradient, by `passes`

In `rows` and in decode steps tokens lie side by side, `LANES` at once: activations are [width, LANES]. A product is
then W [out, in] times x [in, LANES] with the weights as they are stored, every other loop runs over a fixed number of
lanes, and no lane's numbers depend on what is in the others.

Import these modules where they are used: numba takes a quarter of a second.
"""
