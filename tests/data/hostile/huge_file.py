"""Writes one file for ever, then claims a terabyte."""

import signal

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open("huge", "wb", buffering=0) as file:
    try:
        while file.write(b"x" * (1 << 20)):
            pass
    except OSError:
        pass
    print(file.tell() <= 16 << 20, flush=True)
    file.truncate(1 << 40)
