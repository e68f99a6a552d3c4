"""Writes to standard error for ever."""

import os

while True:
    os.write(2, b"x" * 65536)
