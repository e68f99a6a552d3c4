"""Seconds, peak memory and rates of a device."""

import ctypes
import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import torch

DATA_SHEETS = {
    "H200": (989e12, 4.8e12),
    "H100 NVL": (835e12, 3.9e12),
    "H100 PCIe": (756e12, 2.0e12),
    "H100": (989e12, 3.35e12),
    "H800": (989e12, 3.35e12),
    "B200": (2250e12, 8.0e12),
    "A100-SXM4-80GB": (312e12, 2.04e12),
    "A100": (312e12, 1.55e12),
    "L40S": (362e12, 0.864e12),
    "L4": (121e12, 0.3e12),
    "A10G": (70e12, 0.6e12),
    "RTX 4090": (165e12, 1.01e12),
}
"""Dense BF16 FLOPs and bytes of memory a second by a part of the device's name, the longer name first."""
CLEAR_PEAK = "5"
"""What Linux takes as the order to forget a process's peak memory."""


def finish(device: torch.device) -> None:
    """Wait for the device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds_of(call: Callable[[], object], device: torch.device) -> float:
    """Wall-clock seconds of one call, the device's work included."""
    finish(device)
    began = time.perf_counter()
    call()
    finish(device)
    return time.perf_counter() - began


def median_seconds(call: Callable[[], object], device: torch.device, *, rounds: int) -> float:
    """Median seconds of some calls after one that does not count."""
    call()
    return statistics.median(seconds_of(call, device) for _ in range(rounds))


def data_sheet(device: torch.device) -> tuple[float, float] | None:
    """BF16 FLOPs and bytes a second of a known GPU."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((rates for part, rates in DATA_SHEETS.items() if part in name), None)


def matmul_flops_per_s(device: torch.device, dtype: torch.dtype) -> float:
    """FLOPs a second of the fastest of some large square products."""
    size, repeats = (8192, 10) if device.type == "cuda" else (1024, 2)
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))

    def products() -> None:
        for _ in range(repeats):
            torch.matmul(a, b)

    products()
    return 2 * size**3 * repeats / min(seconds_of(products, device) for _ in range(5))


def bytes_per_s(device: torch.device) -> float:
    """Bytes a second read and written by the fastest of some large copies."""
    source = torch.ones(2**28 if device.type == "cuda" else 2**24, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    target.copy_(source)
    best = min(seconds_of(lambda: target.copy_(source), device) for _ in range(5))
    return 2 * source.numel() * source.element_size() / best


def peak_rates(device: torch.device) -> tuple[float, float]:
    """FLOPs and bytes a second that shares refer to: of the data sheet, or measured (on a CPU in FP32)."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    return data_sheet(device) or (matmul_flops_per_s(device, dtype), bytes_per_s(device))


@dataclass
class Peak:
    """Most bytes above those at the beginning."""

    total: int = 0


@contextmanager
def peak_bytes(device: torch.device) -> Iterator[Peak]:
    """Context whose most memory is measured: allocated on a GPU, resident in this process on a CPU."""
    found = Peak()
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        yield found
        finish(device)
        found.total = torch.cuda.max_memory_allocated(device) - before
        return
    ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text(CLEAR_PEAK)
    before = _own_bytes("VmRSS")
    yield found
    found.total = _own_bytes("VmHWM") - before


def _own_bytes(name: str) -> int:
    """A size that Linux gives for this process."""
    return int(Path(f"/proc/{os.getpid()}/status").read_text().split(f"{name}:")[1].split()[0]) * 1024
