"""How the runs of a comparison were trained, measured, fitted and compared: paragraphs for a paper, and the origin of
the numbers."""

import math
from collections.abc import Sequence
from datetime import datetime

from ablations.answers.paper_rule import PAPER_MARGIN
from ablations.errors import AblationsError
from ablations.findings.results import Results
from ablations.fit.options import FitOptions
from ablations.home.declared import declarations
from ablations.report.documents.comparison_words import joint_note, method
from ablations.text import at_scale, compute_text, counted

R0_SAID = {
    "fixed": "R_0 fixed at the evaluation before RL",
    "anchored": "R_0 anchored by the evaluation before RL",
    "free": "R_0 free",
}
LOSS_SAID = {"squares": "by least squares", "huber": "by Huber's loss at 1.345 standard deviations"}


def methods(results: Results) -> list[str]:
    """Paragraphs on training and measurement, the fit, the statistics of the comparison, and the code."""
    return [*filter(None, (_training(results), _fit(results), _statistics(results), _code(results)))]


def origin(results: Results, now: datetime) -> list[tuple[str, str]]:
    """Command, home folder, date, runs, window and code."""
    plan = results.plan
    num_runs = len(results.runs)
    end = f"to {plan.fit_to_gpu_hours:g}" if plan.fit_to_gpu_hours < math.inf else "on"
    window = f"{plan.fit_from_gpu_hours:g} {end}"
    return [
        ("command", plan.command),
        ("home folder", str(results.sweep.home.path)),
        ("date", f"{now:%Y-%m-%d %H:%M %Z}"),
        ("runs", f"{num_runs}{at_scale(plan.scale, before=',')}, {plan.budget_gpu_hours:g} {plan.compute_name} each"),
        ("fitted", f"evaluations from {window} {plan.compute_name}, each seed by itself"),
        *([("design", declared)] if (declared := _declared(results)) else []),
        ("code", ", ".join(results.code_versions) or "unknown"),
    ]


def _declared(results: Results) -> str:
    """When the design was declared; empty for imported runs and sweeps of earlier versions."""
    try:
        found = declarations(results.sweep)
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
    if plan.imported:
        costs = [run.cost_gpu_hours for run in results.runs if run.curve is not None] or [0.0]
        said = (
            f"{counted(len(plan.variants), 'variant')} were trained elsewhere {trained}, each run for "
            f"{_range_text(costs)} {plan.compute_name}. The settings in which they differ are unknown here."
        )
        return f"{said}{_measured(results)}"
    said = f"{counted(len(plan.variants), 'variant')} of one recipe were trained {trained}"
    said += at_scale(plan.scale)
    if results.beside:
        between = _range_text([run.cost_gpu_hours for run in results.runs])
        said += f" in {counted(1 + len(results.beside), 'sweep')}, each run for {between} {plan.compute_name}."
    else:
        said += f", each run for {compute_text(plan.budget_gpu_hours)} {plan.compute_name}."
    said += f" Each differs from the reference, {plan.reference}, in the settings that are listed and in nothing else."
    return f"{said}{_measured(results)}"


def _range_text(costs: Sequence[float]) -> str:
    first, last = compute_text(min(costs)), compute_text(max(costs))
    return first if first == last else f"{first} to {last}"


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
    is_open = plan.fit_to_gpu_hours == math.inf
    window = "up to the last one" if is_open else f"up to {compute_text(plan.fit_to_gpu_hours)} {plan.compute_name}"
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
