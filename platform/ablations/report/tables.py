"""Fits and comparisons for the terminal: never an asymptote without its interval, nor a difference without its
baseline.
"""

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Group
from rich.text import Text

from ablations.answers.answer import REFERENCE, Answer
from ablations.answers.paper_grid import PaperGrid
from ablations.answers.paper_rule import PAPER_MARGIN, PAPER_RULE
from ablations.findings.advice import advice, short_advice
from ablations.findings.paper_comparison import WARNING, PaperComparison, PaperVariant
from ablations.findings.results import Results
from ablations.fit.asymptote import EQ1_DOUBTED
from ablations.fit.fitting import fits_by_cutoff
from ablations.fit.words import in_words
from ablations.home.plan import Plan
from ablations.home.state import State
from ablations.readings.fitted_run import FittedCurve
from ablations.readings.hours import NOTE, hours_cells
from ablations.report.columns import TERMINAL, answers_of, columns, rows_of
from ablations.report.grid_tables import EFFECTS_NOTE, INTERACTIONS_NOTE, grid_tables, reference_values
from ablations.report.marks import HELD_MARK, marks_said
from ablations.report.words.comparison import SAID_BY_THE_PAPER_RULE, changes_said, joint_note, method
from ablations.terminal.fitting_table import OneLine
from ablations.terminal.listing import Column, Kind, Listing, listing_of
from ablations.terminal.short_names import legend
from ablations.terminal.visible import made_visible
from ablations.text import at_scale, compute_text, counted, interval_text

MOST_NOTES = 3
"""Limit on the notes below a comparison without `--explain`."""
GRID_EDGES = "on the grid's end"
"""Heading of the parameters that lie on an end of the grid."""
FIT_COLUMNS = (
    Column(heading="curve"),
    *(
        Column(heading=heading, kind="number")
        for heading in ("A [95 %]", "A under eq. 1", "B [95 %]", "C_mid [95 %]", "R_0", "points", "window", "R²")
    ),
    Column(heading="verdict", kind="prose"),
)
GRIDS: dict[PaperGrid, str] = {
    "stated": "the paper's grid (A from 0.450 to 0.800 in steps of 0.005, 100 values of C_mid)",
    "finer": "a finer grid (A from R_0 to 1 in steps of 0.001, 400 values of C_mid)",
}


def comparison_table(results: Results) -> OneLine:
    """One line per variant: its differences from the reference, and further columns that fit on the terminal."""
    shown = columns(results, TERMINAL)
    headed: list[Column] = [replace(one, heading=one.heading.partition(",")[0]) for one in shown]  # a line is narrow
    table = OneLine(columns=headed, title=f"{_title(results)}, 95 % intervals", notes=brief_notes(results))
    for row, answers in zip(rows_of(results, shown), answers_of(results, shown), strict=True):
        table.add(*((cell, answer_style(answer)) for cell, answer in zip(row, answers, strict=True)))
    return table


def grid_listings(results: Results) -> list[OneLine]:
    """The tables of the comparison's grid and of pairs of changes; empty if there are none."""
    found = []
    for one in grid_tables(results):
        first, *others = one.headings
        numbers = [Column(heading=heading, kind="number") for heading in others]
        table = OneLine(columns=[Column(heading=first), *numbers], title=one.title)
        for row, answers in zip(one.rows, one.answers, strict=True):
            table.add(*((cell, answer_style(answer)) for cell, answer in zip(row, answers, strict=True)))
        found.append(table)
    if found:
        found[-1].notes = [reference_values(results)]
    return found


def brief_notes(results: Results) -> list[str]:
    """Finished runs that cannot be read, remarks on spoiled runs and, of logs, on data left out; then three notes:
    the meaning of the marks, the cost of deciding, and the command for the rest."""
    if results.comparison is None:
        return [*(one.text for one in results.remarks), *results.reasons]
    named = " ".join((results.plan.sweep, *results.beside)) if results.sweep else ""
    weights = ("error",) if results.sweep else ("error", "warning")
    remarks = [one.text for one in results.remarks if one.weight in weights]
    spoiled = [f"{run.name}: {run.reason}" for run in results.runs if run.state == State.DONE and run.curve is None]
    grave = [*results.notes[:MOST_NOTES], *spoiled[:MOST_NOTES], *remarks[:MOST_NOTES]]
    found = len(results.remarks) + len(results.reasons) - len(grave)
    rest = [counted(found, "remark")] if found else []
    rest += ["changes"] if any(variant.overrides for variant in results.variants) else []
    where = f"`platform compare {named} --explain`" if named else "--explain"
    return [*grave, marks_said(results), short_advice(results), f"{where} adds {', '.join([*rest, 'method'])}."]


def explanation(results: Results) -> list[str]:
    """The notes behind a comparison: changes, scale of the curves, warnings, method, advice."""
    plan, joint = results.plan, joint_note(results)
    is_marked = joint and results.comparison and not results.comparison.is_provisional
    return [
        *legend(plan.axes),
        *changes_said(results),
        f"C_mid and cost: {plan.compute_name}.",
        f"{HELD_MARK}: also differs with intervals {joint}." if is_marked else "",
        EFFECTS_NOTE if results.grid else "",
        INTERACTIONS_NOTE if results.interactions else "",
        method(results),
        advice(results),
        *(one.text for one in results.remarks),
        *results.reasons,
    ]


def answer_style(answer: Answer | None) -> str:
    """Green or red for an answer that differs, grey for one that does not; none for the reference."""
    if answer is None or answer.verdict == REFERENCE:
        return ""
    if not answer.differs:
        return "dim"
    return "green" if answer.verdict == answer.question.better else "red"


def _title(results: Results) -> str:
    plan = results.plan
    if not isinstance(plan, Plan):  # curves of another trainer
        return f"{results.title}, {counted(len(results.runs), 'run')}"
    of_task = f", task {plan.fit_settings.task}" if plan.fit_settings.task else ""
    return f"{results.title}{at_scale(plan.scale)}{of_task}, {plan.budget_gpu_hours:g} {plan.compute_name} per run"


def hours_table(results: Results) -> Listing | None:
    """Device time of each variant; None if no run records it."""
    lines = hours_cells({variant.name: variant.hours for variant in results.variants})
    return listing_of(lines, title="where the hours went", notes=(NOTE,)) if lines else None


def paper_table(comparison: PaperComparison, *, sweep: str, compute_name: str) -> Listing:
    """One line per variant of the paper's comparison, with the warning below."""
    return listing_of(
        paper_rows(comparison),
        kinds={PAPER_RULE: "words", GRID_EDGES: "words"},
        title=f"{sweep} as arXiv 2510.13786 compares, against {comparison.reference}",
        notes=paper_notes(comparison, compute_name),
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
    for fit_from, fit in fits_by_cutoff(one.fit).items():
        table.add(compute_text(fit_from), str(fit.points), fit.asymptote.cell(), fit.verdict)
    return Group(
        Text("\n").append(made_visible(one.name), style="bold").append(f": {made_visible(in_words(one.fit))}"), table
    )


def paper_rows(comparison: PaperComparison) -> list[dict[str, str]]:
    """The cells of each variant by heading; a cell without a number is empty."""
    return [_paper_row(comparison, variant) for variant in comparison.variants]


def _paper_row(comparison: PaperComparison, variant: PaperVariant) -> dict[str, str]:
    reference = comparison.reference
    is_reference = variant.name == reference
    return {
        "variant": variant.name,
        "seeds": str(len(variant.fits)),
        f"A ±{PAPER_MARGIN}": f"{variant.A:.3f}",
        f"A − {reference}": "" if is_reference else f"{variant.delta_A:+.3f}",
        PAPER_RULE: "reference" if is_reference else SAID_BY_THE_PAPER_RULE[variant.difference],
        "B": f"{variant.B:.2f}",
        "C_mid": compute_text(variant.C_mid),
        f"B at A {comparison.common_A:.3f}": "" if variant.B_at_common_A is None else f"{variant.B_at_common_A:.2f}",
        f"B − {reference}": "" if variant.delta_B is None or is_reference else f"{variant.delta_B:+.2f}",
        GRID_EDGES: ", ".join(variant.edges),
    }


def paper_notes(comparison: PaperComparison, compute_name: str) -> list[str]:
    """Notes on the origin and limits of the numbers, and the reasons why runs have no fit."""
    return [
        f"Least squares on {GRIDS[comparison.grid]}, evaluations beyond {compute_text(comparison.fit_from)} "
        f"{compute_name}, R_0 the evaluation at compute 0. B is refitted at A {comparison.common_A:.3f}, the mean "
        f"of all A within {PAPER_MARGIN} of {comparison.reference}'s.",
        WARNING,
        *comparison.reasons,
    ]
