"""A number and what it counts, in words."""


def counted(number: int, thing: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
