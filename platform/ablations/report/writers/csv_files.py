"""The report as CSV files for other programs: numbers in full, not rounded.

curves.csv        every reading of every run, its fitted pass rate, and all that `compare` needs for the same answers
fits.csv          the fit of every run, or the reason why it has none
comparison.csv    every variant against the reference, with its changes
main_effects.csv  of a grid: every value of an axis against the reference's own, or the first
interactions.csv  of pairs of changes: what both do together beyond their sum

Other programs include spreadsheets: a name that is a formula there gets an apostrophe.

>>> sheet_text([{"variant": "=1+1", "A": 0.612}])
"variant,A\\n'=1+1,0.612\\n"
"""

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ablations.findings.results import Results
from ablations.fit.curve import COUNTS, VARIANCES
from ablations.fit.settings_text import settings_text
from ablations.readings.fitted_run import FittedRun
from ablations.report.figures.axes import is_fitted
from ablations.terminal.visible import made_visible

FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "|")
"""First characters of texts that a spreadsheet would compute or send to another program."""
COMPUTE_COUNTER = "compute_gpu_hours"
"""The counter that serves as the compute of a curve."""


def csv_files(results: Results) -> dict[str, bytes]:
    """The files by name; `platform fit` and `platform compare` can read the curves."""
    sheets = {
        "curves.csv": sheet_text([row for run in results.runs for row in _readings(run, results)]),
        "fits.csv": sheet_text([_fit_row(run) for run in results.runs]),
        "comparison.csv": sheet_text(results.rows()),
    }
    if results.grid:
        sheets["main_effects.csv"] = sheet_text([effect.to_json() for effect in results.grid.effects])
    if results.interactions:
        rows = [one.to_json() | {"words": one.said} for one in results.interactions]
        sheets["interactions.csv"] = sheet_text(rows)
    return {name: text.encode() for name, text in sheets.items()}


def _readings(run: FittedRun, results: Results) -> Iterator[dict[str, Any]]:
    curve, plan = run.curve, results.plan
    if curve is None:
        return
    counts = {name: values for name in COUNTS if (values := getattr(curve, name)) is not None}
    noise = {name: values for name in VARIANCES if (values := getattr(curve, name)) is not None}
    variances = {name: values for name, values in noise.items() if not np.isnan(values).all()}
    fitted_score, counters = run.fit.predict(curve.compute) if run.fit else None, _counters(run)
    for place, inside in enumerate(is_fitted(run.fit, curve.compute)):
        compute = float(curve.compute[place])
        yield {
            "curve": run.variant,
            "seed": run.seed,
            "compute": compute,
            "score": float(curve.score[place]),
            **{name: int(count[place]) for name, count in counts.items()},
            "fitted_score": None if fitted_score is None else float(fitted_score[place]),
            "is_fitted": str(bool(inside)).lower(),
            "compute_unit": plan.compute_name,
            "run": run.id,
            "run_start": curve.start,
            **{name: _known(values[place]) for name, values in variances.items()},
            **counters.get(compute, {}),
            **({"run_state": str(run.state)} if run.state else {}),
            "reference_variant": plan.reference,
            **({"scale": plan.scale} if plan.scale else {}),
            **({"fit_settings": text} if (text := settings_text(plan.fit_settings)) else {}),
        }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _counters(run: FittedRun) -> dict[float, dict[str, float]]:
    """Counters of the evaluations that a curve does not have itself, by compute."""
    others = {name: values.tolist() for name, values in run.counts.items() if name not in (COMPUTE_COUNTER, *COUNTS)}
    every = zip(*others.values(), strict=True) if others else ()
    return {
        compute: dict(zip(others, values, strict=True))
        for compute, values in zip(run.counts.get(COMPUTE_COUNTER, np.array([])).tolist(), every, strict=bool(others))
    }


def _fit_row(run: FittedRun) -> dict[str, Any]:
    """The keys of `platform fit --json`, with lists and mappings as JSON."""
    plain = {
        name: json.dumps(value) if isinstance(value, dict | list | tuple) else value
        for name, value in run.to_json().items()
        if name != "curve"
    }
    return {"variant": run.variant, "seed": run.seed, "run": run.id} | plain


def sheet_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """A header and a line per row; a missing column is an empty cell. Without rows the text is empty."""
    target = io.StringIO()
    if rows:
        writer = csv.DictWriter(target, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: safe_cell(value) for key, value in row.items()} for row in rows)
    return target.getvalue()


def safe_cell(value: Any) -> Any:
    """A number unchanged; a text with its control characters visible, and an apostrophe before a formula."""
    if not isinstance(value, str):
        return value
    text = made_visible(value)
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text
