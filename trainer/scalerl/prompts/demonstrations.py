"""Judges written solutions before they are used: a warm start learns only from those that their verifier accepts."""

from collections import Counter
from collections.abc import Iterable, Sequence

from scalerl.prompts.judge import NOT_JUDGED, VerifierFailed, verdicts
from scalerl.rollout import Outcome
from scalerl.tasks import Task, TaskError
from scalerl.tasks.left_out import MOST_ROWS_NAMED
from scalerl.tasks.mix import Mix
from scalerl.tasks.text_task import TextTask


def keep_right_demonstrations(task: Task) -> None:
    """Judge every written solution of `task`, or of a mix of tasks, once; keep only the right ones as demonstrations.

    Prints the number of rejected solutions with their outcomes. Raises like `refuse_demonstrations`.
    """
    refuse_without_demonstrations([task])
    for one in task.tasks.values() if isinstance(task, Mix) else [task]:
        if isinstance(one, TextTask) and one.has_demonstrations:
            _keep_right(one)


def refuse_without_demonstrations(tasks: Iterable[Task]) -> None:
    """Raises TaskError if no task has a written solution, so that a warm start would have nothing to learn from."""
    if not any(task.has_demonstrations for task in tasks):
        raise TaskError(
            "the warm start has nothing to learn from: no task has written solutions; set a task's `solution` to a "
            "column of written solutions, or set warm_start.steps to 0"
        )


def refuse_demonstrations(name: str, outcomes: Sequence[tuple[str, Outcome]]) -> str:
    """Describe the rejected solutions of a task; `outcomes` are file and line of each solution, and its outcome.

    Raises TaskError if all are rejected. Raises VerifierFailed if one could not be judged: silently leaving it out
    would change what the same recipe and seed learn.
    """
    refused = [(where, outcome) for where, outcome in outcomes if outcome != "right"]
    counts = Counter(outcome for _, outcome in refused)
    named = ", ".join(where for where, _ in refused[:MOST_ROWS_NAMED])
    found = f"{', '.join(f'{count:,} {outcome}' for outcome, count in counts.items())}; the first: {named}"
    if NOT_JUDGED & counts.keys():
        raise VerifierFailed(
            f"warm_start: the verifier of task {name!r} failed to judge all {len(outcomes):,} written solutions "
            f"({found}); restart the run. `platform doctor` checks whether programs can run here"
        )
    if outcomes and len(refused) == len(outcomes):
        raise TaskError(
            f"warm_start: the verifier rejected every one of the {len(outcomes):,} written solutions of task "
            f"{name!r} ({found}); correct them, set `solution` to another column, or set "
            "warm_start.steps to 0"
        )
    return found


def _keep_right(task: TextTask) -> None:
    demonstrations = task.demonstrations()
    judged = verdicts(task, lambda pair: (pair[0], task.judge(pair[0], list(pair[1])).outcome), demonstrations)
    found = refuse_demonstrations(task.name, [(task.written(prompt).where, outcome) for prompt, outcome in judged])
    refused = {prompt.id for prompt, outcome in judged if outcome != "right"}
    if not refused:
        return
    task.stop_demonstrating(refused)
    print(
        f"task {task.name}: {len(refused):,} of {len(demonstrations):,} written solutions are not used, because the "
        f"verifier rejected them: {found}",
        flush=True,
    )
