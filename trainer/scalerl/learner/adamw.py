"""PyTorch's AdamW, which does not import PyTorch's compiler.

Its methods are wrapped to be left alone by the compiler, and the wrappers import it: 1.2 s of processor time at the
start of every run. The functions that they wrap are the same.
"""

from inspect import unwrap

import torch


class AdamW(torch.optim.AdamW):
    """`torch.optim.AdamW`, called through its unwrapped methods."""

    add_param_group = unwrap(torch.optim.AdamW.add_param_group)
    zero_grad = unwrap(torch.optim.AdamW.zero_grad)
    state_dict = unwrap(torch.optim.AdamW.state_dict)
    load_state_dict = unwrap(torch.optim.AdamW.load_state_dict)
    step = torch.no_grad()(unwrap(torch.optim.AdamW.step))
