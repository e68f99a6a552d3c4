"""Runs that scripts of the user's own have logged outside of any sweep, as curves to compare."""

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter

from ablations.errors import AblationsError
from ablations.files.checked_json import checked
from ablations.findings.elsewhere import MeasuredRun, MeasuredStudy
from ablations.log import ABOUT_FILE, OWN_LOG
from ablations.readings.task_curves import curve_of
from scalerl.run.metrics import read_rows

_SEED = TypeAdapter(int)


def study_of_folders(paths: Sequence[Path]) -> MeasuredStudy:
    """The runs that scripts of the user's own have logged: each folder is a variant and holds one run or several.

    Seeds are those of `ablations.start`. Raises AblationsError if a folder has no run, or two runs have the same seed.
    """
    names = [path.name for path in paths]
    runs: list[MeasuredRun] = []
    for path in paths:
        name = path.name if names.count(path.name) == 1 else str(path)
        seen: dict[int, Path] = {}
        for folder in own_runs_in(path):
            seed = _seed_of(folder)
            if seed in seen:
                raise AblationsError(
                    f"{seen[seed]} and {folder} both have seed {seed}; pass another seed to ablations.start, or leave "
                    "one out"
                )
            seen[seed] = folder
            runs.append(_logged_run(folder, name, seed))
        if not seen:
            raise AblationsError(f"{path}: no run in this folder; a run of ablations.start has a file {OWN_LOG}")
    return MeasuredStudy(name=" and ".join(map(str, paths)), compute_name="compute", runs=tuple(runs))


def own_runs_in(path: Path) -> list[Path]:
    """The folders of logged runs: `path` itself, or those inside it."""
    return [folder for folder in (path, *sorted(path.glob("*"))) if (folder / OWN_LOG).is_file()]


def _seed_of(folder: Path) -> int:
    try:
        return checked(json.loads((folder / ABOUT_FILE).read_bytes())["seed"], _SEED)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AblationsError(
            f"{folder / ABOUT_FILE}: no seed ({error}); ablations.start writes this file beside the log of a script "
            "that runs by itself. Compare the runs of a sweep by the name of the sweep"
        ) from None


def _logged_run(folder: Path, variant: str, seed: int) -> MeasuredRun:
    name, curve, reason = f"{variant}-s{seed}", None, "no evaluation so far"
    try:
        curve = curve_of(read_rows(folder / OWN_LOG), name)
    except ValueError as error:
        reason = str(error)
    return MeasuredRun(variant=variant, seed=seed, id=name, curve=curve, reason="" if curve else reason)
