"""The lock of a home folder: one command at a time submits from it."""

from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from ablations.errors import AblationsError
from ablations.home.home import Home

SUBMIT_LIMIT_S = 60.0
"""Seconds to wait for another command that submits from the same home folder."""


@contextmanager
def submitting(home: Home) -> Iterator[None]:
    """Hold the submission lock of a home folder; AblationsError if another command keeps it for a minute."""
    try:
        with FileLock(home.path / "submit.lock", timeout=SUBMIT_LIMIT_S):
            yield
    except Timeout:
        raise AblationsError(
            f"another command has held the submission lock on {home.path} for {SUBMIT_LIMIT_S:g} s; check whether "
            "it is waiting at a prompt"
        ) from None
