"""Forecasts of the end of real runs from their first part, beside five plain rules: a table of errors and intervals.

    PYTHONPATH=platform:trainer:benchmarks OMP_NUM_THREADS=1 python benchmarks/forecast_shelf.py [CURVES]

The shelf: our 51 runs of eight units (docs/results/ceilings), the runs of SmolLM2-135M (docs/results/smollm*.csv) and,
if the folder CURVES is given, the CSV files of other people's curves in it. Each run is cut after .3, .5 and .7 of its
compute; foretold is the mean of its last three readings. Our runs are two halves by the SHA-256 of their ids: the first
may tune a forecast, the second only measures it. The half-width of a rule is the 95th percentile of its own absolute
errors on all other runs of the same source and cut. The interval score is width + 40 x distance outside (Gneiting and
Raftery 2007, for 95 %), so less is better. The product is measured as `platform forecast --backtest` does, as if all
other runs of its source had finished, and once for each run alone. Writes `results/forecast_shelf.json`.
"""

import argparse
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from record import write_record
from scipy.optimize import curve_fit

from ablations.answers.past_forecasts import FRACTIONS, NUM_LAST
from ablations.findings.backtest import Check, backtest, mean_interval_score
from ablations.fit.curve import Curve
from ablations.fit.options import FitSettings

RESULTS = Path(__file__).parents[1] / "docs" / "results"
NUM_STARTS = 6
LEVEL = 0.95


@dataclass(frozen=True, kw_only=True, eq=False)
class Shelved:
    """A run of the shelf: `Shelved(source="ours, measured", variant="scalerl", curve=<Curve 'scalerl-s0': ...>)`."""

    source: str
    variant: str
    curve: Curve


@dataclass(frozen=True, kw_only=True)
class Foretold:
    """The mean of a run's last readings, foretold from its first part."""

    source: str
    fraction: float
    run: str
    end: float
    """What was measured."""
    value: float
    lo: float
    hi: float


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("curves", nargs="?", type=Path, help="folder with CSV files of other people's curves")
    runs = list(shelf(asked.parse_args().curves))
    rows, checks = [], {BESIDE: list(beside(runs)), ALONE: list(alone(runs))}
    for fraction in FRACTIONS:
        cut = [one for one in runs if is_long_enough(one.curve, fraction)]
        found = {name: list(foretold(cut, made, fraction)) for name, made in checks.items()}
        found |= {name: by_rule(cut, fraction, rule) for name, rule in RULES.items()}
        both = {one.run for one in found[BESIDE]}  # rules are also scored where the product has no forecast
        for name, of_rule in found.items():
            for source in dict.fromkeys(one.source for one in cut):
                of_source = [one for one in of_rule if one.source == source]
                rows += [summary(name, source, fraction, of_source, both)] if of_source else []
    for row in rows:
        print(json.dumps(row))
    write_record("forecast_shelf", {"runs": len(runs), "rows": rows})


def shelf(others: Path | None) -> Iterator[Shelved]:
    """Every run once; a run that several studies share has one id."""
    seen = set()
    files = {"ours": sorted((RESULTS / "ceilings").glob("*.csv.gz")), "SmolLM2": sorted(RESULTS.glob("smollm*.csv"))}
    for source, paths in files.items():
        for path in paths:
            for _, rows in pd.read_csv(path).groupby(["curve", "seed"], sort=False):
                variant, seed, run = (str(rows[name].iloc[0]) for name in ("curve", "seed", "run"))
                if run not in seen:
                    seen.add(run)
                    half = f", {'tuned' if is_tuned_on(run) else 'measured'}" if source == "ours" else ""
                    curve = curve_of(f"{variant}-s{seed} {run}", rows)
                    yield Shelved(source=source + half, variant=variant, curve=curve)
    for path in sorted(others.glob("*.csv")) if others else ():
        table = pd.read_csv(path)
        if "curve" in table.columns:  # the others are wide, and the same curves
            for name, rows in table.groupby("curve", sort=False):
                yield Shelved(source="public", variant=str(name), curve=curve_of(f"{path.stem} {name}", rows))


def is_tuned_on(run: str) -> bool:
    """True for the half of our runs that a forecast may be tuned on."""
    return hashlib.sha256(run.encode()).digest()[0] % 2 == 0


def curve_of(name: str, rows: pd.DataFrame) -> Curve:
    """The readings of one run, sorted by compute."""
    rows = rows.sort_values("compute")
    prompts, samples = (rows[one].to_numpy(float) if one in rows.columns else None for one in ("prompts", "samples"))
    compute, score = rows["compute"].to_numpy(float), rows["score"].to_numpy(float)
    return Curve(name=name, compute=compute, score=score, prompts=prompts, samples=samples)


def is_long_enough(curve: Curve, fraction: float) -> bool:
    """True if the last readings lie beyond the cut, and six before it."""
    within = (curve.compute > 0) & (curve.compute <= fraction * curve.compute[-1])
    return bool(np.sum(curve.compute > fraction * curve.compute[-1]) >= NUM_LAST and np.sum(within) >= NUM_STARTS)


BESIDE, ALONE = "product", "product, without finished runs"


def beside(runs: Sequence[Shelved]) -> Iterator[Check]:
    """What `platform forecast --backtest` says of each source."""
    for source in dict.fromkeys(family(one) for one in runs):
        by_variant: dict[str, list[Curve]] = {}
        for one in runs:
            if family(one) == source:
                by_variant.setdefault(one.variant, []).append(one.curve)
        yield from backtest(by_variant, FitSettings()).checks


def alone(runs: Sequence[Shelved]) -> Iterator[Check]:
    """The same of a home with one run."""
    for one in runs:
        yield from backtest({one.variant: [one.curve]}, FitSettings()).checks


def family(run: Shelved) -> str:
    """The source without its half."""
    return run.source.split(",")[0]


def foretold(runs: Sequence[Shelved], checks: Sequence[Check], fraction: float) -> Iterator[Foretold]:
    """The product's forecasts of these runs."""
    made = {one.curve: one for one in checks if one.fraction == fraction}
    for one in runs:
        check = made[one.curve.name]
        if check.predicted is not None and check.lo is not None and check.hi is not None:
            yield Foretold(
                source=one.source,
                fraction=fraction,
                run=one.curve.name,
                end=float(one.curve.score[-NUM_LAST:].mean()),
                value=check.predicted,
                lo=check.lo,
                hi=check.hi,
            )


def by_rule(runs: Sequence[Shelved], fraction: float, rule: "Rule") -> list[Foretold]:
    """A rule's value of each run, with the half-width that its errors on the others give."""
    ends = np.array([one.curve.score[-NUM_LAST:].mean() for one in runs])
    values = np.array([rule(*part(one.curve, fraction)) for one in runs])
    sources = np.array([family(one) for one in runs])
    errors = np.abs(values - ends)
    foretold = []
    for index, one in enumerate(runs):
        others = (sources == sources[index]) & (np.arange(ends.size) != index)
        half = float(np.quantile(errors[others], LEVEL)) if others.any() else np.nan
        value, end = float(values[index]), float(ends[index])
        foretold.append(
            Foretold(
                source=one.source,
                fraction=fraction,
                run=one.curve.name,
                end=end,
                value=value,
                lo=max(value - half, 0.0),
                hi=min(value + half, 1.0),
            )
        )
    return foretold


def part(curve: Curve, fraction: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute and pass rate of the readings up to the cut and beyond step 0, and the computes foretold."""
    within = (curve.compute > 0) & (curve.compute <= fraction * curve.compute[-1])
    return curve.compute[within], curve.score[within], curve.compute[-NUM_LAST:]


Rule = Callable[[np.ndarray, np.ndarray, np.ndarray], float]


def carried_on(compute: np.ndarray, score: np.ndarray, at: np.ndarray) -> float:
    """The mean of the last three readings."""
    return float(score[-NUM_LAST:].mean())


def eq_1(compute: np.ndarray, score: np.ndarray, at: np.ndarray) -> float:
    """ScaleRL eq. 1 by least squares."""
    return float(fitted(sigmoid, compute, score, SIGMOID_STARTS)(at).mean())


def carried_on_plus_rise(compute: np.ndarray, score: np.ndarray, at: np.ndarray) -> float:
    """The mean of the last three readings plus what eq. 1 by least squares rises from there."""
    law = fitted(sigmoid, compute, score, SIGMOID_STARTS)
    return float(score[-NUM_LAST:].mean() + law(at).mean() - law(compute[-NUM_LAST:]).mean())


def power_law(compute: np.ndarray, score: np.ndarray, at: np.ndarray) -> float:
    """A - b C^-c by least squares."""
    return float(fitted(power, compute, score, POWER_STARTS)(at).mean())


def straight_on(compute: np.ndarray, score: np.ndarray, at: np.ndarray) -> float:
    """The straight line in ln C through the last half of the readings, on average over the computes foretold."""
    last = slice(-max(score.size // 2, NUM_LAST), None)
    slope, level = np.polyfit(np.log(compute[last]), score[last], 1)
    return float(np.clip(level + slope * np.log(at), 0, 1).mean())


def sigmoid(compute: np.ndarray, start: float, ceiling: float, mid: float, rate: float) -> np.ndarray:
    """R_0 + (A - R_0) / (1 + (C_mid / C)^B), with ln C_mid and ln B as parameters."""
    return start + (ceiling - start) / (1 + (np.exp(mid) / compute) ** np.exp(rate))


def power(compute: np.ndarray, ceiling: float, log_b: float, log_c: float) -> np.ndarray:
    """A - b C^-c, with C in units of the first reading's."""
    return ceiling - np.exp(log_b) * compute ** -np.exp(log_c)


SIGMOID_STARTS = [(share, rate) for share in (0.1, 0.5, 1.5) for rate in (0.0, 0.7)]
POWER_STARTS = [(-1.0, -1.0), (-0.5, 0.0), (-1.5, -2.0)]


def fitted(
    law: Callable[..., np.ndarray], compute: np.ndarray, score: np.ndarray, starts: Sequence[tuple[float, float]]
) -> Callable[[np.ndarray], np.ndarray]:
    """The law with the least squares of several starts, inside [0, 1] for levels."""
    unit = compute[-1] if law is sigmoid else compute[0]
    x, best, least = compute / unit, None, np.inf
    low, high = float(score.min()), float(min(score.max() + 0.02, 1.0))
    for first, second in starts:
        if law is sigmoid:
            start, bounds = (low, high, np.log(first), second), ([0, 0, -7, -2], [1, 1, 7, 2.3])
        else:
            start, bounds = (high, first, second), ([0, -8, -5], [1, 1, 1.5])
        try:
            values, _ = curve_fit(law, x, score, p0=start, bounds=bounds, max_nfev=2000)
        except RuntimeError:  # not converged from this start
            continue
        loss = float(np.sum((law(x, *values) - score) ** 2))
        if loss < least:
            best, least = values, loss
    if best is None:
        raise RuntimeError("no start converged")
    return lambda at: law(at / unit, *best)


RULES: dict[str, Rule] = {
    "carried on": carried_on,
    "eq. 1, least squares": eq_1,
    "carried on + rise of eq. 1": carried_on_plus_rise,
    "power law": power_law,
    "straight on in ln C": straight_on,
}


def summary(name: str, source: str, fraction: float, found: Sequence[Foretold], both: set[str]) -> dict[str, Any]:
    """Errors and intervals of one forecast over the runs of a source."""
    errors = np.array([one.value - one.end for one in found])
    ends = (np.array([getattr(one, name) for one in found]) for name in ("end", "lo", "hi"))
    return {
        "forecast": name,
        "source": source,
        "fraction": fraction,
        "runs": len(found),
        "without_the_products": sum(one.run not in both for one in found),
        "mean_absolute_error": round(float(np.abs(errors).mean()), 4),
        "mean_error": round(float(errors.mean()), 4),
        "coverage": round(float(np.mean([one.lo <= one.end <= one.hi for one in found])), 3),
        "median_width": round(float(np.median([one.hi - one.lo for one in found])), 4),
        "mean_interval_score": round(mean_interval_score(*ends), 4),
    }


if __name__ == "__main__":
    main()
