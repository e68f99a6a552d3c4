"""Rules about the kept answers of a run: all alike, or judged otherwise by a second reading."""

from collections import Counter

from ablations.diagnosis.history import History, answer_text
from ablations.diagnosis.second_opinion import audit_rollouts
from ablations.diagnosis.symptom import Symptom

FEWEST_ANSWERS = 8
"""Minimum number of kept answers to different prompts for the finding of one answer."""
ONE_ANSWER = 0.75
"""Share of them that are the same text."""

FEWEST_CONTRADICTED, CONTRADICTED = 3, 0.05
"""Answers that two readings judge differently before the verifier is in doubt: how many, and of those judged twice."""


def one_answer(history: History) -> Symptom | None:
    held = [row for row in history.rollouts if row.get("kind") == "held_out" and not row.get("truncated")]
    steps = sorted({row["step"] for row in held})
    found: Symptom | None = None
    for at in range(len(steps) - 1, -1, -1):
        recent = [row for row in held if row["step"] in steps[max(0, at - 2) : at + 1]]
        texts = Counter(answer_text(row) for row in {(row["prompt_id"], row["step"]): row for row in recent}.values())
        prompts = len({row["prompt_id"] for row in recent})
        text, count = texts.most_common(1)[0]
        is_enough = prompts >= FEWEST_ANSWERS // 2 and texts.total() >= FEWEST_ANSWERS
        if not text or not is_enough or count < ONE_ANSWER * texts.total():
            break
        found = Symptom(
            text=f"{count} of {texts.total()} kept answers to different prompts are the same: `{text[:40]}`",
            change="look at what the reward pays for; balance the right answers of the task",
            since=int(steps[at]),
        )
    return found


def contradicted(history: History) -> Symptom | None:
    """Kept answers that the verifier calls right and a second, independent reading wrong."""
    second = audit_rollouts(history.name, history.rollouts)
    paid = [one for one in second.disagreements if one.verdict == "right"]
    if len(paid) < FEWEST_CONTRADICTED or len(paid) < CONTRADICTED * second.num_judged:
        return None
    first = paid[0]
    text = (
        f"{len(paid)} of {second.num_judged} kept answers are called right that a second reading calls wrong, as "
        f"`{first.stated[:40]}` for `{first.right_answer[:40]}`"
    )
    return Symptom(text=text, change="look at them with `platform audit`, then correct the task or its verifier")
