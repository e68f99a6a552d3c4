"""The card of a published study: what its curves are, how they came about, and what is wrong with them, for readers who
do not have the runs.

Everything comes from the plan and the runs' own records; what they do not say, the card calls unknown.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ablations.findings.results import Results
from ablations.home.source import source_of
from ablations.home.state import State
from ablations.readings.fitted_run import FittedRun
from ablations.report.documents.blocks import Blocks, Cell, Heading, Table, Text, table_of_rows
from ablations.report.documents.comparison import page_notes
from ablations.report.documents.comparison_tables import comparison_table
from ablations.report.documents.headline import task_of_sweep
from ablations.report.documents.methods import methods
from ablations.text import at_scale, compute_text, counted
from scalerl.run.status import RunStatus

COLUMN_MEANINGS = {
    "curve": "variant of the recipe",
    "seed": "seed of the run",
    "compute": "compute of the run when it was measured, in {unit}; 0 is before RL",
    "score": "mean pass rate on the held-out prompts, 0 to 1",
    "prompts": "held-out prompts",
    "samples": "answers behind the score, of all prompts together",
    "step": "optimiser steps taken",
    "fitted_score": "pass rate of the run's fitted curve at this compute",
    "is_fitted": "whether the fit uses this evaluation",
    "compute_unit": "unit of `compute`, the same in every row",
    "run": "id of the run, the hash of its recipe and seed",
    "run_start": "runs with equal text began with the same model, weights, tasks and seed, and are compared in pairs",
    "answer_variance": "variance of the score for these prompts, from the right answers to each",
    "prompt_variance": "variance that other prompts would add",
    "wall_s": "seconds of wall clock at the evaluation",
    "flops": "floating-point operations of the run so far",
    "tokens": "tokens generated so far",
    "run_state": "how the run ended",
    "reference_variant": "variant with which the others are compared, the same in every row",
    "scale": "scale of model, task and clock",
    "fit_settings": "how the study fits its curves, other than by default; the same in every row",
}
"""Meaning of each column of a study's CSV file."""
COUNTED = {
    "modelled GPU-hours": (
        "Compute is modelled, not measured: all GPUs of the recipe's block `cluster` times the time that its clock "
        "gives each step, idle time included."
    ),
    "measured device-hours": "Compute is measured: generators and trainers times elapsed time, idle time included.",
}
METHOD = (
    "The sigmoid curve and the comparison by ceiling and compute are the method of The Art of Scaling Reinforcement "
    "Learning Compute for LLMs (arXiv 2510.13786). Cite it for the method, and this data set by its title and address."
)


def data_card(
    results: Results, *, columns: Sequence[str], file: str, license_name: str, notes: Sequence[str] = ()
) -> Blocks:
    """The card of the file `file` with these columns, without the recipe; `notes` are the publisher's own."""
    plan = results.plan
    num_read = sum(run.curve.score.size for run in results.runs if run.curve is not None)
    seeds = ", ".join(map(str, sorted({one.seed for one in plan.runs})))
    size = (
        f"{counted(num_read, 'held-out evaluation')} of {counted(len(results.runs), 'run')}: "
        f"{counted(len(plan.variants), 'variant')}, seeds {seeds}"
    )
    return [
        Heading(text=title_of(results), level=1),
        *([Text(text=plan.doc)] if plan.doc else []),
        Text(text=f"{size}{at_scale(plan.scale, before=',')}."),
        *(Text(text=one) for one in notes),
        Heading(text="The file"),
        Text(
            text=f"A row of `{file}` is one evaluation of one run. `platform compare {file}` reads it without options "
            "and gives the answers below."
        ),
        _columns(columns, plan.compute_name),
        Heading(text="What was trained"),
        *(Text(text=text) for text in (task_of_sweep(results.sweep), methods(results)[0]) if text),
        _variants(results),
        Text(text=f"{COUNTED.get(plan.compute_name, f'Compute is counted in {plan.compute_name} by the trainer.')}"),
        Heading(text="Where it was trained"),
        *(Text(text=text) for text in _machines(results)),
        Heading(text="Runs that ended early, failed, collapsed or have no evaluation"),
        *(Text(text=text) for text in _spoiled(results) or [_no_fault(results)]),
        Heading(text="What the curves say"),
        *_answers(results),
        *(Text(text=text) for text in methods(results)[1:-1]),
        Heading(text="Licence"),
        Text(text=f"{license_name}." if license_name else "No licence was given when this file was written."),
        Heading(text="How to cite"),
        Text(text=METHOD),
    ]


def title_of(results: Results) -> str:
    """The title of the data set."""
    return f"{results.plan.sweep}: held-out curves of {counted(len(results.runs), 'RL run')}"


def _columns(columns: Sequence[str], unit: str) -> Table:
    rows = [{"column": f"`{name}`", "meaning": COLUMN_MEANINGS[name].format(unit=unit)} for name in columns]
    return table_of_rows(rows, name="columns", kinds={"meaning": "prose"})


def _variants(results: Results) -> Table:
    """What each variant changes, with its seeds, evaluations, and how far its runs came."""
    rows: list[Mapping[str, Cell | str]] = []
    for variant in results.variants:
        is_reference = variant.name == results.plan.reference
        unknown = "not recorded" if results.plan.imported else ""
        curves = [run.curve for run in variant.runs if run.curve is not None]
        ends = sorted(float(curve.compute[-1]) for curve in curves)
        rows.append(
            {
                "variant": variant.name,
                "changes": "the reference" if is_reference else results.changes(variant.name) or unknown,
                "seeds": ", ".join(str(run.seed) for run in variant.runs),
                "evaluations": str(sum(curve.score.size for curve in curves)),
                f"last, {results.plan.compute_name}": _between(ends),
            }
        )
    return table_of_rows(rows, name="variants", kinds={"changes": "prose"})


def _between(ends: Sequence[float]) -> str:
    """`1,600`, or `between 1,600 and 1,603`; empty without an end."""
    said = [*dict.fromkeys(map(compute_text, (*ends[:1], *ends[-1:])))]
    return f"between {' and '.join(said)}" if len(said) > 1 else "".join(said)


def _machines(results: Results) -> Iterator[str]:
    """Processors, wall clock and code of the runs, as their own status says; host names are left out."""
    if results.plan.imported:
        readers = Counter(
            source.reader for run in results.runs if (source := source_of(results.sweep.run(run.id))) is not None
        )
        told = ", ".join(f"{counted(number, 'run')} from {reader}" for reader, number in readers.items())
        yield f"The runs were imported ({told}); their machines are not recorded."
        return
    states = [results.sweep.run(run.id).read_status() for run in results.runs]
    kinds = Counter(_machine(one) for one in states)
    said = "; ".join(f"{counted(number, 'run')} on {kind}" for kind, number in kinds.items() if kind)
    unknown = f"{counted(kinds[''], 'run')} without a record of the machine" if kinds[""] else ""
    yield f"{'; '.join(filter(None, (said, unknown)))}."
    if hours := sum(one.wall_s for one in states) / 3600:
        yield f"The runs took {compute_text(hours)} hours of wall clock in all, each counted by itself."
    yield methods(results)[-1]


def _machine(status: RunStatus) -> str:
    if not status.processor:
        return ""
    return status.processor + (f" with {counted(status.threads, 'thread')}" if status.threads else "")


def _spoiled(results: Results) -> list[str]:
    """Everything that a reader must know of single runs: those without evaluations, those that did not come to their
    end, and the errors and warnings of the comparison."""
    said = [f"{run.name} has no evaluation: {run.reason or 'its log is empty'}." for run in _without(results)]
    unfinished = [
        f"{run.name} ended as {run.state}{f' ({run.message})' if run.message else ''}, at "
        f"{compute_text(run.cost_gpu_hours)} {results.plan.hours_name}."
        for run in results.runs
        if run.state not in (None, State.DONE) and run.curve is not None
    ]
    return [*said, *unfinished, *(one.text for one in results.remarks), *results.notes]


def _without(results: Results) -> list[FittedRun]:
    return [run for run in results.runs if run.curve is None]


def _no_fault(results: Results) -> str:
    known = "is known to have ended early" if results.plan.imported else "ended before its budget"
    return f"None: every run has evaluations, and none {known}."


def _answers(results: Results) -> Blocks:
    if results.comparison is None:
        return [Text(text=f"Nothing: {results.plan.reference} has no fit ({'; '.join(results.reasons[:3])}).")]
    return [comparison_table(results, with_changes=False, notes=[one for one in page_notes(results) if one])]
