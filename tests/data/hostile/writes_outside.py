"""Tries to leave a file in every folder there is, and says where it could."""

import os

here = os.path.realpath(".")
written = []
for folder in ("/", "/etc", "/usr/lib", "/root", "/home", "/var/tmp", "/dev", "/dev/shm", "/proc/sys", "/run", "/work"):
    if os.path.realpath(folder) != here:
        try:
            with open(f"{folder}/left-by-hostile", "w") as file:
                file.write("x")
            written.append(folder)
        except OSError:
            pass
print(written)
