"""One line of the doctor's answer."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["ok", "warning", "error"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """`Finding(part="Slurm", check="accounting", level="warning", found="sacct: disabled", remedy="ask for slurmdbd")`.

    A warning may cost compute or information on a bad day; with an error a sweep cannot finish.
    """

    part: str
    """What was examined: this machine, Slurm, or a node of a partition."""
    check: str
    level: Severity
    found: str
    remedy: str = ""
    """What to do about it; empty if there is no problem."""
    log: tuple[str, ...] = ()
    """The last lines that the probe job printed, if they explain the problem."""


def judged(part: str, check: str, problem: str, found: str, remedy: str, *, level: Severity = "error") -> Finding:
    """`found` if there is no problem, else the problem with its remedy."""
    if problem:
        return Finding(part=part, check=check, level=level, found=problem, remedy=remedy)
    return Finding(part=part, check=check, level="ok", found=found)
