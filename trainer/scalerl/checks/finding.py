"""One finding of `platform check` or `platform doctor`, and the rows it concerns."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

_NUMBER = re.compile(r"(\d+)")
Severity = Literal["ok", "warning", "error"]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One faulty row: `Fault(where="gsm8k.jsonl:3", what="the verifier calls the written answer wrong: '4 or so'")`."""

    where: str
    """File and line, or the prompt."""
    what: str
    kind: str = ""
    """Kind of fault, such as `duplicate` or `too long`, by which faults are counted; empty if all are of one kind."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One finding.

    Finding(part="answers", check="math", level="warning", found="7,472 of 7,473 right", faults=(...))

    An error means that no run can finish, or that its result would be worthless. A warning may cost data, compute or
    information, or is easily overlooked.
    """

    part: str
    """Subject of the check: data, answers, this machine, Slurm, a node of a partition."""
    check: str
    """The task, or another part of the subject."""
    level: Severity
    found: str
    remedy: str = ""
    """Advice; empty if nothing is wrong."""
    faults: tuple[Fault, ...] = ()
    """All rows concerned, in the order of the files."""
    log: tuple[str, ...] = ()
    """The last lines that a probe job printed, if they explain the problem."""
    variants: tuple[str, ...] = ()
    """The recipe, or variants of a sweep file, that the finding is about."""


def judged(part: str, check: str, problem: str, found: str, remedy: str, *, level: Severity = "error") -> Finding:
    """`found` if there is no problem, else the problem with its remedy."""
    if problem:
        return Finding(part=part, check=check, level=level, found=problem, remedy=remedy)
    return Finding(part=part, check=check, level="ok", found=found)


def of_rows(
    part: str, check: str, found: str, faults: Iterable[Fault], remedy: str, *, level: Severity = "warning"
) -> Finding:
    """`found` with its faulty rows in file order; without faulty rows it is ok and needs no remedy."""
    if not (in_order := in_file_order(faults)):
        return Finding(part=part, check=check, level="ok", found=found)
    return Finding(part=part, check=check, level=level, found=found, remedy=remedy, faults=in_order)


def in_file_order(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Sort faults by file, and by line as a number: `train.jsonl:9` before `train.jsonl:10`."""

    def place(fault: Fault) -> list[str | int]:
        return [int(part) if part.isdecimal() else part for part in _NUMBER.split(fault.where)]

    return tuple(sorted(faults, key=place))
