"""Peak rate of a device on the wall clock, measured with large matrix products."""

import time
from collections.abc import Mapping

import torch

from scalerl.cluster.device_seconds import Role
from scalerl.model.build import precision_of
from scalerl.model.device import device_of
from scalerl.recipe import ResolvedRecipe

SIZES = {"cpu": (512, 1024), "cuda": (4096, 8192)}
"""Rows of the square matrices; on a GPU a small product would time its launch."""
PRODUCTS = {"cpu": 1, "cuda": 8}
"""Products timed together."""
REPETITIONS = 4


def peak_rates(recipe: ResolvedRecipe, threads: Mapping[Role, int]) -> dict[Role, float]:
    """Peak rate of one device of each role, in the recipe's precision; equal thread counts are measured once."""
    device, dtype = device_of(recipe), precision_of(recipe).products
    rates = {number: peak_flops_per_s(number, device, dtype) for number in set(threads.values())}
    return {role: rates[number] for role, number in threads.items()}


def peak_flops_per_s(threads: int, device: torch.device, dtype: torch.dtype) -> float:
    """FLOPs per second of the fastest of a few matrix products; `threads` applies if `device` is the CPU."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return max(_rate(size, device, dtype) for size in SIZES[device.type] for _ in range(REPETITIONS))
    finally:
        torch.set_num_threads(before)


def _rate(size: int, device: torch.device, dtype: torch.dtype) -> float:
    a, b = (torch.ones(size, size, device=device, dtype=dtype) for _ in range(2))
    _finish(device)
    start = time.perf_counter()
    for _ in range(PRODUCTS[device.type]):
        torch.matmul(a, b)
    _finish(device)
    return PRODUCTS[device.type] * 2 * size**3 / (time.perf_counter() - start)


def _finish(device: torch.device) -> None:
    """Wait for a GPU to finish, since it works asynchronously."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
