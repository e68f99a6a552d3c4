"""Numbers of things as people read them."""


def counted(number: int, thing: str) -> str:
    """`1 prompt`, `2,000 prompts`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
