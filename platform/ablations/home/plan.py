"""The plan of a sweep, `plan.json`: its variants and runs, its reference and its budget.

>>> plan = Plan.read(Path("ablation-runs/sweeps/loo/plan.json"))
>>> [variant.name for variant in plan.variants]
['scalerl', 'loo-off_policy', 'loo-loss', ...]

Everything after the start of a sweep (status, comparison, report, dashboard page, MLflow) reads this file and the run
folders. The sweep file is not read again, because it may have been edited.
"""

import json
import shlex
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from ablations.errors import AblationsError
from ablations.files.checked_json import checked
from ablations.fit.options import FitOptions, FitSettings
from ablations.home.labels import PlannedRun as PlannedRun
from ablations.home.labels import PlannedVariant as PlannedVariant
from ablations.home.labels import StudySize, run_name
from ablations.home.source import JUST_NOW_NS
from ablations.terminal.short_names import axes_in
from ablations.text import counted, four_digits
from scalerl.credentials import command_without_secrets, values_without_secrets
from scalerl.plain_json import parsed_json
from scalerl.run.run_folder import write_atomically


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A sweep as last started; the reference is one of the variants.

    Plan(sweep="loo", reference="scalerl", scale="laptop", compute_unit_gpu_hours=2000.0, budget_gpu_hours=2000.0,
         fit_from_gpu_hours=0.0, fit_to_gpu_hours=1000.0, variants=(scalerl, loo_loss))
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    sweep: str
    doc: str = ""
    command: str = ""
    """The command that started or imported the sweep; of a study at several scales, that of this scale alone."""
    folder: str = ""
    """The folder in which the command was given, relative to the home folder: `..`; empty if it is unknown."""
    reference: str
    scale: str = ""
    """Name of the scale; empty for a program and for imported runs."""
    compute_name: str = "modelled GPU-hours"
    """Unit of all compute: "modelled GPU-hours", or "measured device-hours" on the wall clock."""
    budget_gpu_hours: float
    """Compute to train each run for; for imported runs, the compute at which they are compared."""
    fit_from_gpu_hours: float
    fit_to_gpu_hours: float
    """Evaluations outside [fit_from, fit_to] are not fitted; those above check the forecast."""
    fit: dict[str, Any] = field(default_factory=dict)
    """Settings of the curve fits, as in the sweep file: {"r0": "anchored", "loss": "squares", "task": null, ...}."""
    published: dict[str, dict[str, float]] = field(default_factory=dict)
    """The paper's published values by variant: {"loo-loss": {"A": 0.59, "B": 1.77, "C_mid": 2600.0}}."""
    begun: StudySize | None = None
    """The size of the study before `--shorten`; None for a study that was not shortened."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Trained runs of this sweep that it no longer has, by id with their names, since the file has other settings,
    variants or seeds: {"3f0c9a1b2d4e": "dapo-s1"}."""
    search: bool = False
    """True for a search, which adds trials while it runs."""
    imported: bool = False
    """True for runs of other trainers (`ablations.imports`)."""
    notes: tuple[str, ...] = ()
    """Notes of the import: on the reference, and on runs that are left out."""
    variants: tuple[PlannedVariant, ...]
    compute_unit_gpu_hours: float
    stop: dict[str, Any] | None = None
    """Rules that end runs early, as in the sweep file: {"gain_below": 0.01, "probability": 0.9, ...}."""
    notify: dict[str, Any] | None = None
    """The webhook to notify, as in the sweep file: {"url": "$SLACK_WEBHOOK", "on": ["failed", "done"]}."""
    claims: tuple[dict[str, Any], ...] = ()
    """A paper's claims about variants, as in the sweep file: {"variant": "loo-loss", "of": "ceiling", ...}."""

    @property
    def runs(self) -> tuple[PlannedRun, ...]:
        return tuple(run for variant in self.variants for run in variant.runs)

    @property
    def run_names(self) -> list[str]:
        """The names of all runs: `scalerl-s0`, ..."""
        return [run_name(variant.name, run.seed) for variant in self.variants for run in variant.runs]

    @property
    def size(self) -> StudySize:
        """The size of the study; trials of a search do not count, since they are added while the search runs."""
        return StudySize(
            num_variants=1 if self.search else len(self.variants),
            num_seeds=len({run.seed for run in self.runs}),
            budget_gpu_hours=self.budget_gpu_hours,
        )

    def size_text(self, size: StudySize, *, with_variants: bool) -> str:
        """A size in words: `3 seeds at 625 GPU-hours`, or `4 variants and 3 seeds at 625 GPU-hours`."""
        variants = f"{counted(size.num_variants, 'variant')} and " if with_variants else ""
        return f"{variants}{counted(size.num_seeds, 'seed')} at {self.hours_text(size.budget_gpu_hours)}"

    @property
    def axes(self) -> dict[str, dict[str, str]]:
        """The axes of each variant, with its value on each, by name of the variant."""
        return {variant.name: variant.axes for variant in self.variants}

    @property
    def hours_name(self) -> str:
        """The unit without the way it is counted: `GPU-hours`, or `device-hours` on the wall clock."""
        return self.compute_name.rpartition(" ")[2]

    def hours_text(self, compute_gpu_hours: float) -> str:
        """Compute with its unit, to four digits: `1200 GPU-hours`, or `1200 device-hours` on the wall clock."""
        return f"{four_digits(compute_gpu_hours)} {self.hours_name}"

    @property
    def fit_settings(self) -> FitSettings:
        """The settings of fits, with the plan's window in GPU-hours."""
        options = FitOptions(**self.fit)
        return FitSettings(
            fit_from="auto" if options.cutoff == "auto" else self.fit_from_gpu_hours,
            fit_to=self.fit_to_gpu_hours,
            **options.model_dump(exclude={"cutoff"}),
        )

    @classmethod
    def read(cls, path: Path) -> "Plan":
        """Read a plan; raises AblationsError if the file is missing or is not a plan. An unchanged file is read once.

        Passwords, which plans of earlier versions may hold, are hidden.
        """
        try:
            found = path.stat()
        except OSError:
            return _read(path)  # which says what is wrong
        if time.time_ns() - found.st_mtime_ns <= JUST_NOW_NS:
            return _read(path)
        return _read_once(path, found.st_size, found.st_mtime_ns, found.st_ino)

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(asdict(self), indent=1).encode())


@lru_cache(maxsize=64)
def _read_once(path: Path, *written: int) -> Plan:
    """The plan in a file of this size, time and place on the disk."""
    return _read(path)


def _read(path: Path) -> Plan:
    try:
        content = parsed_json(path.read_bytes())
    except FileNotFoundError:
        raise AblationsError(f"{path}: no such plan; to create one, run `platform sweep FILE`") from None
    except ValueError as error:
        raise AblationsError(f"{path}: not a plan ({error}); to recreate it, run `platform sweep FILE`") from error
    try:
        content.pop("total_gpu_hours", None)  # plans of earlier versions have it, nearly always null
        scale, command = content.get("scale"), content.get("command")
        if scale and command and f"@{scale}" in content["sweep"] and "--scale" not in command:
            content["command"] = f"{command} --scale {shlex.quote(scale)}"  # the command of earlier versions trains all
        for variant in content["variants"]:  # plans of earlier versions have the axes in names only
            variant.setdefault("axes", dict(axes_in(variant["name"])))
        plan = checked(without_passwords(content), _PLAN)
        checked(plan.fit, _FIT)
        return plan
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        keys = ", ".join(known.name for known in fields(Plan))
        raise AblationsError(f"{path}: not a plan ({error}); the keys of a plan are {keys}") from error


def without_passwords(content: dict[str, Any]) -> dict[str, Any]:
    """The content of a plan.json with its passwords hidden."""
    hidden = values_without_secrets(content)
    with suppress(KeyError, ValueError, AttributeError):  # no command, or no command line
        hidden["command"] = command_without_secrets(shlex.split(content["command"]))
    return hidden


_PLAN, _FIT = TypeAdapter(Plan), TypeAdapter(FitOptions)
