"""One run: why it went well or wrong, what its policy writes, then its metrics, hours, log and recipe."""

import shlex
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pandas as pd
import streamlit as st
import yaml

from ablations.errors import AblationsError
from ablations.files.tail import tail
from ablations.findings.remarks import remarks_on_run
from ablations.home.notes import NoteSubject, notes_of_run
from ablations.home.source import is_imported, source_of
from ablations.home.start_command import start_command
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from ablations.nearest_name import did_you_mean
from ablations.readings.readings_together import WantedRun, readings_of_runs
from ablations.report.documents.comparison import remark_blocks
from ablations.report.documents.notes import note_rows, notes_as_table
from ablations.status.progress import run_rows
from ablations.status.remarked import run_of_row
from ablations.status.rows import RunRow
from ablations.status.run_logs import attempt_numbers, job_logs
from ablations.study.recipe_differences import recipe_differences
from ablations.terminal.visible import made_visible
from ablations.text import capitalised, compute_text
from ablations.tracking.sync_note import default_tracking_uri, read_note
from ablations_dashboard.drawings.run import Counter, counter_titles, hours_chart, metrics_chart
from ablations_dashboard.escape import in_code, in_markdown, with_code
from ablations_dashboard.reading.cache import REFRESH_S, may_change
from ablations_dashboard.reading.run_log import load_log, load_metrics
from ablations_dashboard.run_table.rows import is_broken, state_called
from ablations_dashboard.sections.figures import SMOOTHED, no_steps_yet
from ablations_dashboard.sections.note_form import show_note_form
from ablations_dashboard.sections.rollouts import show_rollouts
from ablations_dashboard.sections.what_to_do import what_to_do
from ablations_dashboard.sections.why import show_findings, show_why
from ablations_dashboard.selection.sweeps import choose_sweep
from ablations_dashboard.selection.url import in_url, pick, pick_several, put_in_url
from ablations_dashboard.widgets.document import show_document
from ablations_dashboard.widgets.figure import show_figure
from ablations_dashboard.widgets.message import errors_on_page
from ablations_dashboard.widgets.table import show_table
from scalerl.credentials import HIDDEN, values_without_secrets
from scalerl.errors import CannotResume
from scalerl.recipe import ResolvedRecipe
from scalerl.recipe.command import AnyRecipe
from scalerl.recipe.task_sentences import task_sentence
from scalerl.run.run_folder import RunFolder

METRIC_HEIGHT = 65
"""Height in pixels of one metric among all."""
LOG_LINES = 25
BADGES = {State.DONE: "green", State.RUNNING: "blue"}
"""Colour of a state; a failure, a collapse and a fall are red, any other grey."""


@errors_on_page()
def show() -> None:
    """Choose a sweep and a run; the page refreshes every few seconds while the run trains."""
    sweep = choose_sweep()
    rows = run_rows(sweep)
    run_id = choose_run(sweep, rows)
    is_live = may_change(sweep, rows, now=time.time())
    st.fragment(show_run, run_every=REFRESH_S if is_live else None)(sweep, run_id)


def choose_run(sweep: StartedSweep, rows: list[RunRow]) -> str:
    """The id of the run named in the URL, or the first one; without it the page ends here with a message."""
    names = {row.id: row.name for row in rows}
    if not names:
        st.title("Run")
        st.info(f"Sweep {in_code(sweep.name)} has no run yet. {in_code(start_command(sweep))} starts them.")
        st.stop()
    wanted = in_url("run")
    by_name = {row.name: row.id for row in rows}
    if wanted and wanted[0] in by_name:  # an address that a person wrote
        wanted = [by_name[wanted[0]]]
        put_in_url("run", wanted)
    # The URL may name a run of another sweep if the sweep was changed, here or on another page.
    if wanted and wanted[0] not in names and wanted[0] not in sweep.home.run_ids():
        st.title("Run")
        near = in_markdown(did_you_mean(wanted[0], list(by_name), "runs"))
        st.error(f"No run {in_code(wanted[0])} in sweep {in_code(sweep.name)}; {near}")
        st.stop()
    return pick(
        "run",
        "Run",
        list(names),
        default=next(iter(names)),
        scope=sweep.name,
        widget=st.sidebar.selectbox,
        is_kept=True,
        format_func=lambda one: f"{made_visible(names[one])} ({one})",
    )


@errors_on_page()
def show_run(sweep: StartedSweep, run_id: str) -> None:
    """Show everything about one run; an unreadable section says so and leaves the others as they are."""
    sweep = sweep.reread()
    row = next((row for row in run_rows(sweep) if row.id == run_id), None)
    if row is None:
        raise AblationsError(f"Sweep `{sweep.name}` no longer has run `{run_id}`; choose another.")
    folder = sweep.run(run_id)
    st.title(in_markdown(row.name))
    show_state(sweep, row, folder)
    if folder.path.exists():
        for heading, section in {"": show_why, **SECTIONS}.items():
            if heading in OWN_SECTIONS and is_imported(folder):
                continue
            if heading:
                st.header(heading)
            try:
                section(sweep, folder)
            except (AblationsError, ValueError) as error:
                st.error(with_code(str(error)))
    else:
        st.info(f"The run has no folder {in_code(str(folder.path))}: it was not started, or the folder was deleted.")


def show_state(sweep: StartedSweep, row: RunRow, folder: RunFolder) -> None:
    """Show the progress of a run in a line, its problem, and the command to fix it."""
    plan, state = sweep.plan, row.state
    is_bad = is_broken(state.state)
    if state.state.ends_attempt:  # a collapse is known once the run is fitted, which takes a moment if nothing has
        readings_of_runs([WantedRun(folder=folder, name=row.name, settings=plan.fit_settings)])
    run = run_of_row(sweep, row, plan.fit_settings)
    called = state_called(state.state, run)
    colour = "red" if is_bad or called != state.state else BADGES.get(state.state, "gray")
    rate = "none yet" if state.pass_rate is None else f"{state.pass_rate:.3f}"
    facts = (
        f":{colour}-badge[{in_markdown(called)}]",
        f"pass rate **{rate}**",
        f"{compute_text(state.compute_gpu_hours)} of {compute_text(plan.budget_gpu_hours)} {plan.compute_name}",
        *([f"step {state.step:,}"] if state.step or not plan.imported else ()),  # a table of curves may have no steps
        f"run {in_code(row.id)} of sweep {in_code(sweep.name)}",
    )
    st.markdown(" · ".join(facts))
    with suppress(AblationsError):  # the section Recipe says that a recipe cannot be read
        recipe = recipe_of(folder)
        if isinstance(recipe, ResolvedRecipe):
            st.caption(in_markdown(task_sentence(recipe.tasks)))
    if written := note_rows(row.name, notes_of_run(sweep.home, row.id)):
        show_document([notes_as_table(written)], scope=row.id)
    if folder.path.exists():
        show_note_form(row.id, {row.name: NoteSubject(home=sweep.home, folder=folder.path)})
    if text := what_to_do(sweep, row):
        (st.error if is_bad else st.info)(text)
    remarks = remarks_on_run(run, plan.hours_name)
    said = [replace(one, text=f"{capitalised(one.text)}.") for one in remarks]
    show_document(remark_blocks(said), scope=row.id)
    show_findings(row, folder, is_quiet=not remarks)


def show_metrics_of_run(sweep: StartedSweep, folder: RunFolder) -> None:
    """Show all training metrics, one below another with a common zoom."""
    rows = load_metrics(folder)
    if rows.empty:
        st.info(no_steps_yet(sweep))
        return
    rows = rows.dropna(axis="columns", how="all")
    titles: dict[Counter, str] = {
        name: text for name, text in counter_titles(sweep.plan.compute_name).items() if name in rows
    }
    names = sorted(set(rows.columns) - set(titles))
    chosen = pick_several("show", "Metrics (all if none is chosen)", names)
    left, right = st.columns(2)
    against: Counter = pick(
        "against", "x axis", list(titles), default="step", widget=left.radio, format_func=titles.get, horizontal=True
    )
    smoothed = int(pick("mean", "Smoothing, steps", SMOOTHED, default="10", widget=right.select_slider))
    drawn = {name: name for name in chosen or names}
    look = {"title": titles[against], "height": METRIC_HEIGHT}
    chart = metrics_chart(rows, drawn, against=against, smoothed=smoothed, **look)
    show_figure(chart, name=f"{folder.path.name}-metrics", view=f"{len(drawn)}")
    st.caption("Zooming one metric zooms all of them; double-click to show the whole run again.")
    show_table(rows.tail(1), name=f"{folder.path.name}-steps", csv=rows.to_csv(index=False).encode())
    st.caption("Everything that was logged at the last step; the CSV has every step.")


def show_hours(sweep: StartedSweep, folder: RunFolder) -> None:
    """Show the device time of each role by activity."""
    rows = [row for row in load_log(folder) if row.get("device_s")]
    if not rows:
        st.info("The log has no hours by role yet.")
        return
    show_figure(hours_chart(rows[-1]["device_s"]), name=f"{folder.path.name}-hours")
    st.caption("Shares of all device time up to the last step; hatched time is idle.")


def show_tasks(sweep: StartedSweep, folder: RunFolder) -> None:
    """Show the newest evaluation of each task."""
    rows = [row for row in load_log(folder) if row["kind"] in ("eval", "downstream")]
    if not rows:
        st.info("No evaluation yet.")
        return
    latest = pd.DataFrame([row for row in rows if row["step"] == rows[-1]["step"]])
    columns = ["task", "step", "pass_rate", "num_samples", "mean_tokens", "truncated", "interrupted", "turns", "earned"]
    show_table(latest[[name for name in columns if name in latest]], name=f"{folder.path.name}-tasks")


def show_log(sweep: StartedSweep, folder: RunFolder) -> None:
    """Show the last lines of an attempt's output."""
    attempts = [str(number) for number in reversed(attempt_numbers(folder))]
    paths = {f"attempt {number}": folder.log(int(number)) for number in attempts}
    paths |= {f"job, {path.name}": path for path in reversed(job_logs(sweep.home, folder.path.name))}
    if not paths:
        st.info(
            "There is no log: either the run has not started, or `platform train` ran it and printed to the terminal."
        )
        return
    name = pick("log", "Log of", list(paths), default=next(iter(paths)), scope=folder.path.name)
    lines = tail(paths[name], LOG_LINES)
    st.code("\n".join(map(made_visible, lines)) or "(empty)", language=None, wrap_lines=True)
    command = f"platform logs {folder.path.name} --follow {sweep.home.option}"
    st.caption(f"The last {LOG_LINES} lines of {in_code(str(paths[name]))}; {in_code(command)} follows it.")


def show_recipe_of_run(sweep: StartedSweep, folder: RunFolder) -> None:
    """Show the recipe of the run, and its differences from the reference; for an imported run, its source."""
    if (source := source_of(folder)) is not None:
        st.markdown(
            f"Imported from {in_code(source.place)} by the reader {in_code(source.reader)}. Only its curves were "
            "imported: there are no rollouts, no hours by role, no log and no recipe."
        )
        rows = [(one.path, one.bytes, one.sha256) for one in source.files]
        show_table(pd.DataFrame(rows, columns=["file", "bytes", "SHA-256"]), name=f"{folder.path.name}-source")
        return
    recipe = recipe_of(folder)
    (reference,) = [variant for variant in sweep.plan.variants if variant.name == sweep.plan.reference]
    beside = next((run.id for run in reference.runs if sweep.run(run.id).path.exists()), None)
    if folder.path.name in {run.id for run in reference.runs}:
        st.markdown("This run belongs to the reference variant.")
    elif beside is None:
        st.info("The reference has no run yet to compare this one with.")
    else:
        found = recipe_differences(recipe_of(sweep.run(beside)), recipe)
        frame = pd.DataFrame(
            [(one.path, one.left, one.right) for one in found], columns=["setting", "reference", "run"]
        )
        show_table(frame.map(made_visible), name=f"{folder.path.name}-differences")
        st.caption("The Recipes page explains each setting.")
    with st.expander("All settings"):
        text = yaml.safe_dump(
            values_without_secrets(recipe.model_dump(mode="json")), sort_keys=False, allow_unicode=True
        )
        st.code(made_visible(text), language="yaml")


def recipe_of(folder: RunFolder) -> AnyRecipe:
    """The recipe of a run; AblationsError if its recipe.json cannot be used."""
    try:
        return folder.read_recipe()[0]
    except CannotResume as error:
        raise AblationsError(str(error)) from error


def show_tracking(sweep: StartedSweep, folder: RunFolder) -> None:
    """Show the location of the run in MLflow."""
    note = read_note(sweep.home, sweep.name)
    known = note.runs.get(folder.path.name)
    if known is None:
        st.info(
            f"MLflow does not have this run. {in_code(f'platform sync {sweep.name} {sweep.home.option}')} sends it."
        )
    elif note.tracking_uri.startswith(("http://", "https://")):
        st.link_button(
            "Open the run in MLflow",
            f"{note.tracking_uri.replace(f'{HIDDEN}@', '').rstrip('/')}/#/runs/{known.mlflow_id}",
        )
    else:
        is_own = note.tracking_uri == default_tracking_uri(sweep.home)
        command = (
            f"platform mlflow {sweep.home.option}"
            if is_own
            else f"mlflow ui --backend-store-uri {shlex.quote(note.tracking_uri)}"
        )
        st.markdown(f"{in_code(command)} serves the store that has this run. Then:")
        st.link_button("Open the run in MLflow", f"http://127.0.0.1:5000/#/runs/{known.mlflow_id}")


SECTIONS: dict[str, Callable[[StartedSweep, RunFolder], None]] = {
    "What the policy writes": show_rollouts,
    "All metrics": show_metrics_of_run,
    "Newest evaluation by task": show_tasks,
    "Where the hours went": show_hours,
    "Log": show_log,
    "Recipe": show_recipe_of_run,
    "MLflow": show_tracking,
}
OWN_SECTIONS = {"What the policy writes", "Where the hours went", "Log"}
"""Sections that an imported run cannot have."""
