"""Why a run went well or wrong: what the doctor finds, when rules warned, and the metrics beside the pass rate."""

from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from ablations.errors import AblationsError
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from ablations.report.documents.diagnosis import causes
from ablations.status.rows import RunRow
from ablations_dashboard.drawings.run import Counter, counter_titles, ends_chart, metrics_chart, pass_rate_chart
from ablations_dashboard.escape import in_markdown
from ablations_dashboard.reading.run_log import WarningSpan, load_diagnoses, load_log, load_metrics, load_warning_spans
from ablations_dashboard.widgets.document import show_document
from ablations_dashboard.widgets.figure import show_figure
from scalerl.run.run_folder import RunFolder

EXPLAINED_BY = {"truncation": "truncated", "skipped": "zero_variance", "rules broken": "ends_rules_broken"}
"""The metric behind a rule of `scalerl.run.health`, if it has another name."""
USUAL = ("entropy", "truncated", "zero_variance")
"""Metrics beside the pass rate of a run without a warning."""
METRIC_HEADINGS = {
    "entropy": "entropy, nats per token",
    "truncated": "answers cut off at the token limit, share",
    "zero_variance": "groups without signal (all answers alike), share",
    "mismatch": "distance of trainer and generator, nats per token",
    "ess": "effective sample size, share of tokens",
}
"""Headings of the metrics beside the pass rate."""
MOST_BESIDE = 3
MOST_CAUSES = 2
"""Maximum number of findings shown above a run's figures."""
MOST_SPANS = 3
"""Maximum number of step ranges listed for one rule."""
FIRST_HEIGHT, METRICS_HEIGHT = 460, 360
"""Height in pixels of the pass rate on the first screen, and of all metrics beside it together."""


def show_findings(row: RunRow, folder: RunFolder, *, is_quiet: bool) -> None:
    """Show why the run went wrong: the two likeliest causes and what to change, the others folded, and the steps at
    which each rule about its health held; `is_quiet` if nothing else was remarked.
    """
    found = load_diagnoses(folder)
    show_document(causes(found, MOST_CAUSES), scope=folder.path.name)
    show_warning_spans(row, folder, is_quiet=is_quiet and not found)


def show_warning_spans(row: RunRow, folder: RunFolder, *, is_quiet: bool) -> None:
    """Show at which steps each rule about the run's health held, a line per rule with its newest text; `is_quiet` if
    nothing else was remarked.
    """
    by_rule: dict[str, list[WarningSpan]] = {}
    for one in load_warning_spans(folder):
        by_rule.setdefault(one.rule, []).append(one)
    lines = [f"{steps_of(found)}: {found[-1].text}" for found in by_rule.values()]
    if lines:
        st.caption("\n".join(f"* {in_markdown(line)}" for line in lines))
    elif is_quiet and row.state.state in (State.DONE, State.RUNNING) and is_judged(folder):
        st.caption("None of the health rules has warned at any step.")


def steps_of(found: Sequence[WarningSpan]) -> str:
    """The steps of all warnings of a rule: `steps 70 to 80`, `steps 60 to 65, 86`, `9 times in steps 464 to 832`."""
    if len(found) > MOST_SPANS:
        return f"{len(found)} times in steps {found[0].first:,} to {found[-1].last:,}"
    spans = [f"{one.first:,}" if one.first == one.last else f"{one.first:,} to {one.last:,}" for one in found]
    return f"{'step' if spans == [f'{found[0].first:,}'] else 'steps'} {', '.join(spans)}"


def is_judged(folder: RunFolder) -> bool:
    """True if the log has the trainer's optimiser steps, which the rules of health read; a program's may not."""
    with suppress(AblationsError):
        return any("skipped" in row for row in load_log(folder))
    return False


def show_why(sweep: StartedSweep, folder: RunFolder) -> None:
    """Show the pass rate against compute, beside the metrics that explain it: those whose rule has warned, else the
    usual ones.
    """
    plan, log = sweep.plan, load_log(folder)
    evaluations = [row for row in log if row["kind"] in ("eval", "downstream")]
    if not evaluations:
        st.info("No evaluation yet.")
        return
    found, metrics = load_warning_spans(folder), load_metrics(folder)
    marks = [one.compute_gpu_hours for one in found]
    beside = {
        name: METRIC_HEADINGS.get(name, name) for name in explaining([one.rule for one in found], list(metrics.columns))
    }
    left, right = st.columns([6, 5])
    with left:
        chart = pass_rate_chart(evaluations, plan.compute_name, plan.hours_name, height=FIRST_HEIGHT, marks=marks)
        show_figure(chart, name=f"{folder.path.name}-pass-rate")
    with right:
        if beside:
            against: Counter = "compute_gpu_hours"
            look = {"title": counter_titles(plan.compute_name)[against], "height": METRICS_HEIGHT / len(beside)}
            chart = metrics_chart(metrics, beside, against=against, smoothed=10, marks=marks, **look)
            show_figure(chart, name=f"{folder.path.name}-why")
    if ends := ends_chart(metrics, plan.compute_name, smoothed=10, height=METRICS_HEIGHT):
        st.subheader("How episodes end")
        show_figure(ends, name=f"{folder.path.name}-ends")
    if marks:
        st.caption("Dotted lines: where a warning began.")


def explaining(rules: Sequence[str], logged: Sequence[str]) -> list[str]:
    """The metrics to show beside the pass rate: those behind the rules that have warned, then the usual ones, then any
    others that are logged; at most MOST_BESIDE.
    """
    wanted = dict.fromkeys([*(EXPLAINED_BY.get(rule, rule) for rule in rules), *USUAL, *METRIC_HEADINGS])
    places = counter_titles("").keys()
    known = [name for name in wanted if name in logged]
    return (known or [name for name in logged if name not in places])[:MOST_BESIDE]
