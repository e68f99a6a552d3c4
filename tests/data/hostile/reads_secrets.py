"""Looks for secrets and for the expected value in files, the environment, frames and other processes."""

import glob
import os
import pathlib
import sys

found = []
for path in ("/etc/shadow", "/etc/passwd", "/root/.ssh", "/work", "/home", "/proc/1/environ", "/proc/1/mem"):
    if os.path.exists(path):
        found.append(path)
frame = sys._getframe()
while frame:
    if str(8675308 + 1) in repr(frame.f_locals) + repr(frame.f_globals):
        found.append("frame")
    frame = frame.f_back
for path in glob.glob("/tmp/**", recursive=True) + glob.glob("./**", recursive=True):
    if os.path.isfile(path) and str(8675308 + 1).encode() in pathlib.Path(path).read_bytes():
        found.append(path)
for fd in range(3, 256):
    try:
        os.fstat(fd)
        if str(8675308 + 1).encode() in os.pread(fd, 1 << 20, 0):
            found.append(fd)
    except OSError:
        pass
print(found)
