"""Runs of other sweeps in the home folder that repeat a recipe: further evidence on the run-to-run spread.

A run counts if it shares the scale of the compared sweep (name, model, tasks and with them the held-out prompts,
compute unit), has as many generations per held-out prompt, and has readings over two thirds of that sweep's window; it
is fitted in that window. Runs repeat each other if they share a recipe and a version of the code. The recipes nearest
to the sweep's own count first, whenever they were trained, since the spread depends on the recipe too. The evidence of
each group is kept beside the sweep (`ablations.readings.kept`).
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from ablations.answers.level import last_compute
from ablations.answers.questions import LEVEL, QUESTIONS, asked_at
from ablations.answers.repeats import NO_OTHERS, OtherSweeps, Repeats
from ablations.answers.run_to_run import ENOUGH_FREEDOM
from ablations.fit.asymptote import WITHOUT_RISE
from ablations.fit.options import FitSettings
from ablations.fit.result import Fit
from ablations.home.home import Home
from ablations.home.labels import run_name
from ablations.home.plan import PlannedRun
from ablations.home.started_sweep import StartedSweep, plans_of
from ablations.readings.fitted_run import FittedRun, read_run
from ablations.readings.kept import kept_tree
from ablations.readings.run_reading import code_of_readings
from ablations.study.recipe_differences import recipe_differences
from scalerl.recipe.command import AnyRecipe
from scalerl.run.run_folder import RunFolder

SAME = ("model", "tasks", "compute_unit_gpu_hours")
"""Settings that runs must share even at one scale, since `--set` may have changed them."""
REACHED = 2 / 3
"""Share of the window that a run's readings must cover, since runs that have learned less may spread differently."""
MOST_RUNS_READ = 400
"""Limit on the runs whose recipe is read, the most recent sweep first; each takes a millisecond."""
MOST_GROUPS = 48
"""Maximum number of files kept for one sweep, one per group of runs; the newest stay."""
UNUSABLE = (*WITHOUT_RISE, "collapsed")


@dataclass(frozen=True, kw_only=True)
class RepeatedRun:
    """A run of a group: RepeatedRun(name="scalerl", run=PlannedRun(...), sweep="pilot", folder=...)."""

    name: str
    """Name of its variant."""
    run: PlannedRun
    sweep: str
    folder: RunFolder

    @property
    def stamp(self) -> tuple[str, str, int, int]:
        """The run's sweep and id, and the size and time of its log, which show changes of its content."""
        found = self.folder.metrics.stat()
        return self.sweep, self.run.id, found.st_size, found.st_mtime_ns


@dataclass(frozen=True, kw_only=True)
class GroupFinding:
    """The evidence of a group of repeated runs on each spread, and the runs that were left out."""

    says: Mapping[str, Repeats] = field(default_factory=dict)
    used: tuple[str, ...] = ()
    """Ids of the runs used."""
    left_out: tuple[str, ...] = ()


def of_other_sweeps(sweep: StartedSweep, own: Collection[str], freedom: int) -> OtherSweeps:
    """The evidence of other sweeps of the home folder for a sweep with `freedom` degrees of freedom of its own.

    `own` are the ids of the runs that count there. Unreadable runs are left out, with their names.
    """
    like = None if freedom >= ENOUGH_FREEDOM else some_recipe(sweep)
    if like is None:
        return NO_OTHERS
    return repeats_of_home(
        sweep.home,
        sweep.plan.scale,
        sweep=sweep.name,
        like=like,
        settings=sweep.plan.fit_settings,
        own=own,
        freedom=freedom,
        kept=sweep.folder / "repeated_runs",
    )


def some_recipe(sweep: StartedSweep, variant: str | None = None) -> AnyRecipe | None:
    """The recipe of the first readable run of a variant, by default the first one; None if no run of it has one."""
    named = (one for one in sweep.plan.variants if variant in (None, one.name))
    for run in next((one.runs for one in named), ()):
        with suppress(OSError, ValueError):  # the fit of the run reports the error
            return sweep.run(run.id).read_recipe()[0]
    return None


def repeats_of_home(
    home: Home,
    scale: str,
    *,
    sweep: str,
    like: AnyRecipe,
    settings: FitSettings,
    own: Collection[str],
    freedom: int,
    kept: Path | None = None,
) -> OtherSweeps:
    """Enough repeated runs of the scale to bring `freedom` to ENOUGH_FREEDOM, fitted like runs of `sweep`.

    `like` is a recipe of that sweep. `kept` is the folder in which findings are saved.
    """
    groups, unreadable = _groups(list(_runs_of_scale(home, scale, sweep)), like, own)
    found: list[GroupFinding] = []
    sweep_of: dict[str, str] = {}
    unkept = ""
    for group in groups:
        if freedom + sum(one.says[LEVEL.name].freedom for one in found if LEVEL.name in one.says) >= ENOUGH_FREEDOM:
            break
        try:
            key = _key(group, settings)
        except OSError as error:
            unreadable.append(f"{group[0].sweep}, {group[0].name}: {error}")
            continue
        make, why = partial(_finding, group, settings, sweep), ""
        if kept is None:
            one = make()
        else:
            one, why = kept_tree(kept / f"{key}.msgpack", make, GroupFinding, most=MOST_GROUPS)
        found.append(one)
        unkept = unkept or why
        sweep_of |= {one.run.id: one.sweep for one in group}
    names = dict.fromkeys(sweep_of[run_id] for one in found for run_id in one.used)
    return OtherSweeps(
        says={one.name: tuple(group.says[one.name] for group in found if one.name in group.says) for one in QUESTIONS},
        sweeps=tuple(name for name in names if name != sweep),
        left_out=(*unreadable, *(text for one in found for text in one.left_out)),
        unkept=unkept,
    )


def _groups(
    runs: Sequence[RepeatedRun], like: AnyRecipe, own: Collection[str]
) -> tuple[list[list[RepeatedRun]], list[str]]:
    """Groups of two or more runs with one recipe and code version, nearest to `like` first; messages about unreadable
    runs.
    """
    alike, seen, unreadable = like.canonical(*SAME), set(own), list[str]()
    groups: dict[tuple[int, str, tuple[str, ...]], list[RepeatedRun]] = {}
    for one in runs:
        if one.run.id in seen:
            continue
        if len(seen) >= MOST_RUNS_READ + len(own):
            break
        seen.add(one.run.id)
        if not one.folder.metrics.exists():
            continue
        try:
            recipe = one.folder.read_recipe()[0]
            versions = one.folder.read_status().code_versions
        except (OSError, ValueError) as error:
            unreadable.append(f"{one.sweep}, {run_name(one.name, one.run.seed)}: {error}")
            continue
        if recipe.canonical(*SAME) == alike and recipe.evaluation.samples == like.evaluation.samples:
            num_differing = len(recipe_differences(like, recipe))
            groups.setdefault((num_differing, recipe.canonical_json(), versions), []).append(one)
    return [group for _, group in sorted(groups.items()) if len(group) > 1], unreadable


def _runs_of_scale(home: Home, scale: str, sweep: str) -> Iterator[RepeatedRun]:
    """The runs of every sweep of the scale, `sweep` itself last, so that a shared run counts as the other sweep's."""
    for plan in sorted(plans_of(home, scale), key=lambda plan: plan.sweep == sweep):
        for variant in plan.variants:
            for run in variant.runs:
                yield RepeatedRun(name=variant.name, run=run, sweep=plan.sweep, folder=home.run(run.id))


def _finding(group: Sequence[RepeatedRun], settings: FitSettings, sweep: str) -> GroupFinding:
    usable: list[tuple[RepeatedRun, Fit]] = []
    left_out: list[str] = []
    for one in group:
        try:
            read = read_run(one.folder, one.name, one.run, settings)
        except (OSError, ValueError) as error:
            left_out.append(f"{one.sweep}, {run_name(one.name, one.run.seed)}: {error}")
            continue
        reaches = _reaches(read, settings)
        if read.fit is not None and read.fit.verdict not in UNUSABLE and reaches:
            usable.append((one, read.fit))
        elif read.curve is None or (read.fit is None and reaches):
            left_out.append(f"{one.sweep}, {run_name(one.name, one.run.seed)}: {read.reason}")
    if len(usable) < 2:
        return GroupFinding(left_out=tuple(left_out))
    num_here = sum(one.sweep == sweep for one, _ in usable)
    fits = [fit for _, fit in usable]
    said = says_of_group(fits, compute=min(map(last_compute, fits)))  # all cover enough of the window
    return GroupFinding(
        says={spread: replace(found, num_here=num_here) for spread, found in said.items()},
        used=tuple(one.run.id for one, _ in usable),
        left_out=tuple(left_out),
    )


def says_of_group(fits: Sequence[Fit], *, compute: float | None = None) -> dict[str, Repeats]:
    """The evidence of runs of one recipe on each spread, read at a compute, by default where they are compared."""
    return {one.name: found for one in QUESTIONS if (found := asked_at(one, compute).repeats(fits, (), ""))}


def _reaches(read: FittedRun, settings: FitSettings) -> bool:
    """True if the readings cover enough of the window."""
    if read.curve is None or not np.isfinite(settings.fit_to):
        return read.curve is not None
    return float(read.curve.compute[-1]) >= REACHED * settings.fit_to


def _key(group: Sequence[RepeatedRun], settings: FitSettings) -> str:
    """Hash of the logs, the settings and the code that determine the evidence of a group."""
    content = [code_of_readings(), asdict(settings), sorted(one.stamp for one in group)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
