"""Leaves a child behind in a session of its own, with the pipes still open, and exits."""

import os
import time

if os.fork() == 0:
    os.setsid()
    while True:
        time.sleep(0.01)
print("parent done", flush=True)
