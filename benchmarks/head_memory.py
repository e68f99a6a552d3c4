"""Time and memory of a head of 150,000 words: all logits of a pass at once, and some tokens at a time.

    python benchmarks/head_memory.py [threads]

Forward and backward of log-probabilities and entropy for 2,048 tokens of width 1,024, in FP32 and with a BF16 head.
Each runs in a process of its own, which says how far its memory rose above what it held before. Writes
`results/head_memory.json`.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from record import write_record

from scalerl.model.head import Head, token_scores
from scalerl.model.size import LOGITS_AT_ONCE

TOKENS, WIDTH, VOCABULARY = 2048, 1024, 151_936
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
AT_ONCE = {"all at once": TOKENS * VOCABULARY, "in chunks": LOGITS_AT_ONCE["cpu"]}


def main(threads: int) -> None:
    found: dict[str, Any] = {}
    for precision in DTYPES:
        for way in AT_ONCE:
            command = [sys.executable, __file__, "--one", precision, way, str(threads)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found.setdefault(precision, {})[way] = json.loads(done.stdout)
        whole, chunked = found[precision].values()
        found[precision]["ratio"] = {name: chunked[name] / whole[name] for name in whole}
    sizes = {"tokens": TOKENS, "width": WIDTH, "vocabulary": VOCABULARY, "logits_at_once": AT_ONCE["in chunks"]}
    write_record("head_memory", {**sizes, **found}, threads=threads)
    print(json.dumps(found, indent=1))


def measure(precision: str, way: str, threads: int) -> dict[str, float]:
    """Seconds of forward and backward together, and MiB above what stood before, gradients included."""
    torch.set_num_threads(threads)
    LOGITS_AT_ONCE["cpu"] = AT_ONCE[way]
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(TOKENS, WIDTH, generator=generator).requires_grad_()
    weight = (torch.randn(VOCABULARY, WIDTH, generator=generator) * WIDTH**-0.5).requires_grad_()
    tokens = torch.randint(VOCABULARY, (TOKENS,), generator=generator)
    before, began = peak_mib(), time.perf_counter()
    head = Head(weight=weight, bias=None, dtype=DTYPES[precision])
    chosen, _ = token_scores(head, hidden, tokens, temperature=1.0, entropy_gradient=False)
    chosen.sum().backward()
    return {"seconds": time.perf_counter() - began, "peak_mib": peak_mib() - before}


def peak_mib() -> float:
    """Most memory that this process has held so far."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


if __name__ == "__main__":
    if "--one" in sys.argv:
        print(json.dumps(measure(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
