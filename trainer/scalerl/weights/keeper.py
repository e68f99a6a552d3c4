"""The keeper of the weights in a node's memory: gives shares of them to other keepers, and takes shares.

    node 0                                        node 1
    memory <- ranks write                         memory -> generators read
      keeper (coordinator) ---- a share --------->  keeper (agent)

Each transfer has a connection and a thread of its own, so a node that hangs holds up nobody else.
"""

import os
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection

from scalerl.weights.node_memory import NodeMemory, Share

STALL_LIMIT_S = 10
"""Time limit for each read and each write of a transfer."""
TAKE_LIMIT_S, TAKE_BYTES_PER_S = 60.0, 50e6
"""Time limit for a whole transfer: a fixed part, plus its bytes at this rate."""


@dataclass(frozen=True, kw_only=True)
class TakeShare:
    """Order to take a share from another keeper: `TakeShare(number=3, host="n1", port=40123, share=...)`."""

    number: int
    host: str
    port: int
    share: Share

    @property
    def limit_s(self) -> float:
        """Time limit for the answer."""
        return TAKE_LIMIT_S + self.share.num_bytes / TAKE_BYTES_PER_S


@dataclass(frozen=True, kw_only=True)
class Took:
    """Answer to such an order: `Took(number=3, fault="")`."""

    number: int
    fault: str
    """Reason why the share is not in the node's memory; empty if it is."""


class WeightKeeper:
    """Memory of this node, and the way to call other keepers."""

    def __init__(self, call: Callable[[str, int], Connection]) -> None:
        """`call` connects to a host and port."""
        self.memory, self._call = NodeMemory(), call

    def give(self, connection: Connection, share: Share) -> None:
        """Send the share that a caller has asked for; OSError if that fails."""
        with connection:
            limit_waits(connection, STALL_LIMIT_S)
            self.memory.give(connection, share)

    def take(self, order: TakeShare) -> Took:
        """Take a share from another keeper, and say how that went."""
        try:
            with self._call(order.host, order.port) as connection:
                limit_waits(connection, STALL_LIMIT_S)
                connection.send(order.share)
                self.memory.take(connection, order.share)
        except BlockingIOError:
            fault = f"nothing has come for {STALL_LIMIT_S} s"
        except (OSError, EOFError, AuthenticationError) as error:
            fault = f"{type(error).__name__}: {error}"
        else:
            fault = ""
        return Took(number=order.number, fault=fault)


def limit_waits(connection: Connection, limit_s: int) -> None:
    """Let each read and each write raise BlockingIOError after this time; 0 means no limit."""
    with socket.socket(fileno=os.dup(connection.fileno())) as ours:
        for way in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            ours.setsockopt(socket.SOL_SOCKET, way, struct.pack("ll", limit_s, 0))
