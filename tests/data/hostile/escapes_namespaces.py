"""Tries to become root in namespaces of its own, to mount, and to take memory that belongs to no process."""

import ctypes

libc = ctypes.CDLL(None, use_errno=True)
done = []
for name, flags in (("user", 0x10000000), ("mount", 0x20000), ("user and pid", 0x30000000)):
    if libc.unshare(flags) == 0:
        done.append(f"unshare {name}")
if libc.mount(b"tmpfs", b"/sandbox", b"tmpfs", 0, None) == 0:
    done.append("mount")
if libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0) > 0:
    done.append("clone user")
if libc.syscall(319, b"hoard", 0) >= 0:
    done.append("memfd")
if libc.shmget(0, 1 << 30, 0o1600) >= 0:
    done.append("shmget")
print(done)
