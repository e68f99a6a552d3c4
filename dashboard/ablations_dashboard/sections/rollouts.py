"""The policy's rollouts in the first evaluation beside those in a later one, as HTML: tokens coloured
by their weights, forced tokens underlined, control characters shown. Episodes read as a conversation.

The output of a policy is never trusted: all of it is escaped, so that no browser or terminal interprets any of it.
"""

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from ablations.diagnosis.history import turns_of
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import read_state
from ablations.terminal.visible import made_visible
from ablations_dashboard.reading.run_log import Rows, load_rollouts
from ablations_dashboard.selection.url import pick
from ablations_dashboard.widgets.table import offer_download
from scalerl.run.run_folder import RunFolder

KeptRow = Mapping[str, Any]

TINTS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9")
"""Colours of weights, newest first and then repeated; translucent, so that they suit light and dark pages."""
OPACITY = "2e"

ROLLOUT_STYLE = f"""<style>
.rollout {{ font: 0.875rem/1.6 ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere; margin: 0 0 1rem }}
.pairs {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 0 2rem }}
.pairs .at {{ font: 600 0.875rem system-ui, sans-serif }}
.rollout .part {{ border-left: 3px solid rgba(128,128,128,.5); padding: .1rem 0 .1rem .7rem; margin: .3rem 0;
  white-space: pre-wrap }}
.rollout .name {{ font: 600 0.75rem system-ui, sans-serif; opacity: .75; display: block }}
.rollout sub {{ font-size: .65rem; opacity: .8; padding-left: 1px; user-select: none }}
.rollout .forced {{ text-decoration: underline wavy #d55e00; text-underline-offset: 3px }}
.rollout .cut {{ font: italic 0.8rem system-ui, sans-serif; opacity: .8 }}
.rollout .masked {{ opacity: .6 }}
.rollout .said {{ border-left-style: dotted; margin-right: 3rem;
  background: repeating-linear-gradient(135deg, rgba(128,128,128,.14) 0 5px, transparent 5px 10px) }}
.rollout .turn {{ margin-left: 3rem }}
.rollout .end {{ font: 600 0.75rem system-ui, sans-serif; padding: .1rem .5rem; border-radius: 1rem; color: #fff;
  background: #5f5f5f }}
.rollout .won {{ background: #00724f }} .rollout .lost, .rollout .rules_broken {{ background: #a83c00 }}
.rollout .key {{ padding: 0 .3rem; border-radius: 3px }}
{"".join(f".rollout .v{place} {{ background: {colour}{OPACITY} }} " for place, colour in enumerate(TINTS))}
</style>"""
LATEST = "latest"
ROLLOUT_KINDS = {"held_out": "held-out prompts, the same each time", "trained": "the batch trained on before it"}


def in_html(text: str) -> str:
    r"""The text as HTML; control characters are shown by their number: ESC as `\x1b`."""
    return html.escape(made_visible(text))


def rollout_html(row: KeptRow) -> str:
    """One row of `rollouts.jsonl`: its outcome, then prompt, thinking and answer, or the turns of an episode."""
    newest = next(iter(versions_of([row])), 0)
    masked = " masked" if row.get("masked") else ""
    own, said = (f" turn{masked}", " said") if "turns" in row else (masked, "")
    parts = [f'<div class="rollout"><div>{_heading(row)}</div>']

    def show(name: str, shown: Sequence[Mapping[str, Any]], look: str) -> None:
        if shown:
            body = "".join(_span(span, newest) for span in shown)
            parts.append(f'<div class="part{look}"><span class="name">{name}</span>{body}</div>')

    def show_turns(turns: Sequence[Mapping[str, Any]], left_out: str) -> None:
        for turn in turns:
            if "left_out" in turn:
                parts.append(f'<div class="cut">… {turn["left_out"]:,} {left_out} are not kept …</div>')
                continue
            show("environment", turn.get("environment", ()), said)
            place = f"{_turn_text(turn)}: " if said else ""
            show(f"{place}thinking", turn["thinking"], own)
            show(f"{place}answer", turn["answer"], own)

    show("environment" if said else "prompt", row["prompt"], said)
    show_turns(turns_of(row), "turns")
    for turns in row.get("others", ()):
        parts.append('<div class="cut">another conversation of the same agent, with what it repeats</div>')
        show_turns(turns, "turns" if len(turns) > 1 else "conversations")
    if said:
        end = f'<span class="name">environment</span>{in_html(row["why"])} {_end(row)}'
        parts.append(f'<div class="part{said}">{end}</div>')
    if row.get("right_answer") is not None:
        parts.append(f'<div class="part"><span class="name">right answer</span>{in_html(row["right_answer"])}</div>')
    return "".join((*parts, "</div>"))


def _turn_text(turn: Mapping[str, Any]) -> str:
    """The number of a turn and what it got: `turn 2, reward 0.1, advantage +0.34`."""
    credit = f", advantage {turn['advantage']:+.2f}" if "advantage" in turn else ""
    return f"turn {turn['turn']:,}, reward {turn['reward']:.3g}{credit}"


def _end(row: KeptRow) -> str:
    """Why an episode ended, as a badge; empty for an answer."""
    end = in_html(row.get("end", ""))
    return end and f'<span class="end {end}">{end.replace("_", " ")}</span>'


def rollouts_html(first: Sequence[KeptRow], shown: Sequence[KeptRow]) -> str:
    """The rollouts of one evaluation, each beside that of the first evaluation to the same prompt if `first` has any;
    rollouts of a trained batch stand in the order of their places.
    """
    if not first:
        return "".join(map(rollout_html, shown))
    by_prompt = {(row["task"], row["prompt_id"]): row for row in first}
    beside = [by_prompt.get((row["task"], row["prompt_id"])) for row in shown]
    if not any(beside):
        beside = [*first, *[None] * len(shown)]
    pairs = []
    for before, row in zip(beside, shown, strict=False):
        sides = [_at(before) + rollout_html(before) if before else "", _at(row) + rollout_html(row)]
        pairs.append("".join(f"<div>{side}</div>" for side in sides))
    return f'<div class="pairs">{"".join(pairs)}</div>'


def _at(row: KeptRow) -> str:
    return f'<div class="at">step {row["step"]:,}</div>'


def outcome_text(row: KeptRow) -> str:
    """The outcome of a rollout: `right, reward 1, advantage +0.34, 9 tokens`; an episode has its end as a badge."""
    said = [*([] if "end" in row else [str(row["verdict"])]), f"reward {row['reward']:.3g}"]
    if row.get("dropped"):
        said.append(f"read without {row['dropped']}")
    if row.get("advantage") is not None:
        said.append(f"advantage {row['advantage']:+.2f}")
    said.append(f"{row['tokens']:,} tokens")
    if row["truncated"]:
        said.append("cut off at the token limit")
    if row.get("masked"):
        said.append(f"not in the loss: {row['masked']}")
    return ", ".join(said)


def versions_of(rows: Sequence[KeptRow]) -> list[int]:
    """The weight versions that chose tokens of these rollouts, newest first."""
    turns = (turn for row in rows for several in (turns_of(row), *row.get("others", ())) for turn in several)
    spans = (span for turn in turns for part in ("thinking", "answer") for span in turn.get(part, ()))
    return sorted({span["version"] for span in spans if "version" in span}, reverse=True)


def _heading(row: KeptRow) -> str:
    mark = "✓" if row["verdict"] == "right" else "✗"
    where = in_html(f"{row['task']} {row['prompt_id']}")
    return f"<strong>{mark} {_end(row)} {in_html(outcome_text(row))}</strong> · {where}"


def _span(span: Mapping[str, Any], newest: int) -> str:
    if "left_out" in span:
        return f'<div class="cut">… {span["left_out"]:,} tokens are not kept …</div>'
    text = in_html(span["text"])
    if "version" not in span:
        return text
    version, forced = span["version"], span.get("forced", False)
    said = f"{span['tokens']} tokens, weights of step {version}{', forced' if forced else ''}"
    look = f"v{(newest - version) % len(TINTS)}{' forced' if forced else ''}"
    return f'<span class="{look}" title="{said}">{text}</span><sub>{version}</sub>'


def show_rollouts(sweep: StartedSweep, folder: RunFolder) -> None:
    """Show the policy's rollouts at the first evaluation beside those at the newest, or at a chosen one."""
    rows = load_rollouts(folder)
    if not rows:
        has_ended = read_state(folder, sweep.plan.budget_gpu_hours).state.ends_attempt
        st.info(f"This run has kept no sample rollouts{'' if has_ended else ' yet: its first evaluation writes them'}.")
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
        st.info("No rollouts of this kind at this step: nothing had been trained on before the first optimiser step.")
        return
    start = of_kind[0]["step"]
    first = [row for row in of_kind if row["step"] == start] if start != at else []
    st.html(ROLLOUT_STYLE + legend_html([*first, *shown]) + rollouts_html(first, shown))
    lines = "".join(json.dumps(row) + "\n" for row in shown)
    name = f"{folder.path.name}-step-{at}-{kind}.jsonl"
    offer_download("Rollouts as JSON lines", lines, name)


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
    heard = "what an environment said is hatched and never in the loss; " if any("turns" in row for row in rows) else ""
    return (
        f'<div class="rollout"><span class="cut">Tokens: {said}; <span class="forced">underlined ones</span> were '
        f"forced by the interruption; {heard}faint rollouts are not in the loss; \\x1b stands for a control character."
        "</span></div>"
    )
