"""Runs that the user's own scripts have logged with `ablations.start`, outside any sweep."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ablations.errors import AblationsError
from ablations.files.checked_json import checked
from ablations.imports.found_run import FoundRun
from ablations.log import ABOUT_FILE, OWN_LOG
from ablations.readings.task_curves import curve_of
from scalerl.plain_json import parsed_json
from scalerl.run.run_log import read_rows

_SEED = TypeAdapter(int)


@dataclass(frozen=True, kw_only=True)
class ScriptRun:
    """One run of a script: `ScriptRun(folder=Path("own-runs/dapo/20261128-140312-4242"), variant="dapo", seed=1)`."""

    folder: Path
    variant: str
    seed: int
    reader: str = "ablations.start"
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return str(self.folder.absolute())

    @property
    def files(self) -> Sequence[Path]:
        return (self.folder / OWN_LOG, self.folder / ABOUT_FILE)

    def read(self) -> tuple[Sequence[FoundRun], Sequence[str]]:
        """The run, whose rows are in the form of the run log."""
        curve, rows, reason = None, list[dict[str, Any]](), "no evaluation so far"
        try:
            rows = [*read_rows(self.folder / OWN_LOG)]
            curve = curve_of(rows, f"{self.variant}-s{self.seed}")
        except ValueError as error:
            reason = str(error)
        run = FoundRun(
            place=str(self.folder),
            variant=self.variant,
            seed=self.seed,
            curve=curve,
            evaluations=rows if curve else (),
            reason="" if curve else reason,
        )
        return [run], ()


def script_runs(paths: Sequence[Path]) -> list[ScriptRun]:
    """The runs in these folders; each folder is a variant, and holds one run or several.

    Seeds are those of `ablations.start`. Raises AblationsError if a folder has no run, or two runs have the same seed.
    """
    names = [path.name for path in paths]
    found: list[ScriptRun] = []
    for path in paths:
        name = path.name if names.count(path.name) == 1 else str(path)
        seen: dict[int, Path] = {}
        for folder in folders_of_runs(path):
            seed = _seed_of(folder)
            if seed in seen:
                raise AblationsError(
                    f"{seen[seed]} and {folder} both have seed {seed}; pass another seed to ablations.start, or leave "
                    "one out"
                )
            seen[seed] = folder
            found.append(ScriptRun(folder=folder, variant=name, seed=seed))
        if not seen:
            raise AblationsError(f"{path}: no run in this folder; a run of ablations.start has a file {OWN_LOG}")
    return found


def folders_of_runs(path: Path) -> list[Path]:
    """The folders of logged runs: `path` itself, or those inside it."""
    return [folder for folder in (path, *sorted(path.glob("*"))) if (folder / OWN_LOG).is_file()]


def _seed_of(folder: Path) -> int:
    try:
        return checked(parsed_json((folder / ABOUT_FILE).read_bytes())["seed"], _SEED)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AblationsError(
            f"{folder / ABOUT_FILE}: no seed ({error}); ablations.start writes this file beside the log of a script "
            "that runs by itself. Compare the runs of a sweep by the name of the sweep"
        ) from None
