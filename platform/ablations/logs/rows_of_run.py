"""Logs and curves as rows of the run log, for the programs of a command study and for imported runs."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from ablations.errors import AblationsError
from ablations.fit.curve import VARIANCES, Curve
from ablations.log import eval_row
from ablations.logs.meaning import LogMeaning, curve_of_log
from ablations.logs.sources import find_log
from scalerl.recipe.command import ProgramOwnLog


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
    return rows_of_curve(curve)


def rows_of_curve(curve: Curve) -> list[dict[str, Any]]:
    """The readings of a curve as rows of kind `eval`; without steps, they are numbered, and 0 is before training."""
    first = 0 if curve.compute[0] == 0 else 1
    steps = [*range(first, first + curve.compute.size)] if curve.step is None else curve.step.tolist()
    counts = {"num_samples": curve.samples, "num_prompts": curve.prompts}
    known = {name: _plain(values) for name, values in counts.items() if values is not None}
    noise = {name: values.tolist() for name in VARIANCES if (values := getattr(curve, name)) is not None}
    numbers = zip(steps, curve.compute.tolist(), curve.score.tolist(), strict=True)
    return [
        eval_row(
            int(step),
            compute,
            score,
            {name: values[place] for name, values in known.items()}
            | {name: values[place] for name, values in noise.items() if not math.isnan(values[place])},
        )
        for place, (step, compute, score) in enumerate(numbers)
    ]


def _plain(values: np.ndarray) -> list[int | float]:
    """The numbers, whole ones without a decimal point."""
    return [int(one) if one.is_integer() else one for one in values.tolist()]


def by_keys(message: str) -> str:
    """A message of `compare`, rewritten with keys of `trainer.log` instead of options: `--score` is `log.score`."""
    return re.sub(r"--(\w+)", r"log.\1", message.replace("--log", "--trainer"))
