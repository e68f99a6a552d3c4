"""Stays below the limit in each process and far above it in all of them."""

import os
import time

for _ in range(12):
    if os.fork() == 0:
        break
hoard = bytearray(b"x") * (100 << 20)
time.sleep(1000)
