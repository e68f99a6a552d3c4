"""Writes to standard output for ever."""

import os

while True:
    os.write(1, b"x" * 65536)
