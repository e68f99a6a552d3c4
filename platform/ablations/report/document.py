"""The content of the report as plain data, which each format writes in its own way, with a methods paragraph for a
paper: how the runs of a sweep were trained, measured, fitted and compared."""

from dataclasses import dataclass
from datetime import datetime

from ablations.answers.paper_rule import PAPER_MARGIN
from ablations.errors import AblationsError
from ablations.findings.advice import advice
from ablations.findings.results import Results
from ablations.findings.scale_ladder import ScaleLadder
from ablations.fit.options import FitOptions
from ablations.home.declared import declarations
from ablations.report.columns import DOCUMENT, columns, rows_of
from ablations.report.forest import left_out_note
from ablations.report.grid_tables import GridTable, grid_notes, grid_tables, tables_heading
from ablations.report.ladder import ladder_grids, ladder_sentences
from ablations.report.words.comparison import ResultRow, glossary, joint_note, method, sentence
from ablations.report.words.headline import headline, task_of_sweep
from ablations.text import at_scale, compute_text, counted

OVER_SCALES = "Over scales"
"""Heading of the section about the ladder."""
DIFFERENCES_LEGEND = (
    "Differences from the reference with 95 % intervals, best first. The dotted line marks no difference; grey "
    "means undecided; an arrow marks an interval without an end on that side."
)
"""Caption of `verdicts_figure`."""
R0_SAID = {
    "fixed": "R_0 fixed at the evaluation before RL",
    "anchored": "R_0 anchored by the evaluation before RL",
    "free": "R_0 free",
}
LOSS_SAID = {"squares": "by least squares", "huber": "by Huber's loss at 1.345 standard deviations"}


@dataclass(frozen=True, kw_only=True)
class Document:
    """The content of a report beside its results. All text is as written; each format escapes it and shows control
    characters."""

    results: Results
    headline: tuple[str, ...]
    """The verdict in one line, the most important sentence first."""
    task: str
    """Sentence on what the pass rates measure; empty if unknown."""
    findings: tuple[str, ...]
    """One sentence per variant."""
    advice: str
    """Advice for settling open questions; empty if none is open."""
    changes: tuple[tuple[str, str], ...]
    """Each variant except the reference, with its changes."""
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """The cells of each variant, in the order of the results."""
    grid: tuple[GridTable, ...]
    """The cells and main effects of a grid, and pairs of changes; empty if there are none."""
    grid_heading: str
    grid_notes: str
    ladder: tuple[GridTable, ...]
    """The differences at every scale of the study; empty for one scale."""
    ladder_notes: str
    differences_legend: str
    methods: tuple[str, ...]
    """Paragraphs on training and measurement, the fit, the statistics of the comparison, and the code."""
    glossary: tuple[tuple[str, str], ...]
    origin: tuple[tuple[str, str], ...]


def document_of(results: Results, *, now: datetime, ladder: ScaleLadder | None = None) -> Document:
    """The report of a sweep; `now` is the date shown, `ladder` the study at all of its scales."""
    shown = columns(results, DOCUMENT)
    return Document(
        results=results,
        headline=headline(results),
        task=task_of_sweep(results.sweep),
        findings=tuple(sentence(ResultRow(results=results, variant=one)) for one in results.variants),
        advice=advice(results).replace("`", ""),
        changes=tuple((one.name, results.changes(one.name)) for one in results.variants if one.overrides),
        headings=tuple(column.heading for column in shown),
        rows=tuple(map(tuple, rows_of(results, shown))),
        grid=tuple(grid_tables(results)),
        grid_heading=tables_heading(results),
        grid_notes=grid_notes(results),
        ladder=tuple(ladder_grids(ladder)) if ladder else (),
        ladder_notes=" ".join(ladder_sentences(ladder)) if ladder else "",
        differences_legend=f"{DIFFERENCES_LEGEND} {left_out_note(results)}".rstrip(),
        methods=tuple(filter(None, (_training(results), _fit(results), _statistics(results), _code(results)))),
        glossary=tuple(glossary(results)),
        origin=tuple(origin(results, now)),
    )


def origin(results: Results, now: datetime) -> list[tuple[str, str]]:
    """Command, home folder, date, runs, window and code."""
    plan = results.plan
    num_runs = len(results.runs)
    window = f"{plan.fit_from_gpu_hours:g} to {plan.fit_to_gpu_hours:g}"
    return [
        ("command", plan.command),
        ("home folder", str(results.sweep.home.path) if results.sweep else "none"),
        ("date", f"{now:%Y-%m-%d %H:%M %Z}"),
        ("runs", f"{num_runs}{at_scale(plan.scale, before=',')}, {plan.budget_gpu_hours:g} {plan.compute_name} each"),
        ("fitted", f"evaluations from {window} {plan.compute_name}, each seed by itself"),
        *([("design", declared)] if (declared := _declared(results)) else []),
        ("code", ", ".join(results.code_versions) or "unknown"),
    ]


def _declared(results: Results) -> str:
    """When the design was declared; empty for curves of other trainers and sweeps of earlier versions."""
    try:
        found = declarations(results.sweep) if results.sweep else []
    except AblationsError as error:
        return str(error)
    return f"declared {found[0].when}" if found else ""


def _training(results: Results) -> str:
    plan = results.plan
    seeds = sorted({run.seed for run in plan.runs})
    same = {tuple(run.seed for run in variant.runs) for variant in plan.variants}
    of_seeds = "the same seeds" if len(seeds) > 1 else "the seed"
    listed = ", ".join(map(str, seeds))
    trained = f"with {of_seeds} ({listed})" if len(same) == 1 else f"with seeds from {listed}"
    said = f"{counted(len(plan.variants), 'variant')} of one recipe were trained {trained}"
    said += at_scale(plan.scale)
    if results.beside:
        costs = [run.cost_gpu_hours for run in results.runs]
        between = f"{compute_text(min(costs))} to {compute_text(max(costs))}"
        said += f" in {counted(1 + len(results.beside), 'sweep')}, each run for {between} {plan.compute_name}."
    else:
        said += f", each run for {compute_text(plan.budget_gpu_hours)} {plan.compute_name}."
    said += f" Each differs from the reference, {plan.reference}, in the settings that are listed and in nothing else."
    return f"{said}{_measured(results)}"


def _measured(results: Results) -> str:
    """The interval of evaluations and the number of prompts, if the run logs have them."""
    curves = [run.curve for run in results.runs if run.curve is not None]
    if not curves:
        return ""
    counts = sorted(curve.score.size for curve in curves)
    times = str(counts[0]) if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    said = f" The pass rate on held-out prompts was measured {times} times per run"
    prompts = {int(curve.prompts[-1]) for curve in curves if curve.prompts is not None}
    samples = {int(curve.samples[-1]) for curve in curves if curve.samples is not None}
    if len(prompts) == 1 and len(samples) == 1:
        said += f", on {prompts.pop():,} prompts with {samples.pop():,} samples in all"
    return f"{said}."


def _fit(results: Results) -> str:
    plan, options = results.plan, FitOptions(**results.plan.fit)
    window = f"up to {compute_text(plan.fit_to_gpu_hours)} {plan.compute_name}"
    if options.cutoff == "auto":
        window += ", from where each curve begins to follow the law"
    elif plan.fit_from_gpu_hours:
        window = f"from {compute_text(plan.fit_from_gpu_hours)} {window.replace('up to', 'to', 1)}"
    known = f", A at most {options.ceiling:g}" if options.ceiling is not None else ""
    task = f" of task {options.task}" if options.task else ""
    return (
        f"The law R(C) = R_0 + (A - R_0) / (1 + (C_mid / C)^B) (eq. 1 of arXiv 2510.13786) was fitted "
        f"{LOSS_SAID[options.loss]} to the evaluations{task} of each seed by itself, {window}, with "
        f"{R0_SAID[options.r0]}{known}. A and its interval are averaged over six families of curves, eq. 1 among them."
    )


def _statistics(results: Results) -> str:
    if not (said := method(results)):
        return ""
    joint = joint_note(results)
    corrected = f" Intervals called corrected are {joint}." if joint else ""
    return (
        f"{said} A compute ratio is the compute that a variant needs to reach a pass rate that both reach, divided "
        f"by the reference's.{corrected} The paper's own rule takes two A within {PAPER_MARGIN} as equal; verdicts "
        "here come from the intervals instead."
    )


def _code(results: Results) -> str:
    versions = results.code_versions
    if not versions:
        return "The version of the training code is unknown."
    return f"The training code was at {'commit' if len(versions) == 1 else 'commits'} {', '.join(versions)}."
