"""Tries to reach the machine, its neighbours and a name server, and says what answered."""

import ctypes
import socket

reached = []
for family, address in (
    (socket.AF_INET, ("127.0.0.1", 22)),
    (socket.AF_INET, ("8.8.8.8", 53)),
    (socket.AF_INET6, ("::1", 22)),
    (socket.AF_UNIX, "/run/dbus/system_bus_socket"),
):
    try:
        socket.socket(family, socket.SOCK_STREAM).connect(address)
        reached.append(address)
    except OSError as error:
        reached += [address] if isinstance(error, ConnectionRefusedError) else []
if ctypes.CDLL(None).syscall(425, 8, ctypes.create_string_buffer(120)) >= 0:
    reached.append("io_uring")
print(reached)
