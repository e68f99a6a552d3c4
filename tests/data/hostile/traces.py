"""Tries to take over the supervisor: by tracing it, by its memory, by its limits."""

import ctypes
import os
import resource

libc = ctypes.CDLL(None, use_errno=True)
done = []
for pid in (1, os.getppid()):
    if pid and libc.ptrace(16, pid, 0, 0) == 0:
        done.append(f"attached to {pid}")
    try:
        open(f"/proc/{pid}/mem", "r+b").close()
        done.append(f"opened the memory of {pid}")
    except OSError:
        pass
    try:
        resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1))
        done.append(f"changed the limits of {pid}")
    except (OSError, ValueError):
        pass
print(done)
