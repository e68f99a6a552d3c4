"""A remark about runs of a sweep, and the words that remarks share.

>>> [(one.weight, one.cell, one.text) for one in results.remarks]
[('error', 'collapsed 1 of 3', 'dapo: 1 of 3 seeds collapsed (seed 1: 0.703 at 1,000 to 0.609 at 1,250 GPU-hours; ...')]
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ablations.readings.fitted_run import FittedRun
from ablations.text import counted

RemarkKind = Literal[
    "collapsed",
    "fell",
    "failed",
    "ended early",
    "read early",
    "no level",
    "trained on nothing",
    "shortened",
    "left out",
    "unfinished",
    "below its start",
    "code",
    "copies",
    "pace",
    "starts apart",
    "held-out change",
    "best so far",
    "unlike",
    "stopped",
    "health",
    "no gradient",
    "one seed",
]
ON_CURVES: tuple[RemarkKind, ...] = ("copies", "pace", "starts apart", "held-out change", "best so far")
"""Kinds of remarks on curves that may not be what they seem, whatever is made of them."""
Weight = Literal["error", "warning", "note"]
WEIGHTS: tuple[Weight, ...] = ("error", "warning", "note")
"""Most serious first: an error spoils a run, a warning deserves a look, a note is expected."""
MOST_NAMED = 5
"""Limit on the runs or variants named in one remark."""


@dataclass(frozen=True, kw_only=True)
class Remark:
    """One remark about runs of a variant, or of a study.

    Remark(kind="collapsed", weight="error", variants=("dapo",), runs=("dapo-s1",), num_runs=3,
           text="dapo: 1 of 3 seeds collapsed (...).", clause="1 of 3 seeds collapsed (...)")
    """

    kind: RemarkKind
    weight: Weight
    text: str
    """The remark as sentences that name their subject."""
    variants: tuple[str, ...] = ()
    """The variants that the remark is about; empty for the whole study."""
    runs: tuple[str, ...] = ()
    """Names of the runs that the remark is about."""
    num_runs: int = 0
    """Total number of runs, including `runs`."""
    clause: str = ""
    """The first clause of the variant's sentence; empty if the remark does not appear there."""

    @property
    def cell(self) -> str:
        """The remark in a table cell: `collapsed 1 of 3`."""
        return f"{self.kind} {len(self.runs)} of {self.num_runs}"

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON: all fields but the clause."""
        found = asdict(self) | {"variants": list(self.variants), "runs": list(self.runs)}
        del found["clause"]
        return found


def by_weight(remarks: Iterable[Remark]) -> tuple[Remark, ...]:
    """The remarks, the most serious first."""
    return tuple(sorted(remarks, key=lambda one: WEIGHTS.index(one.weight)))


def clauses_on(remarks: Iterable[Remark], variant: str) -> list[str]:
    """The clauses that begin the sentence on a variant."""
    return [one.clause for one in remarks if one.clause and (not one.variants or variant in one.variants)]


def cells_on(remarks: Iterable[Remark], variant: str) -> list[str]:
    """The remarks on a variant for a table cell: `collapsed 1 of 3`; only errors."""
    return [one.cell for one in remarks if variant in one.variants and one.weight == "error"]


def by_variant(runs: Sequence[FittedRun], holds: Callable[[FittedRun], bool]) -> list[tuple[str, list[FittedRun], int]]:
    """Each variant with runs that satisfy the condition: its name, these runs, and the number of all its runs."""
    groups: dict[str, list[FittedRun]] = {}
    for run in runs:
        groups.setdefault(run.variant, []).append(run)
    found = ((name, [run for run in all_of if holds(run)], len(all_of)) for name, all_of in groups.items())
    return [(name, some, number) for name, some, number in found if some]


def seeds_said(some: Sequence[FittedRun], num_runs: int) -> str:
    """`1 of 3 seeds`."""
    return f"{len(some)} of {counted(num_runs, 'seed')}"


def remark_on(
    kind: RemarkKind,
    variant: str,
    some: Sequence[FittedRun],
    num_runs: int,
    clause: str,
    after: str = "",
    weight: Weight = "error",
) -> Remark:
    """A remark about runs of one variant: `dapo: 1 of 3 seeds collapsed (seed 1: ...). After.`"""
    names = tuple(run.name for run in some)
    text = f"{variant}: {clause}.{after}"
    return Remark(
        kind=kind, weight=weight, text=text, variants=(variant,), runs=names, num_runs=num_runs, clause=clause
    )
