"""A CSV file of curves, with this platform's names for the columns or with a column for each run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablations.fit.curve_file import read_seed_curves, table_of_curves
from ablations.imports.found_run import FoundRun
from ablations.logs.filled_forward import without_repeats
from ablations.logs.naming import Naming


@dataclass(frozen=True, kw_only=True)
class CurveFile:
    """The curves of a file, or of one `scale` in it: `CurveFile(path=Path("curves.csv"))`."""

    path: Path
    scale: str | None = None
    reader: str = "curves"

    @property
    def key(self) -> str:
        return str(self.path.absolute())

    @property
    def files(self) -> Sequence[Path]:
        return (self.path,)

    @property
    def options(self) -> Mapping[str, Any]:
        return {"scale": self.scale}

    def read(self) -> tuple[Sequence[FoundRun], Sequence[str]]:
        """A run for each curve and seed; without a column `seed`, the seed in names such as `dapo-s1`, if all have one
        or the table has a column for each run.

        Raises FileError with line and column if the file cannot be used.
        """
        table, found = table_of_curves(self.path), read_seed_curves(self.path, scale=self.scale)
        notes = [*table.notes]
        named = [(run, *Naming().of(run.variant, {}, str(self.path))) for run in found if not run.has_seed]
        without = [run.variant for run, _, seed in named if seed is None]
        told = [(run, run.variant, run.seed, run.curve.start) for run in found]
        if 0 < len(without) < len(named) and not table.is_wide:
            notes += [f"Every curve counts as a variant, since {without[0]!r} names no seed; write a column `seed`."]
        elif len(without) < len(named):
            notes += ["Seeds are those in the names of the curves, since the file has no column `seed`."]
            told = [(run, name, seed, "" if seed is None else f"seed {seed}") for run, name, seed in named]
        runs = [
            FoundRun(
                place=f"{self.path}, {run.curve.name}",
                variant=name,
                seed=seed,
                start=start,
                curve=curve,
                warnings=(note,) if note else (),
                is_stopped=run.is_stopped,
            )
            for run, name, seed, start in told
            for curve, note in [without_repeats(run.curve)]
        ]
        return runs, notes
