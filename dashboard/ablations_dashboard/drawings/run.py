"""Figures of one run, and of one training metric of several variants, without Streamlit."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Literal

import numpy as np
import pandas as pd

from ablations.report.figures.axes import range_around, range_without_outliers
from ablations.report.figures.chart import (
    Axis,
    Band,
    Bars,
    Chart,
    DottedLine,
    EdgeLabel,
    Mark,
    Panel,
    Series,
    rows_axis,
)
from ablations.report.figures.colours import BLUE, COLOURS, ORANGE, Style
from ablations.text import compute_title

Counter = Literal["compute_gpu_hours", "step", "wall_s"]
RAW_OPACITY = 0.25
ENDS_BEGIN = "ends_"
"""What the metrics begin with that are shares of episodes by why they ended."""
MOST_DRAWN = 600
"""Limit on the points of a line; a figure has too few columns of pixels to show more."""
IDLE = frozenset({"wait_prompts", "wait_weights", "wait_environment", "wait_rollouts", "wait_evaluator", "dead"})
"""Activities in which a device contributes nothing."""


def counter_titles(compute_name: str) -> dict[Counter, str]:
    """Axis titles for a training metric; `compute_name` is the sweep's name for compute."""
    return {
        "compute_gpu_hours": compute_title(compute_name),
        "step": "optimiser step",
        "wall_s": "seconds trained",
    }


METRIC_LEGEND = (
    "A line is the mean over the seeds that have got this far; its band reaches from the lowest seed to the highest. "
    "Both are smoothed. With one seed, the steps themselves are drawn faintly."
)
"""Caption of `metric_chart`."""


def metric_chart(
    metric: str,
    variants: Mapping[str, tuple[Sequence[pd.DataFrame], Style]],
    *,
    against: Counter,
    smoothed: int,
    compute_name: str,
) -> Chart:
    """One training metric of several variants, given the steps of their seeds: a line, a band, and the name at the
    right edge. Each seed is a mean over `smoothed` steps."""
    bands, lines, labels = list[Mark](), list[Mark](), list[EdgeLabel]()
    for name, (seeds, style) in variants.items():
        known = [rows.dropna(subset=[against, metric]) for rows in seeds if metric in rows]
        if not (known := [rows for rows in known if len(rows)]):
            continue
        look: dict[str, Any] = {"colour": style.colour, "name": name}
        if len(known) == 1 and smoothed > 1:
            x, y = (known[0][column].to_numpy() for column in (against, metric))
            bands.append(Series(x=x, y=y, width=1.0, opacity=RAW_OPACITY, **look))
        x, of_seeds = _on_one_axis(known, metric, against, smoothed)
        mean = np.nanmean(of_seeds, axis=0)
        if len(known) > 1:
            low, high = np.nanmin(of_seeds, axis=0), np.nanmax(of_seeds, axis=0)
            bands.append(Band(x=x, low=low, high=high, **look))
        lines.append(Series(x=x, y=mean, width=2.0, hover="{y:.4g}", **look))
        labels.append(EdgeLabel(y=float(mean[-1]), name=name, colour=style.colour))
    heights = [np.concatenate([one.low, one.high]) if isinstance(one, Band) else np.asarray(one.y)
               for one in [*bands, *lines] if isinstance(one, Band | Series)]  # fmt: skip
    ends = _metric_range(np.concatenate(heights)) if heights else (0.0, 1.0)
    labels = [replace(one, y=float(np.clip(one.y, *ends))) for one in labels]
    x_axis, y_axis = Axis(title=counter_titles(compute_name)[against]), Axis(title=metric, range=ends)
    panel = Panel(x=x_axis, y=y_axis, marks=[*bands, *lines], labels=labels, height=400)
    return Chart(alt=f"{metric} of each variant", panels=[panel], is_read_at_x=True)


def _on_one_axis(
    seeds: Sequence[pd.DataFrame], metric: str, against: Counter, smoothed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Points of the counter, and the smoothed metric of each seed there, of shape (seeds, points); NaN beyond its
    steps."""
    places = [rows[against].to_numpy(dtype=float) for rows in seeds]
    x = np.unique(np.concatenate(places))
    if x.size > MOST_DRAWN:
        x = np.linspace(x[0], x[-1], MOST_DRAWN)
    means = [pd.Series(rows[metric]).rolling(smoothed, min_periods=1, center=True).mean() for rows in seeds]
    found = np.array(
        [np.interp(x, at, np.asarray(mean), left=np.nan, right=np.nan) for at, mean in zip(places, means, strict=True)]
    )
    is_known = np.isfinite(found).any(axis=0)
    return x[is_known], found[:, is_known]


def _metric_range(values: np.ndarray) -> tuple[float, float]:
    """The ends of the axis of a metric, without readings that lie far out; a constant is in its middle."""
    low, high = range_without_outliers(values)
    if low == high:
        return low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
    return range_around([low, high])


def thinned_rows(rows: pd.DataFrame, against: Counter, metric: str, most: int = MOST_DRAWN) -> pd.DataFrame:
    """Mean, minimum and maximum of a metric, and the mean of the counter, over at most `most` groups of neighbours."""
    known = pd.DataFrame(rows[[against, metric]]).dropna()
    bins = np.arange(len(known)) * min(most, len(known)) // max(1, len(known))
    shown = {against: (against, "mean"), "mean": (metric, "mean"), "least": (metric, "min"), "most": (metric, "max")}
    return pd.DataFrame(known.groupby(bins).agg(**shown))


def metrics_chart(
    rows: pd.DataFrame,
    titles: Mapping[str, str],
    *,
    against: Counter,
    title: str,
    smoothed: int,
    height: float,
    marks: Sequence[float] = (),
) -> Chart:
    """The metrics of `titles`, one below another with a common horizontal axis: zooming one zooms all.

    Each has the measured line (or the range of thinned steps) faint, and a mean over `smoothed` steps. `titles` are
    their headings, `height` is that of one of them in pixels, `marks` are places on the axis with a dotted line.
    """
    # From zero, since a range of its own would undo the reader's zoom with each new step.
    panels = [
        Panel(
            title=heading, x=Axis(title=title if metric == list(titles)[-1] else "", from_zero=True),
            y=Axis(from_zero=_is_one_value(pd.Series(rows[metric]))), rules=_rules(marks), height=height,
            marks=metric_lines(rows, metric, against, smoothed),
        )
        for metric, heading in titles.items()
    ]  # fmt: skip
    return Chart(alt=f"{', '.join(titles.values())} over {title}", panels=panels, is_stacked=True, has_common_x=True)


def _is_one_value(values: pd.Series) -> bool:
    """True for one value of 0 or more, whose range would go below 0."""
    known = values.dropna().to_numpy()
    return bool(known.size and known.min() == known.max() >= 0)


def metric_lines(rows: pd.DataFrame, metric: str, against: Counter, smoothed: int) -> list[Mark]:
    """The lines of one metric: the faint ones, then the mean."""
    drawn, found = thinned_rows(rows, against, metric), list[Mark]()
    x, mean = drawn[against].to_numpy(), pd.Series(drawn["mean"])
    if len(drawn) < len(rows):
        found.append(Band(x=x, low=drawn["least"].to_numpy(), high=drawn["most"].to_numpy(), colour=BLUE))
    elif smoothed > 1:
        found.append(Series(x=x, y=mean.to_numpy(), colour=BLUE, width=1.0, opacity=0.3))
    width = max(1, smoothed * len(drawn) // max(1, len(rows)))
    line = np.asarray(mean.rolling(width, min_periods=1, center=True).mean())
    return [*found, Series(x=x, y=line, colour=BLUE, width=2.0, name=metric, hover="{x:.5g}: {y:.4g}")]


def ends_chart(rows: pd.DataFrame, compute_name: str, *, smoothed: int, height: float) -> Chart | None:
    """Shares of episodes by why they ended against compute, a line for each reason that has occurred; None without."""
    names = [name for name in rows if str(name).startswith(ENDS_BEGIN) and pd.Series(rows[name]).max() > 0]
    lines = []
    for place, name in enumerate(map(str, names)):
        drawn = thinned_rows(rows, "compute_gpu_hours", name)
        width = max(1, smoothed * len(drawn) // max(1, len(rows)))
        reason = name.removeprefix(ENDS_BEGIN).replace("_", " ")
        lines.append(
            Series(
                x=drawn["compute_gpu_hours"].to_numpy(), colour=COLOURS[place % len(COLOURS)], width=2.0,
                y=np.asarray(pd.Series(drawn["mean"]).rolling(width, min_periods=1, center=True).mean()),
                name=reason, legend=reason, hover="{x:.4g}: {y:.1%}",
            )
        )  # fmt: skip
    x = Axis(title=counter_titles(compute_name)["compute_gpu_hours"])
    panel = Panel(x=x, y=Axis(title="share of episodes", is_share=True, from_zero=True), marks=lines, height=height)
    return Chart(alt="Episodes by why they ended", panels=[panel], legend="above") if lines else None


def _rules(marks: Sequence[float]) -> list[DottedLine]:
    return [DottedLine(x=x, colour=ORANGE) for x in marks]


def hours_chart(device_s: Mapping[str, Mapping[str, float]]) -> Chart:
    """Shares of each role's device time by activity; waiting time is hatched."""
    activities = list(dict.fromkeys(activity for of_role in device_s.values() for activity in of_role))
    activities.sort(key=lambda activity: activity in IDLE)
    totals = [sum(of_role.values()) or 1.0 for of_role in device_s.values()]
    shares = {
        activity: [of_role.get(activity, 0.0) / total for of_role, total in zip(device_s.values(), totals, strict=True)]
        for activity in activities
    }
    starts = accumulate(shares.values(), lambda sofar, own: np.add(sofar, own), initial=np.zeros(len(totals)))
    bars = [
        Bars(
            lengths=own, starts=list(start), colours=[COLOURS[place % len(COLOURS)]] * len(own),
            is_hatched=activity in IDLE, name=activity.replace("_", " "), legend=activity.replace("_", " "),
            hover="{text}", texts=[f"{role}: {share:.1%}" for role, share in zip(device_s, own, strict=True)],
        )
        for place, ((activity, own), start) in enumerate(zip(shares.items(), starts, strict=False))
    ]  # fmt: skip
    panel = Panel(
        x=Axis(title="share of device time", range=(0.0, 1.0), is_share=True), y=rows_axis(list(device_s)),
        marks=bars, num_rows=len(device_s), row_height=50,
    )  # fmt: skip
    return Chart(alt="Shares of device time by activity", panels=[panel], legend="above")


def pass_rate_chart(
    rows: Sequence[Mapping[str, Any]], compute_name: str, unit: str, *, height: float, marks: Sequence[float] = ()
) -> Chart:
    """Pass rate of each evaluated task against compute, downstream files dashed; a dotted line at each of `marks`."""
    names = list(dict.fromkeys((row["kind"], row["task"]) for row in rows))
    lines = []
    for place, (kind, task) in enumerate(names):
        own = [row for row in rows if (row["kind"], row["task"]) == (kind, task)]
        name = task if kind == "eval" else f"{task} (only measured)"
        lines.append(
            Series(
                x=[row["compute_gpu_hours"] for row in own], y=[row["pass_rate"] for row in own],
                colour=COLOURS[place % len(COLOURS)], width=2.0, dash="solid" if kind == "eval" else "dash",
                symbol="circle", size=5.0, name=name, legend=name if len(names) > 1 else "",
                hover="{x:.4g} {unit}: {y:.4f}",
            )
        )  # fmt: skip
    x = Axis(title=counter_titles(compute_name)["compute_gpu_hours"], unit=unit)
    panel = Panel(x=x, y=Axis(title="held-out pass rate"), marks=lines, rules=_rules(marks), height=height)
    return Chart(alt="Pass rate against compute", panels=[panel], legend="above" if len(names) > 1 else "")
