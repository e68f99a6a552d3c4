"""A process that loads torch and the kernels once, and then forks the runs of this machine, which need not load them.

    python -P -u -m ablations.pools.fork_server [load]

Each line of its input orders a run. It ends with its input, and the runs go on:

    {"run": "runs/81d2f0a95c3b", "budget_gpu_hours": 80.0, "warm_starts": "warm_starts", "visible": "0", "output": ...}

The file `output` appears when the run has started, and is locked until its process ends.

A fork copies memory, one thread, and generators of random numbers. So the server runs nothing of what it loads, which
would start threads or a GPU, and each run draws new seeds, as a new process does.
"""

import atexit
import fcntl
import gc
import json
import os
import signal
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from ablations.pools.job import train_here

LOADS_FIRST = "load"
"""The argument with which the server loads; without it, each run loads for itself."""


def main() -> None:
    order = _forked_run(has_loaded=LOADS_FIRST in sys.argv and _load())
    if order is not None:
        run, warm_starts = Path(order["run"]), Path(order["warm_starts"])
        try:
            train_here(run, order["budget_gpu_hours"], warm_starts, order["visible"])
        except Exception:
            traceback.print_exc()
    _leave()


def _load() -> bool:
    """Load what runs of our own trainer need; False if that fails. Threads that it starts would be missing in a fork:
    then the server begins again without loading."""
    try:
        from scalerl.run.preload import preload  # torch takes seconds, and a user's own program needs none of it

        preload()
    except Exception:
        traceback.print_exc()  # a run meets the same error, and says it in its own log
        return False
    if len(os.listdir("/proc/self/task")) > 1:
        print("loading has started threads, so each run loads for itself")
        os.execv(sys.executable, [word for word in sys.orig_argv if word != LOADS_FIRST])
    gc.freeze()  # a collection writes to all objects, which a run would copy by that
    return True


def _forked_run(*, has_loaded: bool) -> dict[str, Any] | None:
    """In a forked process, the order of the run to train; None in the server, at the end of its input."""
    signal.signal(signal.SIGCHLD, lambda *_: _reap())
    with open(0, "rb", buffering=0, closefd=False) as orders:  # unbuffered: a fork would have a copy of later orders
        for line in orders:
            order = json.loads(line)
            output = Path(order["output"])
            partial = output.with_suffix(".partial")
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.fork() == 0:
                _settle(descriptor, has_loaded=has_loaded)
                return order
            partial.rename(output)
            os.close(descriptor)
    return None


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _settle(output: int, *, has_loaded: bool) -> None:
    """Make a fork of the server what a new process would be, with its output in a file, which it holds open as a lock.

    In a session of its own it gets no signal from the terminal.
    """
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, copy in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, copy)
    os.close(nothing)
    if not os.environ.get("PYTHONSAFEPATH"):
        sys.path.insert(0, os.getcwd())  # as `python -m` does: a user's own module may lie there
    if has_loaded:
        from scalerl.run.preload import seed_anew

        seed_anew()


def _leave() -> None:
    """End the process as Python does, but leave what it has loaded to the system: to take that apart takes .8 s."""
    threading._shutdown()  # type: ignore  # waits for threads, as at the end of a fork of multiprocessing
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
