"""Runs of other trainers, and of scripts of the user's own that log outside of any sweep, known by their curves alone:
as the results of a sweep, with the same tables and words."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter

from ablations.errors import AblationsError
from ablations.files.checked_json import checked
from ablations.findings.results import FittedVariant, Results, compare_variants
from ablations.fit.curve import Curve
from ablations.fit.curve_file import SeedCurve, read_seed_curves
from ablations.fit.options import FitSettings
from ablations.home.labels import Labels, PlannedRun, PlannedVariant, run_name
from ablations.log import ABOUT_FILE, OWN_LOG
from ablations.logs.naming import Naming
from ablations.nearest_name import did_you_mean
from ablations.readings.fitted_run import FittedRun
from ablations.readings.kept import forget_old
from ablations.readings.readings_together import Done, WantedCurve, readings_of_runs
from ablations.readings.run_reading import RunReading
from ablations.readings.task_curves import curve_of
from ablations.terminal.short_names import axes_in, meant, shown_names
from ablations.text import compute_text, counted
from scalerl.run.run_log import read_rows

MOST_APART = 1.1
"""Ratio of the runs' last computes above which a note reports the difference."""
LEAST_DIFFERENT = 4
"""Scores that differ from which two runs have the same ones by no chance."""
MOST_FILES = 4000
"""Limit on saved files of other trainers' runs, two per run and about 100 kB each."""
_SEED = TypeAdapter(int)


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredRun:
    """One run of another trainer, or the reason why it has no curve.

    MeasuredRun(variant="dapo", seed=1, id="dapo-s1", curve=<Curve 'dapo-s1': 37 readings, compute 0 to 8000>)
    """

    variant: str
    seed: int
    id: str
    curve: Curve | None
    reason: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredStudy:
    """Runs to compare: `MeasuredStudy(name="curves", compute_name="compute", runs=(...))`."""

    name: str
    compute_name: str
    """Name of the compute in tables."""
    runs: tuple[MeasuredRun, ...]
    notes: tuple[str, ...] = ()
    """Messages about runs that could not be read."""


def study_of_file(path: Path, *, scale: str | None = None) -> MeasuredStudy:
    """The runs of a CSV file, whose column `curve` names the variant; FileError if the file cannot be used.

    Without a column `seed`, names such as `dapo-s1` give the seeds, if all do. With `scale`, only the runs whose column
    `scale` has this value; the study is then called `NAME@SCALE`.
    """
    found, notes = read_seed_curves(path, scale=scale), ()
    named = [(run, *Naming().of(run.variant, {}, str(path))) for run in found if not run.curve.start]
    without = [run.variant for run, _, seed in named if seed is None]
    if 0 < len(without) < len(named):
        notes = (f"Every curve counts as a variant, since {without[0]!r} names no seed; write a column `seed`.",)
    if len(named) == len(found) and not without:
        notes = ("Seeds are those in the names of the curves, since the file has no column `seed`.",)
        found = [
            SeedCurve(variant=name, seed=seed, curve=replace(run.curve, start=f"seed {seed}"))
            for run, name, seed in named
            if seed is not None
        ]
    runs = tuple(MeasuredRun(variant=run.variant, seed=run.seed, id=run.curve.name, curve=run.curve) for run in found)
    name = Path(path.name.removesuffix(".gz")).stem
    return MeasuredStudy(
        name=name if scale is None else f"{name}@{scale}", compute_name="compute", runs=runs, notes=notes
    )


def compare_elsewhere(
    study: MeasuredStudy,
    reference: str | None,
    settings: FitSettings,
    *,
    kept: Path | None = None,
    done: Done | None = None,
) -> Results:
    """Compare every variant with the variant called `reference`; the cost of a run is its last compute.

    Fits are saved in the folder `kept`, if given, and reused for the same curves. `done` receives the number of fitted
    curves and the number to fit. Raises AblationsError if there is no such variant.
    """
    study, axes = _with_short_names(study)
    names = list(axes)
    reference = None if reference is None else meant(reference, names)
    if reference not in names:
        asked = (
            "name the reference with --reference NAME"
            if reference is None
            else f"--reference: no variant {reference!r}"
        )
        raise AblationsError(f"{study.name}: {asked}; {did_you_mean(reference or '', names, 'variants')}")
    measured = [run.curve for run in study.runs if run.curve is not None]
    fits = iter(
        readings_of_runs([WantedCurve(curve=one, settings=settings, kept_in=kept) for one in measured], done=done)
    )
    if kept is not None:
        forget_old(kept, most=MOST_FILES)
    runs = [_fitted(run, None if run.curve is None else next(fits)) for run in study.runs]
    variants = tuple(
        FittedVariant(name=name, overrides={}, runs=tuple(run for run in runs if run.variant == name)) for name in names
    )
    return Results(
        plan=_labels(study, reference, settings, runs, axes),
        variants=variants,
        comparison=compare_variants(variants, reference),
        notes=(*study.notes, *_copies(runs), *_ends(runs, study.compute_name)),
    )


def _fitted(run: MeasuredRun, reading: RunReading | None) -> FittedRun:
    return FittedRun(
        name=run_name(run.variant, run.seed),
        curve=run.curve,
        fit=None if reading is None else reading.fit,
        reason=run.reason if reading is None else reading.reason,
        variant=run.variant,
        seed=run.seed,
        id=run.id,
        cost_gpu_hours=0.0 if reading is None else reading.cost_gpu_hours,
        code_versions=(),
        warnings=(*run.warnings, *(() if reading is None else reading.oddities)),
    )


def _with_short_names(study: MeasuredStudy) -> tuple[MeasuredStudy, dict[str, dict[str, str]]]:
    """The study with the names that a sweep would give its variants, and the axes of each."""
    called = shown_names(run.variant for run in study.runs)
    runs = tuple(replace(run, variant=called[run.variant]) for run in study.runs)
    return replace(study, runs=runs), {short: dict(axes_in(name)) for name, short in called.items()}


def _labels(
    study: MeasuredStudy,
    reference: str,
    settings: FitSettings,
    runs: Sequence[FittedRun],
    axes: Mapping[str, dict[str, str]],
) -> Labels:
    """Labels in place of a plan; the budget is the smallest compute of the runs with a fit."""
    is_auto = settings.fit_from == "auto"
    return Labels(
        sweep=study.name,
        reference=reference,
        compute_name=study.compute_name,
        budget_gpu_hours=min((run.cost_gpu_hours for run in runs if run.fit is not None), default=1.0),
        fit_from_gpu_hours=0.0 if is_auto else float(settings.fit_from),
        fit_to_gpu_hours=settings.fit_to,
        fit={
            "r0": settings.r0,
            "loss": settings.loss,
            "cutoff": "auto" if is_auto else "given",
            "ceiling": settings.ceiling,
        },
        variants=tuple(
            PlannedVariant(
                name=name,
                overrides={},
                runs=tuple(PlannedRun(seed=run.seed, id=run.id) for run in runs if run.variant == name),
                axes=axes[name],
            )
            for name in dict.fromkeys(run.variant for run in runs)
        ),
    )


def _copies(runs: Sequence[FittedRun]) -> list[str]:
    """A note on each run whose evaluations are those of another, as if one log was copied under two names."""
    first: dict[tuple[bytes, bytes], str] = {}
    found = []
    for run in runs:
        if run.curve is None or np.unique(run.curve.score).size < LEAST_DIFFERENT:
            continue
        other = first.setdefault((run.curve.compute.tobytes(), run.curve.score.tobytes()), run.name)
        if other != run.name:
            found.append(f"{other} and {run.name} have the same evaluations; one log may stand under two names.")
    return found


def _ends(runs: Sequence[FittedRun], compute_name: str) -> list[str]:
    """A note if the runs were trained to different computes."""
    ends = [run.cost_gpu_hours for run in runs if run.curve is not None]
    if not ends or max(ends) <= MOST_APART * max(min(ends), math.ulp(0.0)):
        return []
    first, last = map(compute_text, (min(ends), max(ends)))
    return [
        f"The last evaluations of the {counted(len(ends), 'run')} lie between {first} and {last} {compute_name}; a "
        "variant is compared with the reference at the compute that all runs of both have reached."
    ]


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
