"""The program of a Ray cluster on this machine: nodes that are daemons of their own, started and killed on order.

    python nodes.py FOLDER CPUS        orders on stdin, one a line: `add CPUS`, `kill NUMBER`; the end of stdin ends all

It answers each order, and first the address, with one line on stdout. Ray is loaded only here: the tests are not its
driver.
"""

import os
import sys
from pathlib import Path

from ray.cluster_utils import Cluster

SMALL = {"object_store_memory": 100 * 2**20, "include_dashboard": False}


def main(folder: Path, cpus: int) -> None:
    """Start a head, obey, and end every node."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what Ray prints is not an answer
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": cpus, **SMALL})
    nodes = [cluster.head_node]
    os.write(answers, f"{cluster.address}\n".encode())
    for order in sys.stdin:
        match order.split():
            case ["add", number]:
                nodes.append(cluster.add_node(num_cpus=int(number), **SMALL))
                os.write(answers, f"{len(nodes) - 1}\n".encode())
            case ["kill", number]:
                cluster.remove_node(nodes[int(number)], allow_graceful=False)
                os.write(answers, b"killed\n")
    cluster.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
