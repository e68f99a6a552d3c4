"""What the policy of a run writes: rollouts of its first evaluation beside those of another."""

import json

import streamlit as st

from ablations.home.started_sweep import StartedSweep
from ablations_dashboard.reading.run_log import Rows, load_rollouts
from ablations_dashboard.selection.url import pick
from ablations_dashboard.text.rollout import ROLLOUT_STYLE, rollouts_html, versions_of
from ablations_dashboard.widgets.download import offer_download
from scalerl.run.run_folder import RunFolder

LATEST = "latest"
ROLLOUT_KINDS = {"held_out": "held-out prompts, the same each time", "trained": "the batch trained on before it"}


def show_rollouts(_: StartedSweep, folder: RunFolder) -> None:
    """Show the policy's rollouts at the first evaluation beside those at the newest, or at a chosen one."""
    rows = load_rollouts(folder)
    if not rows:
        st.info("No sample rollouts yet: nothing has been evaluated.")
        return
    left, right = st.columns(2)
    steps = [LATEST, *map(str, dict.fromkeys(row["step"] for row in reversed(rows)))]
    step = pick(
        "rollouts",
        "Beside the first: the evaluation of step",
        steps,
        default=LATEST,
        scope=folder.path.name,
        widget=left.selectbox,
    )
    at = rows[-1]["step"] if step == LATEST else int(step)
    kind = pick(
        "of",
        "Rollouts of",
        list(ROLLOUT_KINDS),
        default="held_out",
        widget=right.radio,
        format_func=ROLLOUT_KINDS.__getitem__,
    )
    of_kind = [row for row in rows if row["kind"] == kind]
    shown = [row for row in of_kind if row["step"] == at]
    if not shown:
        st.info("There are none of this kind at this step: before the first optimiser step nothing was trained on.")
        return
    start = of_kind[0]["step"]
    first = [row for row in of_kind if row["step"] == start] if start != at else []
    st.html(ROLLOUT_STYLE + legend_html([*first, *shown]) + rollouts_html(first, shown))
    lines = "".join(json.dumps(row) + "\n" for row in shown)
    name = f"{folder.path.name}-step-{at}-{kind}.jsonl"
    offer_download("Rollouts as JSON lines", lines, name, key="rollouts jsonl")


def legend_html(rows: Rows) -> str:
    """The legend of the tokens' looks; empty if no token was chosen."""
    versions = versions_of(rows)
    if not versions:
        return ""
    said = (
        "the number below them, and their colour, is the step of the weights that wrote them"
        if len(versions) > 1
        else f"weights of step {versions[0]}"
    )
    return (
        f'<div class="rollout"><span class="cut">Tokens: {said}; <span class="forced">underlined ones</span> were '
        "forced by the interruption; faint rollouts are not in the loss; \\x1b stands for a control character."
        "</span></div>"
    )
