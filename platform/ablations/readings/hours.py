"""How a run or a variant used its compute: device-seconds by role and activity, and compute without effect.

The trainer records them (`scalerl.cluster.device_seconds`, and the columns of a step); this module reads them from run
logs and puts them side by side.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

HOURS_HEADINGS = {
    ("generator", "decode"): "generators decode",
    ("generator", "wait_prompts"): "generators wait for prompts",
    ("generator", "wait_weights"): "generators wait for weights",
    ("generator", "wait_environment"): "generators wait for environments",
    ("generator", "sync"): "generators sync",
    ("generator", "dead"): "generators dead",
    ("generator", "unplayed"): "generators not played yet",
    ("trainer", "forward_backward"): "trainers forward, backward",
    ("trainer", "wait_rollouts"): "trainers wait for rollouts",
    ("trainer", "wait_evaluator"): "trainers wait for the evaluator",
    ("trainer", "sync"): "trainers sync",
    ("trainer", "coordinate"): "trainers coordinate",
    ("trainer", "dead"): "trainers dead",
    ("evaluator", "evaluate"): "evaluator measures",
    ("evaluator", "sync"): "evaluator syncs",
    ("evaluator", "wait_weights"): "evaluator waits for weights",
    ("evaluator", "dead"): "evaluator dead",
}
"""Rows of a table, by role and activity, in this order."""
WASTE_HEADINGS = {
    "no_signal": "no signal",
    "truncated": "truncated",
    "masked": "masked",
    "no_verdict": "not judged",
}
"""Ways in which compute is wasted, in this order."""
NOTE = (
    "Shares of each role's device time; checkpoints stop the clock and are not included, nor are evaluations "
    "without an evaluator. MFU: FLOPs of the model over the peak rate of all devices of the role. No signal, "
    "truncated, masked, not judged: shares of the compute spent on groups whose rewards are all equal, on answers "
    "cut at the token limit, on tokens that the correction masks, and on answers whose verifier or "
    "environment timed out or crashed; they overlap."
)


def wasted_in(row: Mapping[str, Any], *, masks: bool) -> dict[str, float]:
    """Shares of one optimiser step's rollouts or tokens by the names of WASTE_HEADINGS; `masks` if the run's correction
    leaves tokens out of the loss."""
    outcomes = row.get("outcomes") or {}
    lost = sum(outcomes.get(name, 0) for name in ("timed_out", "crashed"))
    masked = (row.get("corrected_below") or 0.0) + (row.get("corrected_above") or 0.0)
    return {
        "no_signal": row.get("zero_variance") or 0.0,
        "truncated": row.get("truncated") or 0.0,
        "masked": masked if masks else 0.0,
        "no_verdict": lost / max(1, sum(outcomes.values())),
    }


@dataclass(frozen=True, kw_only=True)
class Hours:
    """Device time spent up to the last step."""

    device_s: Mapping[str, Mapping[str, float]]
    tokens_per_s: float
    mfu: Mapping[str, float] | None
    """None if unknown."""
    compute: float = 0.0
    """Compute up to the last step, in GPU-hours or the unit of the plan."""
    wasted: Mapping[str, float] = field(default_factory=dict)
    """Share of that compute by the names of WASTE_HEADINGS."""

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, Any]], *, masks: bool = False) -> "Hours | None":
        """The account of the last step in a run log; None if there is none, as in logs of earlier versions.

        `masks` if the run's correction leaves tokens out of the loss.
        """
        so_far = HoursSoFar(masks=masks)
        for row in rows:
            so_far.add(row)
        return so_far.hours()

    @classmethod
    def of_runs(cls, runs: Sequence[Self]) -> Self | None:
        """The joint account of several runs, with rates averaged over all of their device time; None without a run."""
        if not runs:
            return None
        device_s: dict[str, dict[str, float]] = {}
        for run in runs:
            for role, seconds in run.device_s.items():
                sums = device_s.setdefault(role, defaultdict(float))
                for activity, spent in seconds.items():
                    sums[activity] += spent
        weights = [run.total_s / sum(each.total_s for each in runs) for run in runs]
        mfus = [run.mfu for run in runs if run.mfu is not None]
        compute = sum(run.compute for run in runs)
        return cls(
            device_s={role: dict(sums) for role, sums in device_s.items()},
            tokens_per_s=sum(weight * run.tokens_per_s for weight, run in zip(weights, runs, strict=True)),
            mfu={role: sum(weight * mfu[role] for weight, mfu in zip(weights, mfus, strict=True)) for role in mfus[0]}
            if len(mfus) == len(runs)
            else None,
            compute=compute,
            wasted={
                name: sum(run.compute * run.wasted.get(name, 0.0) for run in runs) / compute for name in WASTE_HEADINGS
            }
            if compute
            else {},
        )

    @property
    def total_s(self) -> float:
        """Total device-seconds."""
        return sum(sum(seconds.values()) for seconds in self.device_s.values())

    @property
    def shares(self) -> dict[tuple[str, str], float]:
        """The share of each role's device time, by role and activity."""
        return {
            (role, activity): spent / sum(seconds.values())
            for role, seconds in self.device_s.items()
            for activity, spent in seconds.items()
        }

    def numbers(self) -> dict[str, float]:
        """Numbers under flat names for a tracking server: `hours_generator_decode` is a share."""
        rates = {f"mfu_{role}": share for role, share in (self.mfu or {}).items()}
        shares = {f"hours_{role}_{activity}": share for (role, activity), share in self.shares.items()}
        wasted = {f"wasted_{name}": share for name, share in self.wasted.items()}
        return {**shares, **rates, **wasted, "tokens_per_s": self.tokens_per_s}

    def to_json(self) -> dict[str, Any]:
        wasted = {name: {"share": share, "compute": share * self.compute} for name, share in self.wasted.items()}
        return {"device_s": self.device_s, "tokens_per_s": self.tokens_per_s, "mfu": self.mfu, "wasted": wasted}


class HoursSoFar:
    """The account of a run whose rows are added in order; `masks` as in `Hours.of_rows`."""

    def __init__(self, *, masks: bool = False) -> None:
        self._masks, self._compute = masks, 0.0
        self._last: Mapping[str, Any] | None = None
        self._wasted = dict.fromkeys(WASTE_HEADINGS, 0.0)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row; only rows of optimiser steps are counted."""
        if row["kind"] != "train":
            return
        spent, self._compute, self._last = row["compute_gpu_hours"] - self._compute, row["compute_gpu_hours"], row
        for name, share in wasted_in(row, masks=self._masks).items():
            self._wasted[name] += share * spent

    def hours(self) -> Hours | None:
        """The account up to the last step; None if there is none."""
        if self._last is None or "device_s" not in self._last:
            return None
        return Hours(
            device_s=self._last["device_s"],
            tokens_per_s=self._last["tokens_per_s"],
            mfu=self._last["mfu"],
            compute=self._compute,
            wasted={name: spent / self._compute for name, spent in self._wasted.items()} if self._compute else {},
        )


def hours_cells(hours: Mapping[str, Hours | None]) -> list[dict[str, str]]:
    """One line per variant with an account, cells by heading; activities that took no time anywhere are left out."""
    known = {name: spent for name, spent in hours.items() if spent is not None}
    seen = {place for spent in known.values() for place, share in spent.shares.items() if share > 0}
    lost = {name for spent in known.values() for name, share in spent.wasted.items() if share > 0}
    lines = []
    for name, spent in known.items():
        shares, mfu = spent.shares, spent.mfu or {}
        lines.append(
            {
                "variant": name,
                **{title: f"{shares.get(place, 0.0):.1%}" for place, title in HOURS_HEADINGS.items() if place in seen},
                **{
                    title: f"{spent.wasted.get(name, 0.0):.1%}"
                    for name, title in WASTE_HEADINGS.items()
                    if name in lost
                },
                "tokens/s": f"{spent.tokens_per_s:,.0f}",
                "MFU of generators": f"{mfu['generator']:.1%}" if mfu else "",
                "MFU of trainers": f"{mfu['trainer']:.1%}" if mfu else "",
            }
        )
    return lines
