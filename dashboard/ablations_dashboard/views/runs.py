"""All runs of a sweep as one table to filter, sort and group; failed and collapsed runs first."""

import time
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from ablations.errors import AblationsError
from ablations.home.start_command import start_command
from ablations.home.started_sweep import StartedSweep
from ablations.report.documents.blocks import Cell, table_of_rows
from ablations.report.documents.number_cells import interval_cell, number_cell
from ablations.status.progress import run_rows
from ablations.status.units_table import units_table
from ablations.text import compute_text, counted, setting_text
from ablations_dashboard.drawings.settings import SHARES_LEGEND, parallel_coordinates, shares_chart
from ablations_dashboard.escape import in_code, in_markdown, with_code
from ablations_dashboard.reading.cache import REFRESH_S, may_change
from ablations_dashboard.run_table.condition import fulfilled
from ablations_dashboard.run_table.groups import groups_of, spread_within
from ablations_dashboard.run_table.importance import LEAST_SETTINGS, shares_of_settings
from ablations_dashboard.run_table.rows import FIRST_COLUMNS, LAST_COLUMNS, run_table, states_in
from ablations_dashboard.sections.progress import show_progress
from ablations_dashboard.selection.sweeps import choose_sweep
from ablations_dashboard.selection.url import in_url, pick, pick_several, put_in_url, switch, widget_key
from ablations_dashboard.widgets.document import show_document
from ablations_dashboard.widgets.figure import show_figure
from ablations_dashboard.widgets.links import address
from ablations_dashboard.widgets.message import errors_on_page
from ablations_dashboard.widgets.table import show_table

TROUBLE_FIRST, NO_GROUPS = "failed and collapsed first", "no groups"
MOST_AXES = 8
"""Limit on the settings of the parallel coordinates."""
MOST_VALUES = 40
"""Limit on the values of a setting that are listed to choose from; more are compared in the filter."""
HEIGHT = 560
"""Height of the table in pixels: fifteen rows."""
MESSAGE_PX = 240
"""Width of the messages if any run has one: the browser's own width follows the many empty ones."""
READ_IN_TIME = 500
"""Runs that are read again every `REFRESH_S`; more are read less often, so that a filter seldom waits for it."""
GROUPED_NUMBERS = ("level", "pass rate")
RUN_COLUMNS = {
    "open": st.column_config.LinkColumn("open", display_text=":material/open_in_new:", width=50),
    "compute": st.column_config.ProgressColumn("compute", format="percent", min_value=0.0, max_value=1.0),
    "pass rate": st.column_config.NumberColumn("pass rate", format="%.3f"),
    "level": st.column_config.NumberColumn("level", format="%.3f"),
}
HELP = (
    "Words and comparisons side by side, all of which must hold: `failed`, `seed!=2`, `loss.type=dapo`, "
    '`learning_rate>0.0001`, `compute>50%`, `"out of memory"`.'
)


@errors_on_page()
def show() -> None:
    """Choose a sweep; its runs are read again every few seconds while one trains, and a filter reads nothing."""
    sweep = choose_sweep()
    rows = run_rows(sweep)
    every = REFRESH_S * max(1.0, len(rows) / READ_IN_TIME)
    st.title(f"{in_markdown(sweep.name)}: runs")
    st.fragment(show_runs, run_every=every if may_change(sweep, rows, now=time.time()) else None)(sweep)


@errors_on_page()
def show_runs(sweep: StartedSweep) -> None:
    """Read the runs, and show their progress and table."""
    sweep = sweep.reread()  # a search adds trials
    rows = run_rows(sweep)
    if not rows:
        st.info(f"Sweep {in_code(sweep.name)} has no run yet. {in_code(start_command(sweep))} starts them.")
        return
    show_progress(sweep, rows, is_live=may_change(sweep, rows, now=time.time()))
    st.fragment(show_chosen)(sweep, run_table(sweep, rows))
    if processes := units_table(rows):
        show_document([processes], scope=sweep.name)


@errors_on_page()
def show_chosen(sweep: StartedSweep, table: pd.DataFrame) -> None:
    """Show the runs that the reader asks for, or their groups."""
    settings = [name for name in table if name not in (*FIRST_COLUMNS, *LAST_COLUMNS)]
    try:
        chosen = choose_rows(sweep, table, settings)
    except AblationsError as error:
        st.error(with_code(str(error)))
        return
    if len(settings) >= LEAST_SETTINGS and switch("matters", "Which setting matters"):
        show_what_matters(sweep, chosen, settings)
    left, middle, right, last = st.columns([2, 2, 1, 3], vertical_alignment="bottom")
    groups = [NO_GROUPS, "variant", *settings, "seed", "state"]
    by = pick("group", "Group by", groups, default=NO_GROUPS, scope=sweep.name, widget=left.selectbox)
    if by != NO_GROUPS:
        measures = measures_in(table)
        measure = pick("mean_of", "Mean of", measures, default=measures[0], widget=middle.selectbox)
        show_groups(sweep, chosen, by, measure)
        return
    columns = list(table)
    order = pick("sort", "Sort by", [TROUBLE_FIRST, *columns], default=TROUBLE_FIRST, widget=middle.selectbox)
    is_down = switch("down", "Highest first", widget=right.toggle, disabled=order == TROUBLE_FIRST)
    hidden = pick_several("hide", "Columns to hide", columns, widget=last.multiselect)
    if order != TROUBLE_FIRST:
        chosen = chosen.sort_values(order, ascending=not is_down, kind="stable")
    show_rows(sweep, chosen, hidden)
    size = f"{compute_text(sweep.plan.budget_gpu_hours)} {sweep.plan.compute_name}"
    st.caption(
        f"Compute is the share of {size}. The level is the mean pass rate over the last third of that budget; it and a "
        "collapse are known once a page or a command has fitted the run. A click on a heading sorts too, but only "
        "*Sort by* is in the URL."
    )


def show_what_matters(sweep: StartedSweep, chosen: pd.DataFrame, settings: list[str]) -> None:
    """Show the share of the differences that goes with each setting, and the runs as lines through their settings."""
    measure = measures_in(chosen)[0]
    found = shares_of_settings(chosen, settings, measure)
    if found:
        show_figure(shares_chart(found), name=f"{sweep.name}-shares")
        st.caption(SHARES_LEGEND)
    if left_out := [name for name in settings if name not in [one.setting for one in found]]:
        st.caption(in_markdown(f"Too few variants for a share: {', '.join(left_out)}."))
    if chosen[measure].notnull().to_numpy().any():
        st.plotly_chart(parallel_coordinates(chosen, settings[:MOST_AXES], measure), key=f"{sweep.name} coordinates")
        st.caption("A line per run, lighter for a higher result; drag along an axis to keep the runs that pass there.")


def measures_in(table: pd.DataFrame) -> list[str]:
    """The results that some run has."""
    return [name for name in GROUPED_NUMBERS if table[name].notnull().to_numpy().any()] or ["pass rate"]


def choose_rows(sweep: StartedSweep, table: pd.DataFrame, settings: Sequence[str]) -> pd.DataFrame:
    """The rows by words and comparisons, by state, and by values of settings."""
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    key = widget_key("where")
    st.session_state.setdefault(key, next(iter(in_url("where")), ""))
    with left:
        asked = st.text_input("Filter", key=key, placeholder="failed learning_rate>0.0001 seed=2", help=HELP)
    put_in_url("where", [asked] if asked else [])
    found = fulfilled(table, asked)
    number = Counter(table["state"])
    with right:
        states = pick_several(
            "state", "State (all if none is chosen)", states_in(table["state"]), scope=sweep.name, widget=st.pills,
            selection_mode="multi", format_func=lambda one: f"{in_markdown(one)} {number[one]}",
        )  # fmt: skip
    if states:
        found &= np.isin(table["state"], states)
    every = {name: value_texts(pd.Series(table[name])) for name in settings}
    listed = {name: texts for name, texts in every.items() if 1 < len(texts) <= MOST_VALUES}
    if listed:
        is_open = any(in_url(f"is.{name}") for name in listed)
        with st.expander("Values of settings", expanded=is_open):
            for name, texts in listed.items():
                if wanted := pick_several(f"is.{name}", name, list(texts), scope=sweep.name):
                    found &= pd.Series(table[name]).isin([texts[one] for one in wanted]).to_numpy()
    st.markdown(f"{found.sum():,} of {counted(len(table), 'run')}")
    return pd.DataFrame(table[found])


def value_texts(values: pd.Series) -> dict[str, object]:
    """The values of a setting by their texts, in order."""
    return {setting_text(value): value for value in sorted(values.dropna().unique().tolist())}


def show_rows(sweep: StartedSweep, chosen: pd.DataFrame, hidden: Sequence[str]) -> None:
    """Show the rows without the hidden columns, with a link each; the CSV has all digits and no links."""
    shown = chosen.drop(columns=list(hidden))
    plain = {name: st.column_config.NumberColumn(name, format="plain") for name in shown.select_dtypes("number")}
    links = [address("run", {"sweep": sweep.name, "run": one}) for one in chosen["id"]]
    linked = pd.concat([pd.Series(links, index=shown.index, name="open"), shown], axis="columns")
    csv = shown.to_csv(index=False).encode()
    has_messages = "message" in shown and bool(shown["message"].fillna("").ne("").any())
    wide = {"message": st.column_config.TextColumn("message", width=MESSAGE_PX)} if has_messages else {}
    show_table(linked, name=f"{sweep.name}-runs", columns={**plain, **RUN_COLUMNS, **wide}, csv=csv, height=HEIGHT)


def show_groups(sweep: StartedSweep, chosen: pd.DataFrame, by: str, measure: str) -> None:
    """Show the mean of each group with its interval."""
    found = groups_of(chosen, by, measure)
    if not found:
        st.info("No run is left to group.")
        return
    rows = [
        {
            by: Cell(setting_text(one.value), float(one.value) if isinstance(one.value, int | float) else None),
            "runs": Cell(f"{one.num_counting} of {one.num_runs}", one.num_counting),
            f"mean {measure} [95 %]": interval_cell(one.mean, ".3f"),
            "lowest": number_cell(one.lowest, ".3f"),
            "highest": number_cell(one.highest, ".3f"),
        }
        for one in found
    ]
    spread = spread_within(chosen, measure)
    known = f"standard deviation {spread.sd:.4f}, {spread.freedom} degrees of freedom"
    known = known if spread.freedom else "not known, since no variant has a second seed"
    note = (
        f"Runs that have reached the budget count. Intervals are those of other seeds of the same variants ({known}). "
        "Other settings that differ between groups are not adjusted for; Compare has the effects of a grid."
    )
    table = table_of_rows(rows, name="groups", notes=(note,))
    show_document([table], scope=sweep.name)
