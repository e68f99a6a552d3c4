"""Ports of this machine for servers that take them later."""

import random
import socket
from contextlib import suppress

NOT_OF_CONNECTIONS = range(10_000, 32_768)
"""Below net.ipv4.ip_local_port_range: Linux gives none of them to a connection before the server has taken it."""


def free_ports(number: int) -> list[int]:
    """Ports of 127.0.0.1 that nothing listens on; drawn without a seed, since other workers draw too."""
    found: set[int] = set()
    while len(found) < number:
        port = random.SystemRandom().choice(NOT_OF_CONNECTIONS)
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            found.add(port)
    return list(found)
