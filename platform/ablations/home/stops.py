"""The runs that a sweep has stopped or flagged: `stopped.json` in its folder (docs/formats.md).

>>> stops = read_stops(sweep)
>>> stops["81d2f0a95c3b"].text(sweep.plan)
'stopped, A in [0.580, 0.620]: gain to 16000 GPU-hours below 0.01 with probability 0.93, after 23 readings (4899 ...)'

The run folder does not record the stop: another sweep without the rule continues to train the run.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pydantic import TypeAdapter

from ablations.errors import AblationsError
from ablations.files.checked_json import checked
from ablations.home.plan import Plan
from ablations.home.started_sweep import StartedSweep
from ablations.text import counted
from scalerl.plain_json import parsed_json
from scalerl.run.run_folder import write_atomically

STOPS_FILE = "stopped.json"
Rule = Literal["gain", "dominated", "collapse", "truncation"]


@dataclass(frozen=True, kw_only=True)
class Stopped:
    """A run that a rule stopped or flagged, with the facts at that time.

    Stopped(run="81d2f0a95c3b", variant="loo-loss", seed=0, rule="gain", ends_run=True, value=0.93,
            compute_gpu_hours=4899.0, num_readings=23, A_lo=0.58, A_hi=0.62, budget_gpu_hours=16000.0,
            stop={"gain_below": 0.01, "probability": 0.9, ...})
    """

    run: str
    variant: str
    seed: int
    rule: Rule
    ends_run: bool
    """True if the rule stopped the run; False if it only flagged the run."""
    value: float
    """The rule's probability, or the fraction of truncated answers."""
    compute_gpu_hours: float
    num_readings: int
    """Evaluations after step 0."""
    A_lo: float | None
    """Interval of A in the fit at that time; None without a fit, or for an end that the evaluations do not bound."""
    A_hi: float | None
    budget_gpu_hours: float
    """Budget at the decision; under a different budget or `stop` block the run is judged again."""
    stop: dict[str, Any]

    def text(self, plan: Plan) -> str:
        """The decision as text: the rule, the value it measured, and the number of evaluations read."""
        budget = plan.hours_text(self.budget_gpu_hours)
        reasons = {
            "gain": f"gain to {budget} below {self.stop['gain_below']} with probability {self.value:.2f}",
            "dominated": f"below {plan.reference} at {budget} with probability {self.value:.2f}",
            "collapse": "the pass rate has collapsed",
            "truncation": f"{self.value:.0%} of the answers are truncated",
        }
        after = f"after {counted(self.num_readings, 'evaluation')} ({plan.hours_text(self.compute_gpu_hours)})"
        shown = f"stopped, {self.ceiling()}" if self.ends_run else "flagged"
        return f"{shown}: {reasons[self.rule]}, {after}"

    def ceiling(self) -> str:
        """The interval of A as text: `A in [0.580, 0.620]`, `A >= 0.58`, or `no fit`."""
        if self.A_lo is None:
            return "no fit"
        if self.A_hi is None:
            return f"A >= {math.floor(self.A_lo * 100) / 100:.2f}"
        return f"A in [{self.A_lo:.3f}, {self.A_hi:.3f}]"


_WRITTEN = TypeAdapter(list[Stopped])


def read_stops(sweep: StartedSweep) -> dict[str, Stopped]:
    """Decisions under the plan's budget and rules, by run; empty if the plan has no rules.

    AblationsError if the record is damaged.
    """
    path, plan = sweep.folder / STOPS_FILE, sweep.plan
    if plan.stop is None:
        return {}
    try:
        stops = checked(parsed_json(path.read_bytes())["runs"], _WRITTEN)
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise AblationsError(
            f"{path}: not a list of stopped runs ({error}). Delete the file to let `platform sweep` judge the runs "
            "again"
        ) from error
    now = (plan.budget_gpu_hours, plan.stop)
    return {stopped.run: stopped for stopped in stops if (stopped.budget_gpu_hours, stopped.stop) == now}


def write_stops(sweep: StartedSweep, stops: Iterable[Stopped]) -> None:
    """Replace the record of stopped runs, which `read_stops` reads."""
    content = {"runs": [asdict(stopped) for stopped in stops]}
    write_atomically(sweep.folder / STOPS_FILE, json.dumps(content, indent=1).encode())
