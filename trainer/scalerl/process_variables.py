"""Temporary changes to this process's environment variables."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

VISIBLE_GPUS = "CUDA_VISIBLE_DEVICES"
"""Variable that limits the GPUs of a process."""


@contextmanager
def environment_with(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables for processes started in the block: `with environment_with({"OMP_NUM_THREADS": "2"}): ...`."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
