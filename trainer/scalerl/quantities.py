"""Numbers of things, written for people."""


def counted(number: int, thing: str) -> str:
    """A number and its noun: `1 prompt`, `2,000 prompts`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
