"""The plan of a sweep, `plan.json`: its variants and runs, its reference and its budget.

>>> plan = Plan.read(Path("ablation-runs/sweeps/loo/plan.json"))
>>> [variant.name for variant in plan.variants]
['scalerl', 'loo-off_policy', 'loo-loss', ...]

Everything after the start of a sweep (status, comparison, report, page, MLflow) reads this file and the run folders,
never the sweep file, which may have been edited since.
"""

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ablations.errors import AblationsError
from ablations.files.checked_json import checked
from ablations.fit.options import FitOptions, FitSettings
from ablations.text import changes_text, four_digits
from scalerl.run.run_folder import write_atomically


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One training: `PlannedRun(seed=0, id="3f0c9a1b2d4e")`."""

    seed: int
    id: str


@dataclass(frozen=True, kw_only=True)
class PlannedVariant:
    """One recipe, trained once with each seed; the reference overrides nothing.

    PlannedVariant(name="loo-loss", overrides={"loss": {"type": "dapo"}}, runs=(PlannedRun(seed=0, id="81d2f0a95c3b"),))
    """

    name: str
    overrides: dict[str, Any]
    runs: tuple[PlannedRun, ...]

    @property
    def changes(self) -> str:
        """As people read them: `loss.type = dapo, batch.prompts = 32`; empty for the reference."""
        return changes_text(self.overrides)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A sweep as it was last started, the reference among its variants.

    Plan(sweep="loo", reference="scalerl", scale="laptop", compute_unit_gpu_hours=2000.0, budget_gpu_hours=2000.0,
         fit_from_gpu_hours=0.0, fit_to_gpu_hours=1000.0, variants=(scalerl, loo_loss))
    """

    sweep: str
    doc: str = ""
    command: str = ""
    """What started it."""
    reference: str
    scale: str
    compute_unit_gpu_hours: float
    compute_name: str = "modelled GPU-hours"
    """What every compute here and in its runs is counted in: that, or "measured device-hours" on the wall clock."""
    budget_gpu_hours: float
    """Compute each run is trained for."""
    fit_from_gpu_hours: float
    fit_to_gpu_hours: float
    """Readings outside [fit_from, fit_to] are not fitted; those above check the forecast."""
    total_gpu_hours: float | None = None
    """Compute of all runs together, shared out in rounds; None where every run gets its budget."""
    stop: dict[str, Any] | None = None
    """When runs end early, as in the sweep file: {"gain_below": 0.01, "probability": 0.9, ...}."""
    search: bool = False
    """Whether it is a search, to which trials are added while it runs."""
    fit: dict[str, Any] = field(default_factory=dict)
    """How curves are fitted, as in the sweep file: {"r0": "anchored", "loss": "squares", "task": null, ...}."""
    published: dict[str, dict[str, float]] = field(default_factory=dict)
    """What a paper reports of a variant: {"loo-loss": {"A": 0.59, "B": 1.77, "C_mid": 2600.0}}."""
    claims: tuple[dict[str, Any], ...] = ()
    """What a paper says of variants, as in the sweep file: {"variant": "loo-loss", "of": "ceiling", ...}."""
    variants: tuple[PlannedVariant, ...]

    @property
    def runs(self) -> tuple[PlannedRun, ...]:
        """The runs of all variants."""
        return tuple(run for variant in self.variants for run in variant.runs)

    @property
    def is_steered(self) -> bool:
        """Whether something must watch the runs while they train: a stop rule, or a total to share out."""
        return self.stop is not None or self.total_gpu_hours is not None

    @property
    def hours_name(self) -> str:
        """`GPU-hours`, or `device-hours` on the wall clock: `compute_name` without how they are counted."""
        return self.compute_name.rpartition(" ")[2]

    def hours_text(self, compute_gpu_hours: float) -> str:
        """Compute with its unit, in four digits: `1200 GPU-hours`, or `1200 device-hours` on the wall clock."""
        return f"{four_digits(compute_gpu_hours)} {self.hours_name}"

    @property
    def fit_settings(self) -> FitSettings:
        """What a fit of one of its curves is told."""
        options = FitOptions(**self.fit)
        return FitSettings(
            fit_from="auto" if options.cutoff == "auto" else self.fit_from_gpu_hours,
            fit_to=self.fit_to_gpu_hours,
            r0=options.r0,
            loss=options.loss,
            ceiling=options.ceiling,
            task=options.task,
        )

    @classmethod
    def read(cls, path: Path) -> "Plan":
        """The plan in a file; AblationsError if the file is missing or is no plan."""
        try:
            content = json.loads(path.read_bytes())
        except FileNotFoundError:
            raise AblationsError(f"{path}: no such plan; `platform sweep FILE` makes one") from None
        except ValueError as error:
            raise AblationsError(f"{path}: not a plan ({error}); `platform sweep FILE` makes it again") from error
        try:
            plan = cls(**content | {"variants": tuple(_variant(variant) for variant in content["variants"])})
            checked(plan.fit, _FIT)
            return checked(asdict(plan), _PLAN)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            keys = ", ".join(known.name for known in fields(cls))
            raise AblationsError(f"{path}: not a plan ({error}); its keys are {keys}") from error

    def write(self, path: Path) -> None:
        """Replace the file in one step."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(asdict(self), indent=1).encode())


_PLAN, _FIT = TypeAdapter(Plan), TypeAdapter(FitOptions)


def _variant(content: dict[str, Any]) -> PlannedVariant:
    runs = tuple(PlannedRun(**run) for run in content["runs"])
    return PlannedVariant(name=content["name"], overrides=content["overrides"], runs=runs)
