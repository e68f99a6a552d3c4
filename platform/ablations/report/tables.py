"""Fits and comparisons as Rich tables: never an asymptote without its interval, no difference without its baseline."""

from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Group
from rich.markup import escape
from rich.table import Table

from ablations.design.undecided import what_would_tell
from ablations.fit.asymptote import EQ1_DOUBTED
from ablations.fit.doubt import cutoff_table
from ablations.fit.words import in_words
from ablations.paper.comparison import PaperComparison
from ablations.paper.words import paper_line, paper_notes
from ablations.report.headings import paper_headings, under
from ablations.text import compute_text, counted, interval_text
from ablations.verdict.hours import NOTE, hours_cells
from ablations.verdict.results import FittedCurve, Results
from ablations.verdict.words import line_of, method, warnings

ROW_STYLES = {
    "level up": "green",
    "level down": "red",
    "ceiling up": "green",
    "ceiling down": "red",
    "less compute": "green",
    "more compute": "red",
}
HEADINGS = {
    "variant": "variant",
    "seeds": "seeds",
    "level": "level",
    "ceiling": "ceiling",
    "A": "A [95 %]",
    "efficiency": "compute",
    "C_mid": "C_mid",
    "B": "B",
    "cost": "cost",
    "fit": "fit",
}
"""Of a comparison, by field of `Line`: short, as a line has 160 characters."""
INTERVALS = {"level": "delta_level", "ceiling": "delta_A", "efficiency": "compute_ratio"}
"""Fields that stand below a verdict: the interval that it comes from."""
WORD_FIELDS = ("variant", "level", "ceiling", "paper_rule", "efficiency", "fit", "edges")
"""Fields that are words; all others are numbers, which stand on the right."""
MAX_WIDTHS = {"fit": 11}
"""Fields whose words go on two lines, so that intervals need not."""


def comparison_table(results: Results) -> Table:
    """One line per variant: its ceiling, how it differs from the reference, how fast it gets there, what it cost."""
    plan = results.plan
    notes = [
        f"Below each verdict: level and A less those of {plan.reference}, compute to a common target over its own. "
        f"C_mid and cost: {plan.compute_name}.",
        method(results),
        what_would_tell(results),
        *warnings(results),
        *results.reasons,
    ]
    table = Table(
        title=escape(_title(results)),
        caption="\n".join(escape(note) for note in notes if note),
        title_justify="left",
        caption_justify="left",
        box=None,
        pad_edge=False,
    )
    for field, heading in HEADINGS.items():
        justify = "left" if field in WORD_FIELDS else "right"
        table.add_column(heading, justify=justify, no_wrap=field == "variant", max_width=MAX_WIDTHS.get(field))
    lines = [line_of(results, variant) for variant in results.variants]
    for line in lines:
        cells = asdict(line)
        cells |= {verdict: f"{cells[verdict]}\n{cells[interval]}".rstrip() for verdict, interval in INTERVALS.items()}
        decided = (ROW_STYLES.get(verdict) for verdict in (line.level, line.ceiling, line.efficiency))
        table.add_row(*(escape(cells[field]) for field in HEADINGS), style=next(filter(None, decided), None))
    return table


def _title(results: Results) -> str:
    plan = results.plan
    if not plan.scale:  # curves of another trainer
        return f"{plan.sweep}, {counted(len(results.runs), 'run')}"
    of_task = f", task {plan.fit_settings.task}" if plan.fit_settings.task else ""
    return f"{plan.sweep} at scale {plan.scale}{of_task}, {plan.budget_gpu_hours:g} {plan.compute_name} per run"


def hours_table(results: Results) -> Table | None:
    """Where the hours of each variant went; None if no run says."""
    lines = hours_cells({variant.name: variant.hours for variant in results.variants})
    if not lines:
        return None
    table = Table(
        title="where the hours went",
        caption=NOTE,
        title_justify="left",
        caption_justify="left",
        box=None,
        pad_edge=False,
    )
    for heading in lines[0]:
        table.add_column(heading, justify="left" if heading == "variant" else "right", no_wrap=heading == "variant")
    for cells in lines:
        table.add_row(*map(escape, cells.values()))
    return table


def paper_table(comparison: PaperComparison, *, sweep: str, compute_name: str) -> Table:
    """One line per variant as the paper compares, with the warning below."""
    table = Table(
        title=f"{escape(sweep)} as arXiv 2510.13786 compares, against {escape(comparison.reference)}",
        caption="\n".join(escape(note) for note in paper_notes(comparison, compute_name)),
        title_justify="left",
        caption_justify="left",
        box=None,
        pad_edge=False,
    )
    headings = paper_headings(comparison)
    for field, heading in headings.items():
        justify = "left" if field in WORD_FIELDS else "right"
        table.add_column(escape(heading), justify=justify, no_wrap=field == "variant")
    for cells in under(headings, [paper_line(comparison, variant) for variant in comparison.variants]):
        table.add_row(*map(escape, cells.values()))
    return table


def fit_table(fitted: Sequence[FittedCurve]) -> Table:
    """One line per curve, or why it has no fit; below, what looks wrong with readings."""
    odd = [f"{one.name}: {text}." for one in fitted if one.fit for text in one.fit.oddities]
    caption = "\n".join(map(escape, odd)) or None
    table = Table("curve", box=None, pad_edge=False, caption=caption, caption_justify="left")
    for name in ("A [95 %]", "A under eq. 1", "B [95 %]", "C_mid [95 %]", "R_0", "points", "window", "R²"):
        table.add_column(name, justify="right")
    table.add_column("verdict", overflow="fold")
    for one in fitted:
        fit = one.fit
        if fit is None:
            table.add_row(escape(one.name), *[""] * 8, escape(one.reason))
            continue
        first, last = map(compute_text, fit.window)
        cells = (
            fit.asymptote.cell(),
            fit.asymptote_under_eq1.cell() if fit.rises else "",
            interval_text(fit.B, fit.B_lo, fit.B_hi, ".2f") if fit.rises else "",
            fit.midpoint_cell(),
            f"{fit.R_0:.3f}",
            str(fit.points),
            f"{first} to {last}",
            f"{fit.r_squared:.3f}",
            f"{fit.verdict}; {EQ1_DOUBTED}" if fit.doubts_eq1 else fit.verdict,
        )
        table.add_row(*map(escape, (one.name, *cells)))
    return table


def fit_words(one: FittedCurve) -> Group:
    """What a fit says in words, and the table of A against the cut-off."""
    if one.fit is None:
        return Group(f"\n{escape(one.name)}: {escape(one.reason)}")
    table = Table(box=None, pad_edge=False)
    for name in ("from compute", "points", "A [95 %]", "verdict"):
        table.add_column(name, justify="left" if name == "verdict" else "right")
    for row in cutoff_table(one.fit):
        table.add_row(compute_text(row.fit_from), str(row.points), escape(row.asymptote.cell()), row.verdict)
    return Group(f"\n[bold]{escape(one.name)}[/]: {escape(in_words(one.fit))}", table)
