"""The program of a process started by an agent: call the coordinator, receive the work, do it.

The process's input names the coordinator and closes when the agent dies. The process then ends, with all that it has
started.
"""

import json
import os
import sys
import threading
from multiprocessing import current_process

from scalerl.processes.authenticated import call
from scalerl.processes.launch import begin, end_group
from scalerl.processes.messages import Called, to_bytes


def do_work() -> None:
    """Do the coordinator's work for as long as the agent lives."""
    card = json.loads(sys.stdin.buffer.readline())
    current_process().name = card["ticket"]
    threading.Thread(target=_end_with_the_agent, daemon=True).start()
    connection = call(card["host"], card["port"], bytes.fromhex(card["key"]))
    connection.send_bytes(to_bytes(Called(ticket=card["ticket"])))
    begin(connection, tuple(card["devices"]), connection.recv_bytes())


def _end_with_the_agent() -> None:
    sys.stdin.buffer.read(1)  # no more is written: this returns at the end of the input
    end_group(os.getpid())


if __name__ == "__main__":
    do_work()
