"""Kernels of the built-in policy on a CPU, compiled by numba. A map of the room:

compiled   how a function is compiled, and where its machine code is kept
rows       what the kernels share: exponential, RMS norm, rotation, SiLU, rounding to BF16

Tokens lie side by side, `LANES` at once: activations are [width, LANES]. A product is then W [out, in] times x [in,
LANES] with the weights as they are stored, every other loop runs over a fixed number of lanes, and no lane's numbers
depend on what is in the others.

Import these modules where they are used: numba takes a quarter of a second.
"""
