"""A program's own log as rows of the run log."""

import re
from pathlib import Path
from typing import Any

from ablations.errors import AblationsError
from ablations.logs.meaning import LogMeaning, curve_of_log
from ablations.logs.sources import find_log
from scalerl.recipe.command import ProgramOwnLog

TASK = "score"
"""Name of the task in rows of a program that gives no name."""


def rows_of_run(path: Path, settings: ProgramOwnLog) -> list[dict[str, Any]]:
    """The evaluations in the log at `path`, as rows of kind `eval`; empty while there is no log.

    Raises ValueError if the log cannot be read, or holds several runs; settings are named by their keys.
    """
    if not path.exists():
        return []
    meaning = LogMeaning(**settings.model_dump(exclude={"path"}))
    try:
        logs = find_log(path).read()
        if len(logs) != 1:
            raise AblationsError(f"{path}: {len(logs)} runs in one log; let each run write its own")
        curve, _ = curve_of_log(logs[0], meaning, name=path.stem, start="")
    except AblationsError as error:
        raise ValueError(by_keys(str(error))) from error
    steps = range(curve.compute.size) if curve.step is None else curve.step.astype(int).tolist()
    rows = [
        {"kind": "eval", "step": step, "compute_gpu_hours": compute, "task": TASK, "pass_rate": score}
        for step, compute, score in zip(steps, curve.compute.tolist(), curve.score.tolist(), strict=True)
    ]
    if curve.samples is not None:
        for row, samples in zip(rows, curve.samples.tolist(), strict=True):
            row |= {"num_samples": round(samples), "num_prompts": round(samples)}
    return rows


def by_keys(message: str) -> str:
    """A message of `compare`, rewritten with keys of `trainer.log` instead of options: `--score` is `log.score`."""
    return re.sub(r"--(\w+)", r"log.\1", message.replace("--log", "--trainer"))
