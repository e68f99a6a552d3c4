"""Written solutions are judged before they teach: a warm start learns only from those that their own verifier takes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from scalerl.prompts.judge import NOT_JUDGED, VerifierFailed
from scalerl.rollout import Outcome
from scalerl.tasks import Task, TaskError
from scalerl.tasks.file_task import FileTask
from scalerl.tasks.left_out import MOST_ROWS_NAMED
from scalerl.tasks.mix import Mix


def keep_right_demonstrations(task: Task) -> None:
    """Judge every written solution of `task`, or of a mix of tasks, once; demonstrate those alone that are right.

    Says how many are refused, and as what; TaskError and VerifierFailed as `refuse_demonstrations` says.
    """
    refuse_without_demonstrations([task])
    for one in task.tasks.values() if isinstance(task, Mix) else [task]:
        if isinstance(one, FileTask) and one.has_demonstrations:
            _keep_right(one)


def refuse_without_demonstrations(tasks: Iterable[Task]) -> None:
    """TaskError if no task has a written solution: a warm start of any length would learn from nothing."""
    if not any(task.has_demonstrations for task in tasks):
        raise TaskError(
            "the warm start has nothing to learn from: no task has written solutions; name a column of written "
            "solutions by a task's `solution`, or set warm_start.steps to 0"
        )


def refuse_demonstrations(name: str, outcomes: Sequence[tuple[str, Outcome]]) -> str:
    """Which written solutions of a task may not teach, in words; `outcomes` are file and line of each, and its verdict.

    TaskError if none may, and VerifierFailed if one could not be judged: left out in silence it would change what the
    same recipe and seed learn.
    """
    refused = [(where, outcome) for where, outcome in outcomes if outcome != "right"]
    counts = Counter(outcome for _, outcome in refused)
    named = ", ".join(where for where, _ in refused[:MOST_ROWS_NAMED])
    found = f"{', '.join(f'{count:,} {outcome}' for outcome, count in counts.items())}; the first: {named}"
    if NOT_JUDGED & counts.keys():
        raise VerifierFailed(
            f"warm_start: the verifier of task {name!r} did not judge all {len(outcomes):,} written solutions "
            f"({found}); start the run again. `platform doctor` says whether programs can be run here"
        )
    if outcomes and len(refused) == len(outcomes):
        raise TaskError(
            f"warm_start: its own verifier refuses every one of the {len(outcomes):,} written solutions of task "
            f"{name!r} ({found}), so none may teach; correct them, name another column by `solution`, or set "
            "warm_start.steps to 0"
        )
    return found


def _keep_right(task: FileTask) -> None:
    demonstrations = task.demonstrations()
    with ThreadPoolExecutor(max_workers=task.num_judges) as threads:
        outcomes: list[Outcome] = list(threads.map(lambda pair: task.verify(pair[0], list(pair[1])), demonstrations))
    found = refuse_demonstrations(
        task.name,
        [(task.written(prompt).where, outcome) for (prompt, _), outcome in zip(demonstrations, outcomes, strict=True)],
    )
    refused = {prompt.id for (prompt, _), outcome in zip(demonstrations, outcomes, strict=True) if outcome != "right"}
    if not refused:
        return
    task.stop_demonstrating(refused)
    print(
        f"task {task.name}: {len(refused):,} of {len(demonstrations):,} written solutions do not teach, because their "
        f"own verifier refuses them: {found}",
        flush=True,
    )
