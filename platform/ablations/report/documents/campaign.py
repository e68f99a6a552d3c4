"""A campaign in words: the answer about one proposal, in at most ten lines that end with what to do next, and the whole
campaign as a document."""

import shlex

import numpy as np

from ablations.answers.interval import Interval
from ablations.answers.keep import JUDGED_AT, LEAST_OF_BEST
from ablations.findings.campaign import BEST_SO_FAR, Campaign, Candidate, NextStep
from ablations.report.documents.blocks import Blocks, Cell, Figure, Heading, Text, Tone, table_of_rows
from ablations.report.documents.number_cells import interval_cell, number_cell
from ablations.report.figures.chart import Axis, Chart, DottedLine, Panel, Series
from ablations.report.figures.colours import COLOURS, MARKER_SYMBOLS
from ablations.text import capitalised, four_digits, interval_text
from scalerl.quantities import counted

FORM = ".4f"
FAR_FROM_ALL = 10
"""Distance of a score that may be mistyped from the middle of all others, in their range."""
MOST_UNDECIDED = 3
"""Limit on the undecided proposals that an answer names, the latest."""
MOST_PROPOSALS_NUMBERED = 10
"""Limit on the proposals whose numbers label the axis, within a factor of two."""
REASONS = {
    "keep": "it is better than the best so far",
    "worse": "it is worse than the best so far",
    "no gain": "with a gain worth having, it would score this low in at most one case in ten",
    "spent": f"{JUDGED_AT[-1]} runs have not shown a gain, and more are not worth running",
    "again": "the runs so far do not decide",
}
"""Why, by the word of the judgement."""
_TONES: dict[str, Tone] = {"keep": "good", "worse": "bad", "no gain": "faint", "spent": "faint", "again": "mixed"}
PROMISES = {
    "at_most_one": "at most one false keep in 95 % of campaigns of {} proposals",
    "fdr": "at most a tenth of all keeps false, on average",
}


def answer_lines(campaign: Campaign, step: NextStep) -> list[str]:
    """The answer about a proposal, its reason, and what to do next."""
    name, best = step.name, campaign.best
    assert best is not None
    seen = _seen_lines(campaign, step)
    if step.word == "again":
        due = [f"{counted(step.own_runs, 'more run')} of {name}"] if step.own_runs else []
        due += [f"{counted(step.best_runs, 'more run')} of the best, {best.name}"] if step.best_runs else []
        commands = _commands(campaign, *[name] * (step.own_runs > 0), *[BEST_SO_FAR] * (step.best_runs > 0))
        return [
            f"Run again: {name}. {_sentence(REASONS['again'] if seen else 'it has not been judged yet')}",
            *seen,
            f"Next: {' and '.join(due)}{', in turn' if len(due) > 1 else ''}; record each with {commands}.",
        ]
    if step.word == "keep":
        return [
            f"Keep: {name}. {_sentence(REASONS['keep'])}",
            *seen,
            f"An equal proposal would be kept with a probability of {step.level:.2%} at most.",
            f"Next: build on {name}, which is the best from now on. Measure it afresh with {LEAST_OF_BEST} runs: "
            f"{_commands(campaign, BEST_SO_FAR)}.",
        ]
    return [
        f"Discard: {name}. {_sentence(REASONS[step.word])}",
        *seen,
        *([] if step.word == "worse" else ["This does not say that the two are equal: the gain lies in the interval."]),
        f"Next: go back to {best.name}, and propose something else.",
    ]


def _seen_lines(campaign: Campaign, step: NextStep) -> list[str]:
    """What the judged runs show, and how many would decide."""
    if step.gain is None or step.sd is None or step.margin is None:
        flat = "All runs of a candidate score the same, so that nothing can be decided. Change the seed, or add digits."
        return [flat] if step.num_runs else []
    found = [
        f"Gain {_gain_text(step.gain)} in {counted(step.num_runs, 'run')}; run-to-run sd {step.sd:{FORM}}; "
        f"smallest gain worth having {step.margin:{FORM}}."
    ]
    if step.word == "again":
        enough = f"{step.enough} runs in all" if step.enough else "no number of runs"
        most = f"the most worth making is {JUDGED_AT[-1]}"
        found.append(f"If the gain is as large as seen, {enough} would keep it with a chance of 80 %; {most}.")
    elif (num := len(campaign.candidates[step.name].runs)) > step.num_runs:
        found.append(f"The first {step.num_runs} of {num} runs decided that; the others do not count.")
    return found


def best_lines(campaign: Campaign) -> list[str]:
    """The best so far, how often it is measured, and its luck; of a new campaign its promise."""
    best = campaign.best
    if best is None:
        return [
            f"Campaign {campaign.name}: {promise_text(campaign)}.",
            f"Next: {LEAST_OF_BEST} runs of what you start from: {_keep(campaign, 'start', '--score', 'SCORE')}.",
        ]
    lacking = LEAST_OF_BEST - len(best.fresh)
    found = [f"Best so far: {best.name}{_mean_text([run.score for run in best.fresh])}"]
    if best.number and (afresh := campaign.gain_afresh(best)) is not None and best.decision:
        found.append(f"Gain when kept {best.decision['gain']:+{FORM}}; by fresh runs {_gain_text(afresh)}.")
    if lacking > 0:
        again = _commands(campaign, BEST_SO_FAR)
        return [*found, f"Next: {counted(lacking, 'more run')} of it, before proposals are judged: {again}."]
    if waiting := [one.name for one in campaign.candidates.values() if one.number and one.runs and not one.decision]:
        names = ", ".join(waiting[-MOST_UNDECIDED:])
        return [*found, f"Next: ask again about {names}: {_keep(campaign, waiting[-1])}."]
    return [*found, "Next: propose a change, run it and the best in turn."]


def lines_on_same(name: str, other: Candidate) -> list[str]:
    """The answer about a proposal whose code and settings are those of another."""
    return [
        f"Same as before: {name} has the code and settings of {other.name}, which {_fate(other)}.",
        "Next: change something, or record further runs under that name.",
    ]


def line_on_known(one: Candidate) -> str:
    """The answer about a candidate that is not open."""
    return f"{one.name} was decided before: {one.decision['word']}." if one.decision else f"{one.name} {_fate(one)}."


def _fate(one: Candidate) -> str:
    if one.number == 0:
        return "is where the campaign starts"
    if one.decision is None:
        return "is not decided yet"
    return "was kept" if one.decision["word"] == "keep" else f"was discarded: {REASONS[one.decision['word']]}"


def lines_on_new(campaign: Campaign, one: Candidate) -> list[str]:
    """A word on a candidate that has just been named, which a mistyped name shows by."""
    if one.number == 0:
        told = f"The campaign starts from {one.name}, with which proposals are compared."
        return [] if one.name == "start" else [told]
    most = f" of {campaign.terms.proposals}" if campaign.terms.promise == "at_most_one" else ""
    return [f"{one.name} is a new proposal, number {one.number}{most}."]


def odd_score_lines(campaign: Campaign, one: Candidate) -> list[str]:
    """A word on the last score of a candidate if it may be mistyped: it lies far from all others of the campaign."""
    if not one.runs or one.runs[-1].source:
        return []
    last = one.runs[-1]
    others = [run.score for run in campaign.runs if run is not last]
    lo, hi = min(others, default=last.score), max(others, default=last.score)
    if lo == hi or abs(last.score - (lo + hi) / 2) <= FAR_FROM_ALL * (hi - lo):
        return []
    return [
        f"The score {last.score:g} lies far from all others, {lo:g} to {hi:g}. If it is mistyped, take it back: "
        f"{_keep(campaign, one.name, '--withdraw', repr(last.score))}."
    ]


def answer_json(campaign: Campaign, step: NextStep | None, lines: list[str], exit_code: int) -> dict[str, object]:
    """The answer as plain data."""
    names = {0: "keep", 10: "discard", 11: "run again", 12: "same as before"}
    best = campaign.best
    told: dict[str, object] = {"campaign": campaign.name, "answer": names[exit_code], "exit_code": exit_code}
    told |= {"best": best and best.name, "says": lines, "ledger_sha256": campaign.lines[-1]["sha256"]}
    if step is None:
        return told
    gain = step.gain
    return told | {
        "proposal": step.name,
        "why": step.word,
        "gain": gain and gain.estimate,
        "gain_lo": gain and gain.lo,
        "gain_hi": gain and gain.hi,
        "runs_judged": step.num_runs,
        "more_runs": step.own_runs,
        "more_runs_of_best": step.best_runs,
        "runs_enough": step.enough,
        "most_runs": JUDGED_AT[-1],
        "run_to_run_sd": step.sd,
        "margin": step.margin,
        "level": step.level,
    }


def campaign_document(campaign: Campaign) -> Blocks:
    """What was tried and what became of it; the gains as they seemed and by fresh runs; cost and false keeps."""
    if not campaign.candidates:
        return [Text(text=text) for text in best_lines(campaign)]
    words = [_word(campaign, one) for one in campaign.candidates.values() if one.number]
    num = {word: words.count(word) for word in _TONES}
    cost = f", {four_digits(campaign.compute)} of compute" if campaign.compute else ""
    lead = (
        f"{counted(len(words), 'proposal')}: {num['keep']} kept, {num['worse'] + num['no gain'] + num['spent']} "
        f"discarded ({num['worse']} as worse), {num['again']} undecided; {counted(len(campaign.runs), 'run')}{cost}"
        f"{f', {campaign.num_withdrawn} withdrawn' if campaign.num_withdrawn else ''}."
    )
    false = f"at most {campaign.expected_false:.2f} of {len(campaign.kept)}"
    notes = [f"Promise: {promise_text(campaign)}. Expected false keeps: {false}.", *best_lines(campaign)[:2]]
    if unsteady := campaign.unsteady:
        notes.append(f"Runs scatter more than the others', so the promise is weaker: {', '.join(unsteady)}.")
    return [
        Heading(text=f"Campaign {campaign.name}"),
        Text(text=lead, kind="lead"),
        *(Text(text=text, kind="note") for text in notes),
        *([_figure(campaign)] if campaign.kept else []),
        table_of_rows(
            [_row(campaign, one) for one in campaign.candidates.values()],
            name="proposals",
            kinds={"answer": "words", "what changed": "prose"},
            notes=("gain: when it was decided, or so far. afresh: by runs made after it was kept.",),
        ),
    ]


def _row(campaign: Campaign, one: Candidate) -> dict[str, Cell | str]:
    word = _word(campaign, one)
    gain = None
    if one.decision and one.decision["gain"] is not None:
        gain = Interval(estimate=one.decision["gain"], lo=one.decision["lo"], hi=one.decision["hi"])
    elif one.number and not one.decision:
        gain = campaign.step(one).gain
    kept = one.number and word == "keep"
    shown = {"start": "start", "again": "undecided", "keep": "keep"}.get(word, f"discard: {word}")
    return {
        "proposal": one.name,
        "answer": Cell(shown, tone=_TONES.get(word, "")),
        "runs": Cell(str(len(one.runs)), len(one.runs)),
        "mean": number_cell(float(np.mean([run.score for run in one.runs])), FORM) if one.runs else "",
        "gain": interval_cell(gain, FORM),
        "afresh": interval_cell(campaign.gain_afresh(one), FORM) if kept else "",
        "what changed": one.says,
    }


def _word(campaign: Campaign, one: Candidate) -> str:
    if one.number == 0:
        return "start"
    return one.decision["word"] if one.decision else "again"


def _figure(campaign: Campaign) -> Figure:
    """The sum of the gains of the keeps: as they seemed when kept, and by fresh runs."""
    kept = [one for one in campaign.bests if one.number and one.decision]
    seemed = np.cumsum([one.decision["gain"] for one in kept if one.decision])
    afresh = [(one.number, found) for one in kept if (found := campaign.gain_afresh(one)) is not None]
    sums = np.cumsum([found.estimate for _, found in afresh])
    # Fresh runs of a best serve the gains before and after it, so half-widths are added, not squared.
    halves = np.cumsum([(found.hi or 0.0) - found.estimate for _, found in afresh])
    marks = [
        _series("when kept", [0, *(one.number for one in kept)], [0.0, *seemed], [0.0] * (len(kept) + 1), 1),
        _series("by fresh runs", [0, *(at for at, _ in afresh)], [0.0, *sums], [0.0, *halves], 0),
    ]
    last = max(one.number for one in kept)
    every = max(1, last // MOST_PROPOSALS_NUMBERED)
    panel = Panel(
        x=Axis(title="proposal", ticks=tuple((at, str(at)) for at in range(0, last + 1, every))),
        y=Axis(title="gain over the start"),
        marks=marks,
        rules=[DottedLine(y=0.0)],
        height=300,
    )
    alt = "Cumulative gain of the kept proposals over the start"
    caption = (
        "The gains of the kept proposals, added up. When kept: measured by the runs that chose them, which flatters. "
        "By fresh runs: without that luck, with 95 % intervals."
    )
    return Figure(name="gains", caption=caption, chart=Chart(alt=alt, panels=[panel], legend="below"))


def _series(name: str, x: list[int], y: list[float], halves: list[float], place: int) -> Series:
    values, ends = np.array(y, dtype=float), np.array(halves, dtype=float)
    return Series(
        x=[float(one) for one in x], y=values.tolist(), y_ends=((values - ends).tolist(), (values + ends).tolist()),
        colour=COLOURS[place], width=1.5, symbol=MARKER_SYMBOLS[place], is_filled=[True] * len(x), size=8.0,
        name=name, legend=name, hover="{name}, {text}",
        texts=[f"proposal {at}: {value:+{FORM}}" for at, value in zip(x, values, strict=True)],
    )  # fmt: skip


def promise_text(campaign: Campaign) -> str:
    """The promise of a campaign."""
    return PROMISES[campaign.terms.promise].format(campaign.terms.proposals)


def _commands(campaign: Campaign, *names: str) -> str:
    """The commands that record runs, given as the campaign's others are."""
    how = ["RUNS"] if any(run.source for run in campaign.runs) else ["--score", "SCORE"]
    return " and ".join(_keep(campaign, one, *how) for one in names)


def _keep(campaign: Campaign, *words: str) -> str:
    """The command about this campaign, `platform keep speed start --score SCORE`."""
    return f"`{shlex.join(['platform', 'keep', campaign.name, *words])}{campaign.home.end_of_command}`"


def _gain_text(gain: Interval) -> str:
    return interval_text(gain.estimate, gain.lo, gain.hi, f"+{FORM}")


def _mean_text(scores: list[float]) -> str:
    return (
        f", mean {np.mean(scores):{FORM}} of {counted(len(scores), 'fresh run')}." if scores else ", not measured yet."
    )


def _sentence(text: str) -> str:
    return f"{capitalised(text)}."
