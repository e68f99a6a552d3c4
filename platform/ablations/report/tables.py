"""Fits and comparisons for the terminal: never an asymptote without its interval, nor a difference without its
baseline.
"""

from collections.abc import Sequence

from rich.console import Group
from rich.text import Text

from ablations.answers.compare import VariantResult
from ablations.findings.advice import advice
from ablations.findings.paper_comparison import PaperComparison
from ablations.findings.results import Results
from ablations.fit.asymptote import EQ1_DOUBTED
from ablations.fit.doubt import cutoff_table
from ablations.fit.words import in_words
from ablations.home.plan import Plan
from ablations.readings.fitted_run import FittedCurve
from ablations.readings.hours import NOTE, hours_cells
from ablations.report.columns import HELD_MARK, TERMINAL, columns, rows_of
from ablations.report.headings import paper_headings, under
from ablations.report.words.comparison import changes_said, joint_note, method
from ablations.report.words.paper import paper_line, paper_notes
from ablations.terminal.listing import Column, Kind, Listing
from ablations.terminal.short_names import legend, shown_names
from ablations.terminal.sparkline import BARS, means_along, sparkline
from ablations.terminal.visible import made_visible
from ablations.text import at_scale, compute_text, counted, interval_text

HELD = f"{HELD_MARK}: also differs with intervals"


def comparison_table(results: Results) -> Listing:
    """One line per variant: its ceiling, its differences from the reference, and its cost."""
    plan, joint = results.plan, joint_note(results)
    below = ", ".join(one.heading.format(reference=plan.reference) for one in results.questions)
    curves, scale = sparklines(results)
    names = shown_names(variant.name for variant in plan.variants)
    notes = [
        *legend(names),
        *changes_said(results, names),
        scale,
        f"Below each verdict: {below}. C_mid and cost: {plan.compute_name}.",
        f"{HELD} {joint}." if joint and not (results.comparison and results.comparison.is_provisional) else "",
        method(results),
        advice(results),
        *(one.text for one in results.remarks),
        *results.reasons,
    ]
    shown = columns(results, TERMINAL)
    headed = [Column(heading=one.heading.partition(",")[0], kind=one.kind) for one in shown]  # a line is narrow
    if scale:
        headed.insert(2, Column(heading="curve", kind="prose"))
    table = Listing(columns=headed, title=_title(results), notes=notes)
    for variant, (name, *said) in zip(results.variants, rows_of(results, shown), strict=True):
        if scale:
            said.insert(1, curves[variant.name])
        table.add(names[name], *said, style=_style(results.compared(name)))
    return table


def _style(line: VariantResult | None) -> str:
    """Green or red by the first question whose answer differs."""
    for one in line.answers.values() if line else ():
        if one.differs:
            return "green" if one.verdict == one.question.better else "red"
    return ""


def sparklines(results: Results) -> tuple[dict[str, str], str]:
    """The curve of each variant, as the mean of its seeds, and a note with their common scale; no note without
    readings.
    """
    points = {
        variant.name: [
            point
            for run in variant.runs
            if run.curve is not None
            for point in zip(run.curve.compute.tolist(), run.curve.score.tolist(), strict=True)
        ]
        for variant in results.variants
    }
    end = max((compute for one in points.values() for compute, _ in one), default=0.0)
    if end == 0:
        return dict.fromkeys(points, ""), ""
    means = {name: means_along(one, end) for name, one in points.items()}
    known = [value for one in means.values() for value in one if value is not None]
    low, high = min(known), max(known)
    said = f"Curves: mean pass rate from {low:.3f} ({BARS[0]}) to {high:.3f} ({BARS[-1]}) over {compute_text(end)}"
    lines = {name: sparkline(one, low=low, high=high) for name, one in means.items()}
    return lines, f"{said} {results.plan.compute_name}."


def _title(results: Results) -> str:
    plan = results.plan
    if not isinstance(plan, Plan):  # curves of another trainer
        return f"{results.title}, {counted(len(results.runs), 'run')}"
    of_task = f", task {plan.fit_settings.task}" if plan.fit_settings.task else ""
    return f"{results.title}{at_scale(plan.scale)}{of_task}, {plan.budget_gpu_hours:g} {plan.compute_name} per run"


def hours_table(results: Results) -> Listing | None:
    """Device time of each variant; None if no run has it."""
    lines = hours_cells({variant.name: variant.hours for variant in results.variants})
    if not lines:
        return None
    names = shown_names(variant.name for variant in results.plan.variants)
    table = Listing(
        columns=[Column(heading=name, kind="number" if name != "variant" else "name") for name in lines[0]],
        title="where the hours went",
        notes=(NOTE,),
        turns=True,
    )
    for cells in lines:
        table.add(*(cells | {"variant": names[cells["variant"]]}).values())
    return table


PAPER_KINDS: dict[str, Kind] = {"variant": "name", "paper_rule": "words", "edges": "words"}
"""Word fields of `PaperLine`; all others are numbers."""


def paper_table(comparison: PaperComparison, *, sweep: str, compute_name: str) -> Listing:
    """One line per variant of the paper's comparison, with the warning below."""
    headings = paper_headings(comparison)
    names = shown_names(variant.name for variant in comparison.variants)
    table = Listing(
        columns=[Column(heading=heading, kind=PAPER_KINDS.get(field, "number")) for field, heading in headings.items()],
        title=f"{sweep} as arXiv 2510.13786 compares, against {comparison.reference}",
        notes=[*legend(names), *paper_notes(comparison, compute_name)],
        turns=True,
    )
    for cells in under(headings, [paper_line(comparison, variant) for variant in comparison.variants]):
        table.add(*(cells | {"variant": names[cells["variant"]]}).values())
    return table


FIT_COLUMNS = (
    Column(heading="curve"),
    *(
        Column(heading=heading, kind="number")
        for heading in ("A [95 %]", "A under eq. 1", "B [95 %]", "C_mid [95 %]", "R_0", "points", "window", "R²")
    ),
    Column(heading="verdict", kind="prose"),
)


def fit_table(fitted: Sequence[FittedCurve]) -> Listing:
    """One line per curve, or the reason why it has no fit; below, warnings about suspicious readings."""
    odd = [f"{one.name}: {text}." for one in fitted if one.fit for text in one.fit.oddities]
    table = Listing(columns=FIT_COLUMNS, notes=odd)
    for one in fitted:
        fit = one.fit
        if fit is None:
            table.add(one.name, *[""] * 8, one.reason)
            continue
        first, last = map(compute_text, fit.window)
        table.add(
            one.name,
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
    return table


def fit_words(one: FittedCurve) -> Group:
    """The fit in words, and the table of A against the cut-off."""
    if one.fit is None:
        return Group(Text(made_visible(f"\n{one.name}: {one.reason}")))
    headings: dict[str, Kind] = {"from compute": "number", "points": "number", "A [95 %]": "number", "verdict": "words"}
    table = Listing(columns=[Column(heading=heading, kind=kind) for heading, kind in headings.items()])
    for row in cutoff_table(one.fit):
        table.add(compute_text(row.fit_from), str(row.points), row.asymptote.cell(), row.verdict)
    return Group(
        Text("\n").append(made_visible(one.name), style="bold").append(f": {made_visible(in_words(one.fit))}"), table
    )
