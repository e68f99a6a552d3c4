"""Written solutions are judged before they teach: a warm start learns only from those that their own verifier takes."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from scalerl.prompts.judge import NOT_JUDGED, VerifierFailed
from scalerl.tasks import Task, TaskError
from scalerl.tasks.file_task import FileTask
from scalerl.tasks.mix import Mix

MOST_NAMED = 10
"""Rows that one message names."""


def keep_right_demonstrations(task: Task) -> None:
    """Judge every written solution of `task`, or of a mix of tasks, once; demonstrate those alone that are right.

    Says how many are refused, and as what. TaskError if a task that has solutions has none left, and VerifierFailed if
    one could not be judged: left out in silence it would change what the same recipe and seed learn.
    """
    for one in task.tasks.values() if isinstance(task, Mix) else [task]:
        if isinstance(one, FileTask) and one.has_demonstrations:
            _keep_right(one)


def _keep_right(task: FileTask) -> None:
    demonstrations = task.demonstrations()
    with ThreadPoolExecutor(max_workers=task.num_judges) as threads:
        outcomes = list(threads.map(lambda pair: task.verify(pair[0], list(pair[1])), demonstrations))
    refused = {
        prompt.id: (task.written(prompt).where, outcome)
        for (prompt, _), outcome in zip(demonstrations, outcomes, strict=True)
        if outcome != "right"
    }
    if not refused:
        return
    counts = Counter(outcome for _, outcome in refused.values())
    named = ", ".join(where for where, _ in list(refused.values())[:MOST_NAMED])
    found = f"{', '.join(f'{count:,} {outcome}' for outcome, count in counts.items())}; the first: {named}"
    if NOT_JUDGED & counts.keys():
        raise VerifierFailed(
            f"warm_start: the verifier of task {task.name!r} did not judge all {len(demonstrations):,} written "
            f"solutions ({found}); start the run again. `platform doctor` says whether programs can be run here"
        )
    if len(refused) == len(demonstrations):
        raise TaskError(
            f"warm_start: its own verifier refuses every one of the {len(demonstrations):,} written solutions of task "
            f"{task.name!r} ({found}), so none may teach; correct them, name another column by `solution`, or set "
            "warm_start.steps to 0"
        )
    task.stop_demonstrating(refused.keys())
    print(
        f"task {task.name}: {len(refused):,} of {len(demonstrations):,} written solutions do not teach, because their "
        f"own verifier refuses them: {found}",
        flush=True,
    )
