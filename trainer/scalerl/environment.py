"""Variables of this process's environment, set for a time."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def environment_with(variables: Mapping[str, str]) -> Iterator[None]:
    """Processes started inside have these variables too: `with environment_with({"OMP_NUM_THREADS": "2"}): ...`."""
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
