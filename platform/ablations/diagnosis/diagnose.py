"""All rules on one run: what is wrong, since when, how sure, what it has cost and what to change."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ablations.diagnosis.held_out_rules import HELD_OUT_RULES
from ablations.diagnosis.history import STRIDE, History, StepWindow, windows
from ablations.diagnosis.library_rules import LIBRARY_RULES
from ablations.diagnosis.symptom import Symptom, TrainingRule
from ablations.diagnosis.training_rules import TRAINING_RULES
from scalerl.run.health import RECENT

Sureness = Literal["sure", "likely", "possible"]
CAUSES_FIRST = (
    "held-out score fell",
    "verifier fails",
    "environment fails",
    "verifier contradicted",
    "not a number",
    "steps skipped",
    "reward pays something else",
    "one answer for everything",
    "learned by heart",
)
"""What the held-out scores say; then the rules that name a cause by themselves, before possible consequences."""
EXPLAINS_A_LOSS = (*CAUSES_FIRST[1:], "learning rate too high", "entropy explodes", "entropy gone", "mismatch grows")
"""Rules that explain why a score is gone."""
BY_DESIGN_LAST = (
    "steps at rate 0",
    "rows overwritten",
    "evaluations off the page",
    "prompts run out",
    "score falls",
    "episodes cut",
    "environment slow",
    "starved",
    "noisy evaluation",
)
"""Rules about conditions that may be intended, or that spoil the log and not the run."""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """One finding about a run.

    Diagnosis(rule="entropy explodes", text="entropy rose from 0.41 to 1.90 nats per token: ...", since_step=60,
              how_sure="sure", cost_share=0.7, change="lower entropy_bonus ...")
    """

    rule: str
    text: str
    since_step: int | None
    """Step from which the rule holds until the end; None if it is about the whole run."""
    how_sure: Sureness
    cost_share: float | None
    """Share of the run's compute spent since then."""
    change: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def diagnose(history: History) -> list[Diagnosis]:
    """Findings about the run at its end, the likeliest cause first."""
    newest_first = [*windows(history)]
    found = [
        one
        for name, rule in TRAINING_RULES.items()
        if (one := _of_steps(history, newest_first, name, rule)) is not None
    ]
    whole_run_rules = HELD_OUT_RULES | LIBRARY_RULES
    for name, rule in whole_run_rules.items():
        if (symptom := rule(history)) is not None:
            found.append(_diagnosis(history, name, symptom, symptom.since, "likely"))
    names = [*TRAINING_RULES, *whole_run_rules]
    order = [*CAUSES_FIRST, *(name for name in names if name not in (*CAUSES_FIRST, *BY_DESIGN_LAST)), *BY_DESIGN_LAST]
    found.sort(key=lambda one: order.index(one.rule))
    return [one for one in found if not _is_explained(one, found)]


def _is_explained(one: Diagnosis, found: Sequence[Diagnosis]) -> bool:
    """True of a loss of the score that another finding explains: one that does not begin after a score that is gone."""
    if one.rule == "score falls":
        return any(other.rule not in BY_DESIGN_LAST for other in found)
    if one.rule != "score gone at once":
        return False
    return any(other.rule in EXPLAINS_A_LOSS and (other.since_step or 0) <= (one.since_step or 0) for other in found)


def _of_steps(history: History, newest_first: Sequence[StepWindow], name: str, rule: TrainingRule) -> Diagnosis | None:
    """The rule's finding at the end of the run, and the first step from which it holds until there."""
    symptom: Symptom | None = None
    first: StepWindow | None = None
    held = 0
    for window in newest_first:
        found = rule(window)
        if found is None:
            break
        symptom, first, held = symptom or found, window, held + 1
    if symptom is None or first is None:
        return None
    since = int(first.recent[0]["step"])
    steps = RECENT + STRIDE * (held - 1)
    sure: Sureness = "sure" if steps >= 2 * RECENT else "likely" if held > 1 else "possible"
    return _diagnosis(history, name, symptom, since, sure)


def _diagnosis(history: History, name: str, symptom: Symptom, since: int | None, sure: Sureness) -> Diagnosis:
    share = None if since is None else history.share_since(since)
    return Diagnosis(
        rule=name, text=symptom.text, since_step=since, how_sure=sure, cost_share=share, change=symptom.change
    )
