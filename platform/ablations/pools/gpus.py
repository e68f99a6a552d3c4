"""The GPUs of this machine, dealt out to runs.

submitit hides all GPUs from a local job that asks for none, so each job is told which are its own.
"""

import os
import subprocess
from collections import Counter
from collections.abc import Iterable
from itertools import takewhile

from scalerl.environment import VISIBLE_GPUS


def gpus_here() -> tuple[str, ...]:
    """Names of the GPUs that this process may use: those in CUDA_VISIBLE_DEVICES before the first that names none, such
    as -1, else the indices that `nvidia-smi` lists; none if the command is missing."""
    named = os.environ.get(VISIBLE_GPUS)
    if named is not None:
        return tuple(takewhile(lambda name: name and not name.startswith("-"), named.split(",")))
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(map(str, range(sum(line.startswith("GPU ") for line in done.stdout.splitlines()))))


def dealt(gpus: tuple[str, ...], number: int, in_use: Iterable[str]) -> tuple[str, ...]:
    """At most `number` GPUs for one more run, those with the fewest runs first.

    >>> dealt(("0", "1", "2"), 2, in_use=["0"])
    ("1", "2")
    """
    runs = Counter(in_use)
    return tuple(sorted(sorted(gpus, key=lambda gpu: runs[gpu])[:number], key=gpus.index))
