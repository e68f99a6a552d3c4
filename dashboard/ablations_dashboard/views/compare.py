"""Compare: the variants of one or several sweeps against one of them."""

import time
from collections.abc import Sequence

import streamlit as st

from ablations.findings.results import Results
from ablations.findings.together import together, with_baseline
from ablations.home.started_sweep import StartedSweep
from ablations.report.words.comparison import unkept_results_note, warnings
from ablations.status.progress import run_rows
from ablations_dashboard.reading.cache import REFRESH_S, load_results, may_change
from ablations_dashboard.sections.curves import show_curves
from ablations_dashboard.sections.grid import show_grid
from ablations_dashboard.sections.metrics import show_metrics
from ablations_dashboard.sections.planes import show_differences
from ablations_dashboard.sections.progress import show_progress, show_trials
from ablations_dashboard.sections.verdicts import show_verdicts
from ablations_dashboard.selection.variants import Shown, choose_baseline, choose_others, choose_sweep, choose_variants
from ablations_dashboard.text.escape import in_markdown, visible
from ablations_dashboard.widgets.figure import choose_pictures
from ablations_dashboard.widgets.message import errors_on_page

MOST_WARNINGS = 8


@errors_on_page()
def show() -> None:
    """Choose, and show each section; while runs train, each section is read again every few seconds."""
    own = choose_sweep()
    others = choose_others(own)
    sweep = together(own, others)
    sweep = with_baseline(sweep, choose_baseline(sweep.plan))
    is_live = any(may_change(one, run_rows(one), now=time.time()) for one in (own, *others))
    shown = choose_variants(load_results(sweep))
    choose_pictures()
    every = REFRESH_S if is_live else None
    st.fragment(show_head, run_every=every)(own, is_live, others)
    for section in (verdicts, curves, differences):
        st.fragment(section, run_every=every)(own, others, sweep.plan.reference, shown)
    st.fragment(metrics, run_every=every)(sweep, shown)


@errors_on_page()
def show_head(sweep: StartedSweep, is_live: bool, others: Sequence[StartedSweep] = ()) -> None:
    """Show name, question, progress, trials, and warnings about the numbers."""
    st.title(in_markdown(sweep.name))
    sweep = sweep.reread()  # a search adds trials
    rows = run_rows(sweep)
    st.text(visible(sweep.plan.doc))
    is_changing = any(may_change(one, run_rows(one), now=time.time()) for one in (sweep, *others))
    if is_live and not is_changing:
        st.rerun()  # the whole page, which then is not refreshed any more
    show_progress(sweep, rows)
    results = load_results(sweep)
    found = [*filter(None, [unkept_results_note(results)]), *warnings(results)]
    for warning in found[:MOST_WARNINGS]:
        st.warning(in_markdown(warning))
    if len(found) > MOST_WARNINGS:
        with st.expander(f"{len(found) - MOST_WARNINGS} more warnings"):
            st.text(visible("\n".join(found[MOST_WARNINGS:])))
    show_trials(sweep)


def current(own: StartedSweep, others: Sequence[StartedSweep], baseline: str) -> Results:
    """The results for the current plans on disk, since a search adds trials."""
    return load_results(with_baseline(together(own.reread(), others), baseline))


@errors_on_page()
def verdicts(own: StartedSweep, others: Sequence[StartedSweep], baseline: str, shown: Shown) -> None:
    """Show the section of verdicts and that of a grid, read anew."""
    results = current(own, others, baseline)
    show_verdicts(results, shown)
    show_grid(results)


@errors_on_page()
def curves(own: StartedSweep, others: Sequence[StartedSweep], baseline: str, shown: Shown) -> None:
    """Show the section of curves, read anew."""
    show_curves(current(own, others, baseline), shown)


@errors_on_page()
def differences(own: StartedSweep, others: Sequence[StartedSweep], baseline: str, shown: Shown) -> None:
    """Show the section of differences, read anew."""
    show_differences(current(own, others, baseline), shown)


@errors_on_page()
def metrics(sweep: StartedSweep, shown: Shown) -> None:
    """Show the section of training metrics, read anew."""
    show_metrics(sweep, shown)
