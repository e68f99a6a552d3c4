"""Memory that the processes of one node share, and the transfer of weights into that of another node.

A share travels as the bytes that it has in memory, its seals last. The receiver opens the seals first and writes them
last, so a share that was cut off anywhere stays unusable. A share that was overwritten on its way fails its checksums.
"""

import mmap
import os
import weakref
from dataclasses import dataclass
from multiprocessing.connection import Connection

Extent = tuple[int, int]
"""Offset and length of a part of the memory, in bytes."""


@dataclass(frozen=True, kw_only=True)
class Share:
    """Some tensors of a publication, where they lie on every node: `Share(size=5000, tensors=((0, 912),), seals=...)`.

    Seals come in the order of the tensors, after all of them.
    """

    size: int
    """Bytes of the whole memory."""
    tensors: tuple[Extent, ...]
    seals: tuple[Extent, ...]

    @property
    def num_bytes(self) -> int:
        """Bytes that travel."""
        return sum(length for _, length in (*self.tensors, *self.seals))


class NodeMemory:
    """Memory without a name that could outlive its processes; those of this node and user open `where`."""

    def __init__(self) -> None:
        self._descriptor = os.memfd_create("weights")
        weakref.finalize(self, os.close, self._descriptor)
        self.where = f"/proc/{os.getpid()}/fd/{self._descriptor}"
        self._mapped: memoryview | None = None

    def give(self, connection: Connection, share: Share) -> None:
        """Send a share; OSError if the other end is gone or reads nothing for too long."""
        for offset, length in (*share.tensors, *share.seals):
            while length:
                sent = os.sendfile(connection.fileno(), self._descriptor, offset, length)
                if sent == 0:
                    raise OSError("nothing has been published in the memory of this node")
                offset, length = offset + sent, length - sent

    def take(self, connection: Connection, share: Share) -> None:
        """Receive a share; OSError or EOFError if it does not arrive whole, and its tensors are then unsealed."""
        if self._mapped is None:
            grow(self._descriptor, share.size)
            self._mapped = memoryview(mmap.mmap(self._descriptor, share.size))
        for offset, length in share.seals:
            self._mapped[offset : offset + length] = bytes(length)
        for offset, length in share.tensors:
            _receive(connection, self._mapped[offset : offset + length])
        seals = [bytearray(length) for _, length in share.seals]
        for seal in seals:
            _receive(connection, memoryview(seal))
        for (offset, length), seal in zip(share.seals, seals, strict=True):
            self._mapped[offset : offset + length] = seal


def grow(descriptor: int, size: int) -> None:
    """Give the memory its size, if no other process has done so; new bytes are zero."""
    if os.fstat(descriptor).st_size < size:
        os.truncate(descriptor, size)


def _receive(connection: Connection, into: memoryview) -> None:
    while into:
        if not (received := os.readv(connection.fileno(), [into])):
            raise EOFError("the other node closed the connection before the end")
        into = into[received:]
