"""Everything that the platform raises on purpose. The command line prints it, without a traceback, and exits with 2,
with 1 for RunsHeld.

AblationsError(ValueError)      what a user can cause and put right
├── FileError                       a sweep, recipe, scale or CSV file, or a --set, that cannot be used as written
├── NotAnArchive                    a file that `platform export` has not written
├── RayError                        no Ray, no Ray cluster, or one that is gone
├── NotATree                        a file of stored numbers that is damaged, or of another version
├── NoNumber                        a text in a column of numbers of a log
├── Unreadable                      a setting of a program whose value only the program knows
├── HalfWritten                     the last record of a log is incomplete
├── RunsHeld                        runs failed alike, and those that wait were not started
└── SlurmError                      a command of Slurm failed
    └── SlurmSilent                     Slurm's controller does not answer

The trainer's own are in `scalerl.errors`.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

"""Maximum number of valid names listed in one message."""


class AblationsError(ValueError):
    """An error that a user can cause and put right; the message says how."""

    exit_code: ClassVar[int] = 2

    @property
    def advice(self) -> str:
        """The message and what to do next."""
        return str(self)


@dataclass(frozen=True, kw_only=True)
class Place:
    """The place where a setting was written.

    >>> str(Place(source="sweeps/loo.yaml", line=7, key="axes.loss"))
    'sweeps/loo.yaml:7: axes.loss'
    """

    source: str
    """A file, or the command-line option itself: `--set batch.prompts=64`."""
    line: int | None = None
    """1-based; None on the command line."""
    key: str = ""
    """Dotted path of the setting inside the source; empty for the source as a whole."""

    def inside(self, *parts: str | int) -> "Place":
        """The place of a key inside this one, if the key has no line of its own."""
        return replace(self, key=".".join(str(part) for part in (self.key, *parts) if part != ""))

    @property
    def folder(self) -> Path:
        """The folder of the file; the current folder on the command line."""
        return Path() if self.line is None else Path(self.source).parent

    def error(self, found: str, right: str = "") -> "FileError":
        return FileError(FileProblem(place=self, found=found, right=right))

    def __str__(self) -> str:
        where = self.source if self.line is None else f"{self.source}:{self.line}"
        return f"{where}: {self.key}" if self.key else where


@dataclass(frozen=True, kw_only=True)
class FileProblem:
    """One line of a `FileError`: the place, what was found, and what would be right (empty if `found` says so)."""

    place: Place
    found: str
    right: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.found}; {self.right}" if self.right else f"{self.place}: {self.found}"


class FileError(AblationsError):
    """Input that cannot be used as written; `problems` holds every problem, the message shows one per line."""

    def __init__(self, *problems: FileProblem) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        super().__init__("\n".join(map(str, self.problems)))
