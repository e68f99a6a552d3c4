"""A search: the history of its trials, the settings' importances, the Pareto front, the best trials."""

import time

import streamlit as st

from ablations.errors import AblationsError
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.report.documents.blocks import Folded
from ablations.search.objective import is_maximised, title
from ablations.search.record import SearchRecord, read_search
from ablations.search.tables import note, objective_text, space_table, trials_table
from ablations.status.progress import run_rows
from ablations.study.sweep import load_sweep
from ablations_dashboard.drawings.search import history_chart, importances_chart, pareto_chart
from ablations_dashboard.escape import in_code, in_markdown, with_code
from ablations_dashboard.reading.cache import REFRESH_S, may_change
from ablations_dashboard.selection.sweeps import choose_sweep
from ablations_dashboard.selection.url import pick
from ablations_dashboard.widgets.document import show_document
from ablations_dashboard.widgets.figure import show_figure
from ablations_dashboard.widgets.message import errors_on_page


@errors_on_page()
def show() -> None:
    """Choose a sweep; the page refreshes every few seconds while the search is running."""
    sweep = choose_sweep()
    is_live = may_change(sweep, run_rows(sweep), now=time.time())
    st.fragment(show_search, run_every=REFRESH_S if is_live else None)(sweep)


@errors_on_page()
def show_search(sweep: StartedSweep) -> None:
    """Show everything about one search."""
    sweep = sweep.reread()
    st.title(f"Search: {in_markdown(sweep.name)}")
    record = read_search(sweep)
    if record is None:
        searches = [name for name in sweep.home.sweep_names() if is_search(sweep, name)]
        start = f"platform sweep sweeps/search_lr.yaml {sweep.home.option}"
        others = f" Searches of this home folder: {', '.join(map(in_code, searches))}." if searches else ""
        st.info(
            "This sweep is not a search, so it has no trials." + others + f" To start a search, run {in_code(start)}."
        )
        st.stop()
    done = len(record.ranked)
    st.caption(in_markdown(f"{done} of {record.num_trials} trials done by {record.sampler}; {objective_text(record)}."))
    st.progress(min(1.0, done / record.num_trials))
    if not done:
        command = f"platform status {sweep.name} --watch {sweep.home.option}"
        st.info(f"No trial has finished yet. {in_code(command)} shows when the first one does.")
    else:
        show_found(sweep, record)
    show_trial_table(record, sweep)


def is_search(sweep: StartedSweep, name: str) -> bool:
    """True if another sweep of the home folder is a readable search."""
    try:
        return read_search(read_sweep(sweep.home, name)) is not None
    except AblationsError:
        return False


def show_found(sweep: StartedSweep, record: SearchRecord) -> None:
    """Show the findings of finished trials."""
    from ablations.search.optuna_study import ENOUGH_TRIALS, LEAST_TRIALS  # loads Optuna

    st.markdown(in_markdown(f"{note(record, sweep.plan.reference)}."))
    titles = [title(one) for one in record.objectives]
    chosen = titles[0]
    if len(titles) > 1:
        chosen = pick("objective", "Objective", titles, default=titles[0], scope=sweep.name)
        st.header("Pareto front")
        show_figure(pareto_chart(record), name=f"{sweep.name}-pareto")
    place = titles.index(chosen)
    st.header("History")
    show_figure(history_chart(record, place), name=f"{sweep.name}-history")
    st.header("Importances")
    try:
        found = importances_of(sweep, record, place)
    except AblationsError as error:
        st.error(with_code(str(error)))
        return
    if not found:
        st.info(f"Importances need {LEAST_TRIALS} finished trials that differ.")
        return
    show_figure(importances_chart(found), name=f"{sweep.name}-importances")
    rough = f" {len(record.ranked)} trials are few for this; it becomes steadier from {ENOUGH_TRIALS} on."
    st.caption(
        "How strongly each setting separates the best tenth of the trials from all trials: Optuna's PED-ANOVA "
        f"(arXiv 2304.10255).{rough if len(record.ranked) < ENOUGH_TRIALS else ''}"
    )


def importances_of(sweep: StartedSweep, record: SearchRecord, objective: int) -> dict[str, float]:
    """The importance of every setting of the space, from the finished trials."""
    from ablations.search.optuna_study import importances

    search = load_sweep(sweep.folder / "sweep.yaml").search
    if search is None:
        raise AblationsError(f"{sweep.folder / 'sweep.yaml'}: has no search, but search.json beside it belongs to one")
    return importances(
        search.space,
        [trial.params for trial in record.ranked],
        [record.told(trial)[objective] for trial in record.ranked],
        is_maximised=is_maximised(record.objectives[objective]),
    )


def show_trial_table(record: SearchRecord, sweep: StartedSweep) -> None:
    """Show the trials, best first, and the settings of the search space."""
    st.header("Trials")
    if not record.trials:
        st.info("No trial has been proposed yet.")
    space = Folded(title="Search space", blocks=[space_table(record)])
    show_document([*([trials_table(record)] if record.trials else ()), space], scope=sweep.name)
