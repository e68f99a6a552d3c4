"""The program of a run's process on a node: trains the run, or serves as the agent of an additional node.

    python -m ablations.ray.job ATTEMPT NODE HOST NICENESS      HOST is an address of node 0

It inherits from a worker of Ray and first undoes what that process is: of low priority, the first to be killed when
memory is short, and with blocked signals. NICENESS is that of the daemon that starts Ray's workers.
"""

import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

from ablations.pools.job import attend_run, train_run
from ablations.ray.order import read_order
from scalerl.cluster.placement import NodeOfRun


def main(attempt: Path, node: int, host: str, niceness: int) -> None:
    """Do this node's part of the attempt."""
    be_an_ordinary_process(niceness)
    order = read_order(attempt)
    place = NodeOfRun(
        node=node, nodes=order.share.nodes, allocation=order.allocation, name=socket.gethostname(), hosts=(host,)
    )
    if node:
        attend_run(order.run, place)
    else:
        train_run(order.run, order.budget_gpu_hours, order.warm_starts, place)


def be_an_ordinary_process(niceness: int) -> None:
    """Undo Ray's changes to its workers as far as this user may; only root can lower the niceness again."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("0")
    if (own := os.getpriority(os.PRIO_PROCESS, 0)) > niceness:
        print(f"this process has niceness {own}; start Ray with RAY_worker_niceness=0", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
