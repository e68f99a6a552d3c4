"""Reads and removes through links that lead outside, and leaves a folder nobody may enter."""

import contextlib
import os
import pathlib

for name, target in (("root", "/"), ("up", "../.."), ("etc", "/etc"), ("self", "self"), ("proc", "/proc/1/root")):
    os.symlink(target, name)
got = []
for path in ("root/etc/shadow", "up/etc/shadow", "etc/shadow", "proc/etc/shadow"):
    with contextlib.suppress(OSError):
        got.append(pathlib.Path(path).read_text())
os.mkdir("shut")
os.symlink("/etc", "shut/etc")
os.chmod("shut", 0)
print(got)
