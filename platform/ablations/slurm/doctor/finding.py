"""One line of the doctor's answer."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "error"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """`Finding(part="Slurm", check="accounting", level="warning", found="sacct: disabled", remedy="ask for slurmdbd")`.

    A warning is what costs compute or knowledge on a bad day; with an error a sweep does not get to its table.
    """

    part: str
    """What was looked at: this machine, Slurm, or a node of a partition."""
    check: str
    level: Level
    found: str
    remedy: str = ""
    """What to do about it; empty when all is well."""
    log: tuple[str, ...] = ()
    """The last lines that the probe job printed, where they explain it."""


def judged(part: str, check: str, problem: str, found: str, remedy: str, *, level: Level = "error") -> Finding:
    """`found` where there is no problem, else the problem with its remedy."""
    if problem:
        return Finding(part=part, check=check, level=level, found=problem, remedy=remedy)
    return Finding(part=part, check=check, level="ok", found=found)
