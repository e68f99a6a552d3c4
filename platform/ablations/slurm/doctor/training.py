"""A minute of training with two generators and two learner ranks, in a probe job or here, and what it shows.

The run uses `recipes/scales/doctor.yaml` with the installed engines. This file is also the program that trains:

    <home>/doctor/doctor.1f0c9ad2/
      question.json    the run and its budget
      home/runs/...    the run, as in any home folder
      trained.json     the result
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ablations.files.tail import tail
from ablations.home.home import Home
from ablations.pools.job import train_run
from ablations.study.resolve import load_resolved
from ablations.text import counted
from scalerl.checks.finding import Finding, judged
from scalerl.recipe import ResolvedRecipe
from scalerl.run.run_folder import write_atomically
from scalerl.run.run_log import read_rows

NUM_DEVICES = 4
"""Two generators and two ranks."""
MEMORY_MB = 16_000
"""Host memory for a run with GPUs, whose processes keep their libraries there; without GPUs half of it."""
LIMIT_S = 600.0
"""vLLM may take minutes to load from a cold shared folder and to compile."""
NUM_LOG_LINES = 12
CHECK = "training"


def resolved_recipe(installed: Iterable[str]) -> ResolvedRecipe:
    """The recipe of the run; the built-in generator or torch's own sharding replaces a missing engine."""
    settings = () if "vllm" in installed else ("generator.type=torch",)
    settings = settings if "deepspeed" in installed else (*settings, "learner={type: fsdp, ranks: 2}")
    return load_resolved("scalerl", "doctor", settings)


def lay_run(folder: Path, recipe: ResolvedRecipe) -> dict[str, Any]:
    """Create the run in the folder; returns the question for the program."""
    name = recipe.identity(0)
    Home(folder / "home").run(name).create(recipe, 0)
    return {"run": name, "budget_gpu_hours": recipe.compute_unit_gpu_hours}


def main(place: Path) -> None:
    """Train the run in the folder, and report its state, its measurements and, if it failed, the end of its log."""
    question, home = json.loads((place / "question.json").read_text()), Home(place / "home")
    folder, began = home.run(question["run"]), time.monotonic()
    train_run(folder.path, question["budget_gpu_hours"], home.warm_starts)
    status, steps = folder.read_status(), list(read_rows(folder.metrics, kind="train"))
    report = {
        "state": status.state,
        "message": status.message,
        "warnings": status.warnings,
        "seconds": time.monotonic() - began,
        "steps": len(steps),
        "pass_rates": [row["pass_rate"] for row in read_rows(folder.metrics, kind="eval")],
        "mismatch": next((row["mismatch"] for row in steps if row.get("mismatch") is not None), None),
        "log": [] if status.state == "done" else tail(folder.log(status.attempt), NUM_LOG_LINES),
    }
    write_atomically(place / "trained.json", json.dumps(report).encode())


def train_apart(folder: Path) -> dict[str, Any]:
    """Train in a separate process; returns its report, or the `problem` that prevented one and a `log`."""
    command = [sys.executable, "-P", __file__, str(folder)]
    try:
        done = subprocess.run(command, timeout=LIMIT_S, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    except subprocess.TimeoutExpired:
        problem, printed = f"a run of about a minute had not ended after {LIMIT_S:g} s", ""
    else:
        if done.returncode == 0:
            return json.loads((folder / "trained.json").read_text())
        problem, printed = f"the run's process ended with exit code {done.returncode}", done.stderr
    logs = sorted((folder / "home" / "runs").glob("*/logs/attempt-*.log"))
    of_run = tail(logs[-1], NUM_LOG_LINES) if logs else []
    return {"problem": problem, "log": printed.splitlines()[-NUM_LOG_LINES:] or of_run}


def check_training_here(installed: Iterable[str], say: Callable[[str], None]) -> Finding:
    """Train on this machine, and delete the files."""
    # Processes of an interrupted run may keep writing for a moment.
    with tempfile.TemporaryDirectory(prefix="doctor-", ignore_cleanup_errors=True) as name:
        folder, recipe = Path(name), resolved_recipe(installed)
        (folder / "question.json").write_text(json.dumps(lay_run(folder, recipe)))
        say("this machine trains for about a minute")
        return training_finding("this machine", train_apart(folder), recipe)


def training_finding(part: str, report: dict[str, Any], recipe: ResolvedRecipe) -> Finding:
    """Judge a run: it must reach its budget and take steps, and generator and learner must agree."""
    what = f"2 generators ({recipe.generator.type}) and 2 ranks ({recipe.learner.type})"
    problem = report.get("problem", "")
    if not problem and report["state"] != "done":
        problem = f"a run with {what} is {report['state'] or 'not begun'}: {report['message']}"
    elif not problem and not report["steps"]:
        problem = f"a run with {what} ended without an optimiser step"
    if problem:
        remedy = "below are the last lines of the run's log; to repeat it, run `platform train scalerl --scale doctor`"
        log = tuple(report["log"])
        return Finding(part=part, check=CHECK, level="error", found=problem, remedy=remedy, log=log)
    found = f"{what} took {counted(report['steps'], 'optimiser step')} in {report['seconds']:.0f} s, start included"
    if rates := report["pass_rates"]:
        found += f"; pass rate {rates[0]:.2f} to {rates[-1]:.2f}"
    if report["mismatch"] is not None:
        found += f"; log-probs of generator and learner differ by {report['mismatch']:.1e} nats at the first step"
    warnings = "; ".join([found, *report["warnings"]]) if report["warnings"] else ""
    return judged(part, CHECK, warnings, found, "see the warnings of the run", level="warning")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
