"""The device itself: versions, free memory, and the rates that shares of other parts refer to."""

import sys
from importlib.metadata import PackageNotFoundError, version

import torch

from gpu_report.bound import least
from gpu_report.clock import bytes_per_s, data_sheet, matmul_flops_per_s
from gpu_report.results import Results
from gpu_report.setting import Setting
from scalerl.cluster.peak_rate import peak_flops_per_s

NEEDED = {"torch": (2, 6), "transformers": (5, 0), "vllm": (0, 32)}
"""Least versions, as in pyproject.toml."""
SHARE_OF_SHEET = 0.6
"""Share of a data sheet's rate that a healthy device reaches."""


def run(setting: Setting, results: Results) -> None:
    """Report versions, then what the device can do."""
    results.report("device.versions", too_old(), python=sys.version.split()[0], cuda=str(torch.version.cuda))
    results.report("device.kind", kind_found(setting.device), name=name_of(setting.device))
    device = torch.device(setting.device)
    dtype = torch.bfloat16 if setting.is_cuda else torch.float32
    flops, transfer = matmul_flops_per_s(device, dtype), bytes_per_s(device)
    sheet = data_sheet(device)
    for name, value, of_sheet in (
        ("device.matmul", flops, sheet and sheet[0]),
        ("device.bandwidth", transfer, sheet and sheet[1]),
    ):
        if of_sheet is None:
            why = "no data sheet of this GPU is known here" if setting.is_cuda else "not on a CPU: no data sheet"
            results.skip(name, why, value=value)
        else:
            results.report(name, value, bound=least(SHARE_OF_SHEET * of_sheet), data_sheet=of_sheet)
    own = peak_flops_per_s(torch.get_num_threads(), device, dtype)
    results.report("device.peak_rate", own / flops, measured_by_a_run=own)
    if setting.is_cuda:
        free, total = torch.cuda.mem_get_info(device)
        results.report("device.memory", free / total, total_bytes=total)
        major, minor = torch.cuda.get_device_capability(device)
        results.report("device.capability", major + minor / 10)


def too_old() -> str:
    """The packages whose version is too low, or `none`; a missing vLLM is not too old."""
    found = []
    for name, needed in NEEDED.items():
        try:
            have = version(name)
        except PackageNotFoundError:
            found += [] if name == "vllm" else [f"{name} is missing"]
            continue
        numbers = tuple(int(part) for part in have.split("+")[0].split(".")[:2] if part.isdigit())
        found += [f"{name} {have}"] if numbers < needed else []
    return ", ".join(found) or "none"


def kind_found(asked: str) -> str:
    """`as asked`, or what PyTorch lacks."""
    return "as asked" if asked == "cpu" or torch.cuda.is_available() else f"PyTorch {torch.__version__} sees no GPU"


def name_of(device: str) -> str:
    """The name that the driver gives."""
    return torch.cuda.get_device_name() if device == "cuda" and torch.cuda.is_available() else device
