"""A coordinator whose unit hangs with a child of its own: python -m trainer.processes.hanging [agent]

Prints the numbers of both, then waits to be killed.
"""

import os
import pickle
import signal
import subprocess
import sys
import time

from scalerl.cluster.placement import PlacedUnit
from scalerl.processes.launch import LocalLauncher


def hang(connection):
    """As in a collective whose other ranks are gone: reads no line, and heeds no signal that can be ignored."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "1000"])
    connection.send_bytes(f"{os.getpid()} {child.pid}".encode())
    time.sleep(1000)


if __name__ == "__main__":
    body = LocalLauncher().start(PlacedUnit(role="generator", index=0, node=0, devices=()), pickle.dumps(hang))
    print(body.connect().recv_bytes().decode(), flush=True)
    if "bury" in sys.argv:
        body.kill()
        print(body.bury(), flush=True)
    time.sleep(1000)
