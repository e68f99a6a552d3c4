"""Takes memory until none is given, keeps it, and goes on."""

hoard = []
size = 1 << 26
while True:
    try:
        hoard.append(bytearray(b"x") * size)
    except MemoryError:
        size = max(size // 2, 1)
