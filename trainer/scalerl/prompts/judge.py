"""Verdicts on groups of answers, in threads if judging takes time, with counts, and an error if nothing can be judged.

An answer whose verifier timed out or crashed says nothing about the policy, so such an answer is counted and dropped
instead of getting reward 0.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any, TypeVar, get_args

from scalerl.errors import Rejected
from scalerl.objective.rewards import reward
from scalerl.recipe import ResolvedRecipe
from scalerl.rollout import OUTCOME_OF_END, Group, Judgement, Outcome, Prompt, Rollout
from scalerl.tasks import Task

COUNTED_OUTCOMES = (*get_args(Outcome), "doubtful")
NOT_JUDGED = frozenset({"timed_out", "crashed"})
MAX_LOST_GROUPS = 16
"""Consecutive groups of one task with fewer than two judged answers after which the run stops."""


DISTINCT_FAULTS = 5
"""Number of different faults of environments that a run says."""


class VerifierFailed(Rejected):
    """The verifier of a task no longer judges any answer."""


_Item = TypeVar("_Item")
_Verdict = TypeVar("_Verdict")


def verdicts(task: Task, judge: Callable[[_Item], _Verdict], items: Iterable[_Item]) -> list[_Verdict]:
    """The verdict on each item, in the order of the items; in threads if the task can judge several at once."""
    if task.num_judges == 1:
        return list(map(judge, items))
    with ThreadPoolExecutor(max_workers=task.num_judges) as threads:
        return list(threads.map(judge, items))


def judgements(task: Task, rollouts: Sequence[Rollout]) -> list[Judgement]:
    """The task's judgement of each rollout, or its environment's, in the order of the rollouts."""

    def judged(rollout: Rollout) -> Judgement:
        episode = rollout.episode
        if episode is None:
            return task.judge(rollout.prompt, rollout.tokens.tolist())
        outcome = OUTCOME_OF_END[episode.end]
        fault = (episode.why or episode.end) if outcome in NOT_JUDGED else ""
        return Judgement(outcome, earned=episode.earned, fault=fault)

    return verdicts(task, judged, rollouts)


def judgement_counts(judged: Iterable[Judgement]) -> dict[str, int]:
    """Number of answers with each outcome, and number of `doubtful` ones, read only after dropping part of them."""
    seen = [(one.outcome, "doubtful" if one.dropped else "") for one in judged]
    counts = Counter(chain.from_iterable(seen))
    return {name: counts[name] for name in COUNTED_OUTCOMES}


def said_faults(judged: Iterable[tuple[Rollout, Judgement]]) -> list[str]:
    """A sentence about each episode whose environment failed."""
    return [
        f"task {rollout.prompt.task!r}: an episode was thrown away, as its environment failed: {one.fault}"
        for rollout, one in judged
        if one.fault
    ]


class Judge:
    """Makes groups of finished rollouts, without those that could not be judged."""

    def __init__(self, task: Task, recipe: ResolvedRecipe) -> None:
        self.task, self.recipe = task, recipe
        self.counts: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        """Consecutive lost groups by task."""
        self.ends: Counter[str] = Counter()
        """Reasons for which episodes ended, since they were last taken."""
        self.faults: dict[str, str] = {}
        """Sentences about the first DISTINCT_FAULTS different faults of environments, by their text without digits."""

    def group(self, prompt: Prompt, rollouts: Sequence[Rollout]) -> Group | None:
        """Group of the judged rollouts; None for fewer than two, which have no mean to compare with.

        Raises VerifierFailed after MAX_LOST_GROUPS consecutive lost groups of the prompt's task.
        """
        judged = judgements(self.task, rollouts)
        self.counts.update(judgement_counts(judged))
        self.ends.update(rollout.episode.end for rollout in rollouts if rollout.episode)
        self.note_faults(said_faults(zip(rollouts, judged, strict=True)))
        outcomes: list[Outcome] = [one.outcome for one in judged]
        kept = [i for i, outcome in enumerate(outcomes) if outcome not in NOT_JUDGED]
        if len(kept) < 2:
            self._lose(prompt.task, judged)
            return None
        self.lost[prompt.task] = 0
        return Group(
            prompt=prompt,
            rollouts=tuple(rollouts[i] for i in kept),
            rewards=tuple(reward(judged[i], rollouts[i].num_written, self.recipe, prompt.task) for i in kept),
            outcomes=tuple(outcomes[i] for i in kept),
            dropped=tuple(judged[i].dropped for i in kept) if any(one.dropped for one in judged) else (),
        )

    def _lose(self, name: str, judged: Sequence[Judgement]) -> None:
        self.lost[name] += 1
        if self.lost[name] == MAX_LOST_GROUPS:
            raise nothing_judged(name, judged, f"in each of {MAX_LOST_GROUPS} consecutive groups")

    def note_faults(self, said: Iterable[str]) -> None:
        """Keep sentences about faults of environments, also of evaluations, as long as there are few of them."""
        for one in said:
            if len(self.faults) < DISTINCT_FAULTS:
                self.faults.setdefault(re.sub(r"\d+", "", one), one)

    def take_ends(self) -> dict[str, int]:
        """Number of episodes by the reason of their end since the last call, including those not trained on."""
        ends, self.ends = self.ends, Counter()
        return ends

    def take_counts(self) -> dict[str, int]:
        """`judgement_counts` since the last call, including answers that are not trained on."""
        counts = {name: self.counts[name] for name in COUNTED_OUTCOMES}
        self.counts.clear()
        return counts

    def state_dict(self) -> dict[str, Any]:
        """State of the counters, and what was said."""
        state = {"counts": dict(self.counts), "lost": dict(self.lost)}
        return {**state, "ends": dict(self.ends), "faults": dict(self.faults)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly from a `state_dict`."""
        self.counts, self.lost = Counter(state["counts"]), Counter(state["lost"])
        self.ends, self.faults = Counter(state.get("ends", {})), state.get("faults", {})  # of earlier versions


def nothing_judged(name: str, judged: Sequence[Judgement], of_what: str) -> VerifierFailed:
    """Error for groups with at most one judged answer; `judged` is the last of them."""
    seen = ", ".join(f"{count} {outcome}" for outcome, count in judgement_counts(judged).items() if count)
    if faults := [one.fault for one in judged if one.fault]:
        return VerifierFailed(
            f"task {name!r}: the environment failed in all episodes but at most one {of_what} (the last: {seen}); its "
            f"last fault: {faults[-1]}"
        )
    return VerifierFailed(
        f"task {name!r}: the verifier judged fewer than two answers {of_what} (the last: {seen}); possible "
        "causes are a sandbox that does not start and a time limit too short for this machine"
    )
