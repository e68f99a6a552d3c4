"""The plan of a sweep, `plan.json`: its variants and runs, its reference and its budget.

>>> plan = Plan.read(Path("ablation-runs/sweeps/loo/plan.json"))
>>> [variant.name for variant in plan.variants]
['scalerl', 'loo-off_policy', 'loo-loss', ...]

Everything after the start of a sweep (status, comparison, report, dashboard page, MLflow) reads this file and the run
folders. The sweep file is not read again, because it may have been edited.
"""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from ablations.errors import AblationsError
from ablations.files.checked_json import checked
from ablations.fit.options import FitOptions
from ablations.home.labels import Labels
from ablations.home.labels import PlannedRun as PlannedRun
from ablations.home.labels import PlannedVariant as PlannedVariant
from ablations.terminal.short_names import axes_in
from scalerl.run.run_folder import write_atomically


@dataclass(frozen=True, kw_only=True)
class Plan(Labels):
    """A sweep as last started; the reference is one of the variants.

    Plan(sweep="loo", reference="scalerl", scale="laptop", compute_unit_gpu_hours=2000.0, budget_gpu_hours=2000.0,
         fit_from_gpu_hours=0.0, fit_to_gpu_hours=1000.0, variants=(scalerl, loo_loss))
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    compute_unit_gpu_hours: float
    stop: dict[str, Any] | None = None
    """Rules that end runs early, as in the sweep file: {"gain_below": 0.01, "probability": 0.9, ...}."""
    notify: dict[str, Any] | None = None
    """The webhook to notify, as in the sweep file: {"url": "$SLACK_WEBHOOK", "on": ["failed", "done"]}."""
    claims: tuple[dict[str, Any], ...] = ()
    """A paper's claims about variants, as in the sweep file: {"variant": "loo-loss", "of": "ceiling", ...}."""

    @classmethod
    def read(cls, path: Path) -> "Plan":
        """Read a plan; raises AblationsError if the file is missing or is not a plan."""
        try:
            content = json.loads(path.read_bytes())
        except FileNotFoundError:
            raise AblationsError(f"{path}: no such plan; to create one, run `platform sweep FILE`") from None
        except ValueError as error:
            raise AblationsError(f"{path}: not a plan ({error}); to recreate it, run `platform sweep FILE`") from error
        try:
            content.pop("total_gpu_hours", None)  # plans of earlier versions have it, nearly always null
            for variant in content["variants"]:  # plans of earlier versions have the axes in names only
                variant.setdefault("axes", dict(axes_in(variant["name"])))
            plan = checked(content, _PLAN)
            checked(plan.fit, _FIT)
            return plan
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            keys = ", ".join(known.name for known in fields(cls))
            raise AblationsError(f"{path}: not a plan ({error}); the keys of a plan are {keys}") from error

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(asdict(self), indent=1).encode())


_PLAN, _FIT = TypeAdapter(Plan), TypeAdapter(FitOptions)
