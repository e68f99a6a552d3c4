"""Connections between nodes: TCP, a shared key at both ends, and prompt detection of dead nodes.

    listener -> caller      protocol, nonce of the listener
    caller   -> listener    protocol, nonce of the caller, HMAC-SHA-256 of "caller" and all of these
    listener -> caller      HMAC-SHA-256 of "listener" and all of these

Both prove that they know the key without sending it, and neither proof can be used again or sent back. Later messages
are pickled and unencrypted, as is usual between processes of a cluster job; nothing is unpickled from a caller without
the key. A message may be larger than 2 GiB.
"""

import hmac
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection

import psutil

from scalerl.weights.keeper import limit_waits

PROTOCOL = b"scalerl-nodes-3\n"
"""Changed whenever the messages between nodes change, so that different versions of the code refuse each other."""
NONCE_BYTES, PROOF_BYTES = 32, 32
WITHOUT_THE_KEY = "one of the two nodes does not know the key of this run"
HANDSHAKE_LIMIT_S = 5
"""Time limit for connecting to one address, and for each message of the handshake."""
IDLE_S, AGAIN_S, KEEPALIVE_TIMES = 3, 2, 3
"""Keepalive: probe a silent connection after 3 s and give up after three probes 2 s apart, so a dead node is noticed
within 9 s."""


def listen_on(host: str) -> socket.socket:
    """Listen on a free port of the address; "" means every address of this node."""
    return socket.create_server((host, 0), backlog=1024)


def serve_callers(listener: socket.socket, key: bytes, serve: Callable[[Connection], None]) -> None:
    """Serve each caller that knows the key in a thread of its own, until the listener is closed."""

    def admit(caller: socket.socket) -> None:
        try:
            connection = let_in(caller, key)
        except Exception as error:  # garbage, another attempt's key, or a closed connection
            print(f"rejected a connection: {type(error).__name__}: {error}", flush=True)
            return
        with suppress(EOFError, OSError):
            serve(connection)

    with suppress(OSError):  # the listener is closed
        while True:
            caller, _ = listener.accept()
            threading.Thread(target=admit, args=(caller,), daemon=True).start()


def let_in(caller: socket.socket, key: bytes) -> Connection:
    """Return the connection to a caller that knows the key; otherwise AuthenticationError, OSError or EOFError."""
    with _handshake(caller) as connection:
        said = PROTOCOL + secrets.token_bytes(NONCE_BYTES)
        connection.send_bytes(said)
        answer = _read(connection, NONCE_BYTES + PROOF_BYTES)
        said += answer[:NONCE_BYTES]
        is_known = hmac.compare_digest(answer[NONCE_BYTES:], _proof(key, b"caller", said))
        # A caller without the key is answered too, by what proves nothing: its error then says why.
        connection.send_bytes(PROTOCOL + (_proof(key, b"listener", said) if is_known else bytes(PROOF_BYTES)))
        if not is_known:
            raise AuthenticationError(WITHOUT_THE_KEY)
    return connection


def call(host: str, port: int, key: bytes) -> Connection:
    """Return a connection to a listener that knows the key; raises the errors of `let_in`."""
    with _handshake(socket.create_connection((host, port), timeout=HANDSHAKE_LIMIT_S)) as connection:
        own = secrets.token_bytes(NONCE_BYTES)
        said = PROTOCOL + _read(connection, NONCE_BYTES) + own
        connection.send_bytes(PROTOCOL + own + _proof(key, b"caller", said))
        if not hmac.compare_digest(_read(connection, PROOF_BYTES), _proof(key, b"listener", said)):
            raise AuthenticationError(WITHOUT_THE_KEY)
    return connection


def _read(connection: Connection, size: int) -> bytes:
    """`size` bytes after the protocol; AuthenticationError if the other end speaks another one."""
    message = connection.recv_bytes(len(PROTOCOL) + size)
    if not message.startswith(PROTOCOL):
        spoken = message[: len(PROTOCOL)].decode(errors="replace").strip()
        raise AuthenticationError(f"the other node speaks {spoken!r}, this one {PROTOCOL.decode().strip()!r}")
    return message[len(PROTOCOL) :]


def _proof(key: bytes, role: bytes, said: bytes) -> bytes:
    return hmac.digest(key, role + said, "sha256")


def give_up_soon(connection: Connection) -> None:
    """Also notice a dead node while data is being sent to it; use this only if the other side reads promptly."""
    with socket.socket(fileno=os.dup(connection.fileno())) as ours:
        limit_ms = 1000 * (IDLE_S + AGAIN_S * KEEPALIVE_TIMES)
        ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit_ms)


def hang_up(connection: Connection) -> None:
    """Shut down a connection, even in the middle of a transfer; `close` it afterwards."""
    with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as ours:
        ours.shutdown(socket.SHUT_RDWR)


def own_address(connection: Connection) -> str:
    """The address of this node that the connection uses."""
    with socket.socket(fileno=os.dup(connection.fileno())) as ours:
        return ours.getsockname()[0]


def interface_of(address: str) -> str | None:
    """Network interface with that IPv4 address: `eth0`; None if there is none."""
    for name, addresses in psutil.net_if_addrs().items():
        if any(one.address == address for one in addresses):
            return name
    return "lo" if address.startswith("127.") else None


def use_interface(connection: Connection) -> None:
    """Have processes started from here reach other nodes through this connection's interface, unless one is set."""
    if found := interface_of(own_address(connection)):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", found)


@contextmanager
def _handshake(raw: socket.socket) -> Iterator[Connection]:
    """Take the socket over as a connection, with a limit on every wait in the block; an error there closes it."""
    raw.settimeout(None)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, IDLE_S)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, AGAIN_S)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_TIMES)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection = Connection(raw.detach())
    try:
        limit_waits(connection, HANDSHAKE_LIMIT_S)
        yield connection
        limit_waits(connection, 0)
    except BaseException:
        connection.close()
        raise
