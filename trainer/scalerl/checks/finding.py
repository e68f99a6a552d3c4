"""One line of what a check says, and the rows that it names."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

_NUMBER = re.compile(r"(\d+)")
CheckLevel = Literal["ok", "warning", "refused"]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """`Fault(where="gsm8k.jsonl:3", what="the verifier calls its own answer '4 or so' wrong")`."""

    where: str
    """File and line, or the prompt."""
    what: str
    kind: str = ""
    """What faults of one finding are counted by: `duplicate`, `too long`; empty where all are of one kind."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """`Checked(part="answers", name="math", level="warning", found="7,472 of 7,473 right", faults=(...))`.

    What is refused would end the run or make its result worthless; a warning costs part of the data, or is easily
    overlooked.
    """

    part: str
    """What was examined: data, answers, lengths, ..."""
    name: str
    """The task, or what of the part."""
    level: CheckLevel
    found: str
    remedy: str = ""
    """What to do about it; empty if nothing is wrong."""
    faults: tuple[Fault, ...] = ()
    """Every row concerned, in the order of the files."""


def in_file_order(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Faults by file, and by line as a number: `train.jsonl:9` before `train.jsonl:10`."""

    def place(fault: Fault) -> list[str | int]:
        return [int(part) if part.isdecimal() else part for part in _NUMBER.split(fault.where)]

    return tuple(sorted(faults, key=place))


def plural(number: int, thing: str) -> str:
    """`1 prompt`, `2,000 prompts`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
