"""Tries a user's own environment: short episodes, each played twice."""

import time
from collections.abc import Iterator
from typing import cast

from scalerl.checks.own_task_trial import OTHER_ANSWERS
from scalerl.environments.host import EnvironmentCall, Host
from scalerl.environments.protocol import Reply, Start
from scalerl.quantities import counted
from scalerl.recipe import Own
from scalerl.recipe.episodes import Episodes
from scalerl.tasks.episodes import episode_starts

MOST_TURNS = 8
"""Turns of an episode that is tried."""


def trial_of_environment(task: Episodes) -> Iterator[tuple[str, str]]:
    """Problems of an environment, each with its remedy, and the time of its answers."""
    start = episode_starts(task)[1][0]
    began, num_turns = time.perf_counter(), 0
    for text in (None, *OTHER_ANSWERS):
        first, again = played(task, start, text), played(task, start, text)
        num_turns += len(first) + len(again)
        where = f"answered {text!r:.40}" if text is not None else "as it demonstrates"
        if first[-1].end in ("error", "timed_out"):
            yield first[-1].text, f"an episode {where} must go on, or end with a reason of its own"
        if first != again:
            yield (
                "says something else when the same seed and answers are repeated",
                "draw from random or numpy.random, which each episode seeds, and keep nothing between episodes",
            )
    ms = 1000 * (time.perf_counter() - began) / num_turns
    yield f"plays {counted(num_turns, 'turn')}; one takes {ms:.2g} ms", ""


def played(task: Episodes, start: Start, text: str | None) -> list[Reply]:
    """Replies of an episode with the same answer in each turn; None answers as the environment demonstrates."""
    host = Host(cast(str | Own, task.environment), task.settings, task.time_limit_s)
    replies = [host.answer(EnvironmentCall(what="start", key=0, seed=start.seed, row=start.row))]
    while replies[-1].end is None and len(replies) <= min(task.turns, MOST_TURNS):
        said = text
        if said is None:
            shown = host.answer(EnvironmentCall(what="demonstrate", key=0))
            if shown.end:
                break
            said = shown.text
        replies.append(host.answer(EnvironmentCall(what="act", key=0, text=said)))
    host.answer(EnvironmentCall(what="close", key=0))
    return replies
