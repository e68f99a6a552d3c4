"""Connections between nodes: TCP, both ends must know the key (HMAC), and a node that is gone is noticed.

What travels afterwards is pickled and not encrypted, as between the processes of every cluster job; without the key
nothing is unpickled. A message may be larger than 2 GiB.
"""

import fcntl
import os
import socket
import struct
from contextlib import suppress
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge

HANDSHAKE_LIMIT_S = 5
"""For a connection to one address to be made, and for each word of the handshake."""
IDLE_S, AGAIN_S, KEEPALIVE_TIMES = 3, 2, 3
"""A silent connection is looked at after 3 s and given up after three looks 2 s apart: a node without power is noticed
within 9 s."""
GET_ADDRESS = 0x8915
"""The kernel's request for the IPv4 address of a network interface (SIOCGIFADDR)."""


def listen_on(host: str) -> socket.socket:
    """A free port of that address; "" is every address of this node."""
    return socket.create_server((host, 0), backlog=1024)


def let_in(caller: socket.socket, key: bytes) -> Connection:
    """The connection to someone who has called and knows the key; any other raises: AuthenticationError, OSError,
    EOFError, AssertionError."""
    connection = _connection(caller)
    try:
        deliver_challenge(connection, key)
        answer_challenge(connection, key)
    except BaseException:
        connection.close()
        raise
    _wait(connection, 0)
    return connection


def call(host: str, port: int, key: bytes) -> Connection:
    """A connection to whoever listens there and knows the key; any other raises, as in `let_in`."""
    connection = _connection(socket.create_connection((host, port), timeout=HANDSHAKE_LIMIT_S))
    try:
        answer_challenge(connection, key)
        deliver_challenge(connection, key)
    except BaseException:
        connection.close()
        raise
    _wait(connection, 0)
    return connection


def give_up_soon(connection: Connection) -> None:
    """Also notice that the other node is gone where something is being sent to it: only for one that reads at once."""
    with socket.socket(fileno=os.dup(connection.fileno())) as ours:
        limit_ms = 1000 * (IDLE_S + AGAIN_S * KEEPALIVE_TIMES)
        ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit_ms)


def hang_up(connection: Connection) -> None:
    """End a connection in the middle of whatever either side does with it; `close` it afterwards."""
    with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as ours:
        ours.shutdown(socket.SHUT_RDWR)


def own_address(connection: Connection) -> str:
    """The address of this node that the connection uses."""
    with socket.socket(fileno=os.dup(connection.fileno())) as ours:
        return ours.getsockname()[0]


def interface_of(address: str) -> str | None:
    """The network interface with that IPv4 address: `eth0`; None where none has it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # it has no address
                request = struct.pack("256s", name.encode()[:15])
                answer = fcntl.ioctl(any_socket.fileno(), GET_ADDRESS, request)
                if socket.inet_ntoa(answer[20:24]) == address:
                    return name
    return "lo" if address.startswith("127.") else None


def _connection(raw: socket.socket) -> Connection:
    """Of the socket, which it takes over, with a limit on every wait."""
    raw.settimeout(None)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, IDLE_S)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, AGAIN_S)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_TIMES)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection = Connection(raw.detach())
    _wait(connection, HANDSHAKE_LIMIT_S)
    return connection


def _wait(connection: Connection, limit_s: int) -> None:
    """Let every read of the connection fail after so long; 0 is never."""
    with socket.socket(fileno=os.dup(connection.fileno())) as ours:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", limit_s, 0))
