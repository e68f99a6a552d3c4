"""Compare: the variants of one or several sweeps against one of them."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from ablations.findings.results import Results
from ablations.findings.several_sweeps import together, with_baseline
from ablations.home.notes import NoteSubject
from ablations.home.started_sweep import StartedSweep
from ablations.report.documents.blocks import Folded, Text
from ablations.report.documents.comparison import head, note_blocks, remark_blocks
from ablations.report.documents.comparison_words import unkept_results_note
from ablations.report.documents.notes import notes_table
from ablations.search.record import read_search
from ablations.search.tables import note
from ablations.status.progress import run_rows
from ablations.text import compute_text, counted
from ablations_dashboard.escape import in_markdown
from ablations_dashboard.reading.cache import REFRESH_S, load_results, may_change
from ablations_dashboard.sections.figures import (
    show_curves,
    show_differences,
    show_linearised,
    show_metrics,
    show_plane,
)
from ablations_dashboard.sections.note_form import show_note_form
from ablations_dashboard.sections.progress import show_progress
from ablations_dashboard.sections.verdicts import show_fits, show_grid, show_numbers, show_table_of_verdicts, show_words
from ablations_dashboard.selection.baseline import choose_baseline
from ablations_dashboard.selection.sweeps import choose_others, choose_sweep
from ablations_dashboard.selection.url import in_url, put_in_url, widget_key
from ablations_dashboard.selection.variants import Shown, choose_variants
from ablations_dashboard.widgets.document import show_document
from ablations_dashboard.widgets.links import PageAddress, show_link
from ablations_dashboard.widgets.message import errors_on_page

FOLDED: dict[str, tuple[str, Callable[[Results, Shown], None]]] = {
    "words": ("In words", show_words),
    "numbers": ("All numbers", show_numbers),
    "plane": ("Ceiling and compute", show_plane),
    "fits": ("Fit diagnostics", show_fits),
    "linearised": ("Linearised view", show_linearised),
}
"""Label and content of each folded section below the table, by its name in the URL."""
OPEN_PARTS = "open"
"""The URL parameter with the names of the open sections."""


@errors_on_page()
def show() -> None:
    """Choose, and show each section; while runs train, each section is read again every few seconds."""
    own = choose_sweep()
    others = choose_others(own)
    sweep = together(own, others)
    sweep = with_baseline(sweep, choose_baseline(sweep.plan))
    is_live = any(may_change(one, run_rows(one), now=time.time()) for one in (own, *others))
    results = load_results(sweep)
    shown = choose_variants(results)
    every, baseline = REFRESH_S if is_live else None, sweep.plan.reference
    read = ResultsOfPage(partial(current, own, others, baseline))
    with read.holding(results):
        st.fragment(show_head, run_every=every)(own, is_live, others, read)
        for show_section in (show_curves, show_differences, show_table_of_verdicts, show_grid):
            st.fragment(plain_section, run_every=every)(show_section, read, shown)
        for name in FOLDED:
            st.fragment(folded_section, run_every=every)(name, read, shown)
    st.fragment(folded_runs, run_every=every)(own, sweep, shown)
    show_form(own)


class ResultsOfPage:
    """Gives the results: the same to all sections while the page is made, read anew to a section that reruns alone."""

    def __init__(self, read: Callable[[], Results]) -> None:
        self._read = read
        self._held: Results | None = None

    def __call__(self) -> Results:
        return self._read() if self._held is None else self._held

    @contextmanager
    def holding(self, results: Results) -> Iterator[None]:
        """Within it, these are the results."""
        self._held = results
        try:
            yield
        finally:
            self._held = None


@errors_on_page()
def show_form(sweep: StartedSweep) -> None:
    """Show the form that writes a note on the sweep or a variant."""
    itself = NoteSubject(home=sweep.home, folder=sweep.folder)
    about = {one.name: replace(itself, variant=one.name) for one in sweep.plan.variants}
    name = f"{sweep.name} (the sweep)" if sweep.name in about else sweep.name
    show_note_form(sweep.name, {name: itself, **about})


@errors_on_page()
def show_head(sweep: StartedSweep, is_live: bool, others: Sequence[StartedSweep], read: Callable[[], Results]) -> None:
    """Show name, question, the verdict in one line, progress while runs train, and warnings about the numbers."""
    sweep = sweep.reread()  # a search adds trials
    rows, results = run_rows(sweep), read()
    is_changing = may_change(sweep, rows, now=time.time())
    is_changing = is_changing or any(may_change(one, run_rows(one), now=time.time()) for one in others)
    if is_live and not is_changing:
        st.rerun()  # the whole page, which then is not refreshed any more
    plan = results.plan
    size = f"{counted(len(plan.variants), 'variant')}, {counted(len(plan.runs), 'run')} of "
    size += f"{compute_text(plan.budget_gpu_hours)} {plan.compute_name}, "
    size += f"{compute_text(plan.budget_gpu_hours * len(plan.runs))} in all."
    show_document(head(results, size=size), scope=plan.sweep)
    show_progress(sweep, rows, is_live=is_changing)
    unkept = unkept_results_note(results)
    warned = [*([Text(text=unkept, kind="warning")] if unkept else []), *remark_blocks(results.remarks)]
    places = places_of_runs(results, (sweep, *others))
    written = notes_table(results.sweep)
    blocks = [*warned, *note_blocks(results.notes), *([Folded(title="Notes", blocks=[written])] if written else [])]
    show_document(blocks, scope=plan.sweep, runs=places)


def places_of_runs(results: Results, sweeps: Sequence[StartedSweep]) -> dict[str, PageAddress]:
    """The sweep and id of every run by its name, for a link to its page."""
    sweep_of = {run.id: one.name for one in reversed(sweeps) for run in one.plan.runs}
    return {run.name: {"sweep": sweep_of[run.id], "run": run.id} for run in results.runs if run.id in sweep_of}


def current(own: StartedSweep, others: Sequence[StartedSweep], baseline: str) -> Results:
    """The results for the current plans on disk, since a search adds trials."""
    return load_results(with_baseline(together(own.reread(), others), baseline))


@errors_on_page()
def plain_section(show_section: Callable[[Results, Shown], None], read: Callable[[], Results], shown: Shown) -> None:
    """Show a section, read anew."""
    show_section(read(), shown)


@errors_on_page()
def folded_section(name: str, read: Callable[[], Results], shown: Shown) -> None:
    """Show a section of `FOLDED`, read anew once it is open; nothing without a comparison."""
    label, show_section = FOLDED[name]
    results = read()
    if results.comparison is not None or name == "fits":
        folded(name, label, show_section, results, shown)


@errors_on_page()
def folded_runs(own: StartedSweep, sweep: StartedSweep, shown: Shown) -> None:
    """Show the training metrics, and a link to all runs; for a search, also its progress."""
    own = own.reread()
    if (search := read_search(own)) is not None:
        done = f"{len(search.ranked)} of {search.num_trials} trials are done"
        st.caption(in_markdown(f"{done}: {note(search, own.plan.reference)}. The Search page lists the trials."))
    folded("metrics", "Training metrics", show_metrics, sweep, shown)
    label = f"Table of all {len(own.plan.runs):,} runs: filter, sort, group"
    show_link("runs", label, {"sweep": own.name}, icon=":material/table_rows:")


def folded(name: str, label: str, draw: Callable[..., None], *given: Any) -> None:
    """Show `label`, and below it what `draw(*given)` shows once it is opened; the URL has the open ones by `name`."""
    key = widget_key(f"{name} folded")
    st.session_state.setdefault(key, name in in_url(OPEN_PARTS))
    part = st.expander(label, key=key, on_change="rerun")
    others = [one for one in in_url(OPEN_PARTS) if one != name]
    put_in_url(OPEN_PARTS, sorted([*others, name]) if part.open else others)
    if part.open:
        with part:
            draw(*given)
