"""Runs the trial of one user function in a separate process with a time limit."""

import json
import os
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

from scalerl.checks.finding import Finding
from scalerl.recipe import Own
from scalerl.recipe.episodes import Episodes
from scalerl.recipe.own_function import copy_files

TRIAL_LIMIT_S = 60.0
"""Seconds for one function, including the start of its process."""


def tried_once(setting: str, own: Own, task: Episodes | None = None) -> Finding:
    """Finding about one function, which several variants may have; tried once in this process.

    `task` is the one whose environment it is.
    """
    return _tried_once(setting, type(own), own.model_dump_json(), task and task.model_dump_json())


@lru_cache
def _tried_once(setting: str, settings: type[Own], own: str, task: str | None) -> Finding:
    whole = Episodes.model_validate_json(task) if task else None
    return try_own(setting, settings.model_validate_json(own), TRIAL_LIMIT_S, whole)


def try_own(setting: str, own: Own, limit_s: float, task: Episodes | None = None) -> Finding:
    """Finding about one function, tried on a copy of its files like the one a run has."""
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_files(own, Path(folder).resolve())
        whole = task.model_copy(update={"environment": copy}) if task else copy
        request = {"setting": setting, "own": whole.model_dump(mode="json")}
        try:
            ended = subprocess.run(
                [sys.executable, "-P", "-m", "scalerl.checks.own_trial"],
                input=json.dumps(request),
                capture_output=True,
                text=True,
                timeout=limit_s,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                cwd=folder,
                check=False,
            )
        except subprocess.TimeoutExpired:
            found = f"{own.file}: {own.function_name} did not end within {limit_s:g} s"
            return _finding(setting, own, found, "look for an endless loop")
        lines = ended.stdout.splitlines()
        if ended.returncode or not lines:
            why = (ended.stderr.splitlines() or [f"exit code {ended.returncode}"])[-1]
            found = f"{own.file}: the process that tries {own.function_name} ended without a result: {why}"
            return _finding(setting, own, found, "correct the function")
        answer = json.loads(lines[-1])
        return _finding(setting, own, answer["found"].replace(copy.folder, own.folder), answer["remedy"])


def _finding(setting: str, own: Own, found: str, remedy: str) -> Finding:
    level = "error" if remedy else "ok"
    return Finding(part="own", check=f"{setting} {own.function}", level=level, found=found, remedy=remedy)
