"""Leaves a grandchild behind that nobody waits for, without pipes, busy for ever."""

import os

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in range(3):
            os.close(fd)
        while True:
            pass
    os._exit(0)
os.wait()
print("parent done", flush=True)
