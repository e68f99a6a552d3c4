"""Fits and comparisons as Rich tables: never an asymptote without its interval, nor a difference without its baseline."""

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from ablations.results import FittedCurve, Results
from ablations.summary import columns, interval_text

STYLES = {"ceiling up": "green", "ceiling down": "red", "cannot tell": "yellow"}


def comparison_table(results: Results) -> Table:
    """One line a variant: its ceiling, how it differs from the reference, how fast it gets there, what it cost."""
    plan = results.plan
    lines = [columns(results, variant) for variant in results.variants]
    table = Table(
        title=f"{plan.sweep} at scale {plan.scale}, {plan.budget_gpu_hours:g} modelled GPU-hours a run",
        title_justify="left",
        caption="\n".join(results.reasons) or None,
        caption_justify="left",
        box=None,
        pad_edge=False,
    )
    for name in lines[0]:
        table.add_column(name, justify="left" if name in ("variant", "difference", "fit") else "right")
    for line in lines:
        table.add_row(*map(escape, line.values()), style=STYLES.get(line["difference"]))
    return table


def fit_table(fitted: Sequence[FittedCurve]) -> Table:
    """One line a curve, or why it has no fit."""
    table = Table("curve", box=None, pad_edge=False)
    for name in ("A [95 %]", "B [95 %]", "C_mid [95 %]", "R_0", "points", "window", "R²"):
        table.add_column(name, justify="right")
    table.add_column("verdict", overflow="fold")
    for one in fitted:
        fit = one.fit
        if fit is None:
            table.add_row(one.name, *[""] * 7, one.reason)
            continue
        cells = (
            fit.asymptote_text(),
            interval_text(fit.B, fit.B_lo, fit.B_hi, ".2f"),
            interval_text(fit.C_mid, fit.C_mid_lo, fit.C_mid_hi, ".4g"),
            f"{fit.R_0:.3f}",
            str(fit.points),
            f"{fit.window[0]:.4g} to {fit.window[1]:.4g}",
            f"{fit.r_squared:.3f}",
            fit.verdict,
        )
        table.add_row(one.name, *map(escape, cells))
    return table
