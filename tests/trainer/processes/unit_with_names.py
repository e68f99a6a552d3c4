"""A run whose one unit has shared memory with a name, in a process of its own, and is killed; prints what is left.

Run by itself, since what is to be silent is the resource tracker that starts here.
"""

import multiprocessing
import pickle
import sys
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

from scalerl.cluster.placement import PlacedUnit
from scalerl.processes.launch import LocalLauncher


def hold(connection):
    """Two names, as vLLM's workers hold them."""
    lock, block = multiprocessing.get_context("spawn").Lock(), SharedMemory(create=True, size=2**20)
    connection.send([f"sem.{lock._semlock.name.strip('/')}", block.name.strip("/")])
    connection.recv()


def unit(connection):
    """The process of the unit: the names are those of a child."""
    multiprocessing.get_context("spawn").Process(target=hold, args=(connection,)).start()
    multiprocessing.Event().wait()


def main():
    """`gone` and `held` names, before and after the end."""
    body = LocalLauncher().start(PlacedUnit(role="generator", index=0, node=0, devices=()), pickle.dumps(unit))
    paths = [Path("/dev/shm") / name for name in body.connect().recv()]
    print(*("held" if path.exists() else "gone" for path in paths))
    body.kill()
    body.bury()
    print(*("held" if path.exists() else "gone" for path in paths))


if __name__ == "__main__":
    sys.exit(main())
