"""What is said to the policy between its turns: one text of a user, or several messages with their roles."""

from collections.abc import Sequence

Message = dict[str, str]
"""`{"role": "user", "content": "2 + 2?"}`"""
Said = str | Sequence[Message]


def as_messages(said: Said) -> list[Message]:
    """The messages; a text is a user's."""
    return [{"role": "user", "content": said}] if isinstance(said, str) else list(said)


def said_text(said: Said) -> str:
    """The text for a model without roles: one message below the other."""
    return said if isinstance(said, str) else "\n".join(one["content"] for one in said)
