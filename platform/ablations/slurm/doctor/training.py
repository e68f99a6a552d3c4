"""Checks that a minute of training works on a node or here, with two generators and two learner ranks.

The run uses `recipes/scales/doctor.yaml` with the installed engines.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ablations.files.tail import tail
from ablations.home.home import Home
from ablations.slurm.commands import Partition
from ablations.slurm.doctor.probe_job import JobShape, Probe, Probing, no_report
from ablations.slurm.doctor.short_run import NUM_LOG_LINES
from ablations.study.resolve import load_resolved
from ablations.text import counted
from scalerl.checks.finding import Finding, judged
from scalerl.recipe import ResolvedRecipe

NUM_DEVICES = 4
"""Two generators and two ranks."""
MEMORY_MB = 16_000
"""Memory with GPUs, whose processes keep their libraries in host memory; half of that without."""
LIMIT_S = 600.0
"""vLLM may take minutes to load from a cold shared folder and to compile."""
CHECK = "training"
REMEDY = "the lines below are the end of the run's log; to repeat it, run `platform train scalerl --scale doctor`"


def engine_settings(installed: Iterable[str]) -> tuple[str, ...]:
    """Settings of the scale for missing engines: the built-in generator, and torch's own sharding."""
    settings = () if "vllm" in installed else ("generator.type=torch",)
    return settings if "deepspeed" in installed else (*settings, "learner={type: fsdp, ranks: 2}")


def check_training_here(installed: Iterable[str], say: Callable[[str], None]) -> Finding:
    """Train in a separate process on this machine, and delete its files."""
    part = "this machine"
    # Processes of an interrupted run may keep writing for a moment.
    with tempfile.TemporaryDirectory(prefix="doctor-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        recipe, question = lay_run(folder, installed)
        (folder / "question.json").write_text(json.dumps(question))
        say("this machine trains for about a minute")
        try:
            subprocess.run(
                [sys.executable, "-m", "ablations.slurm.doctor.short_run", str(folder)],
                timeout=LIMIT_S, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            found, printed = f"a run of about a minute had not ended after {LIMIT_S:g} s", ""
        except subprocess.CalledProcessError as error:
            found, printed = f"the run's process ended with exit code {error.returncode}", error.stderr
        else:
            return training_finding(part, json.loads((folder / "report.json").read_text()), recipe)
        log = tuple(printed.splitlines()[-NUM_LOG_LINES:]) or log_of(folder)
        return Finding(part=part, check=CHECK, level="error", found=found, remedy=REMEDY, log=log)


def check_training(probing: Probing, partition: Partition, installed: Iterable[str]) -> Iterator[Finding]:
    """Train in one job and judge its report; the job is removed afterwards."""
    part = f"a node of partition {partition.name}"
    if 0 < partition.gpus < NUM_DEVICES:
        found = f"not trained: nodes have {counted(partition.gpus, 'GPU')}, but the run needs {NUM_DEVICES}"
        yield Finding(part=part, check=CHECK, level="warning", found=found, remedy="choose another --partition")
        return
    shape = JobShape(
        program=("-m", "ablations.slurm.doctor.short_run"),
        cpus=NUM_DEVICES,
        memory_mb=MEMORY_MB if partition.gpus else MEMORY_MB // 2,
        gpus=NUM_DEVICES if partition.gpus else 0,
        time_min=LIMIT_S / 60,
        report_limit_s=LIMIT_S,
        doing="trains for about a minute on",
    )
    with Probe(probing, partition, shape) as probe:
        recipe, question = lay_run(probe.folder, installed)
        if refused := probe.submit(**question):
            asks = f"the job requests {NUM_DEVICES} processors and {shape.memory_mb} MB"
            remedy = f"{asks}; to change this, pass --sbatch NAME=VALUE"
            yield Finding(part=part, check=CHECK, level="error", found=refused, remedy=remedy)
            return
        report = probe.report()
        yield no_report(part, probe) if report is None else training_finding(part, report, recipe)


def lay_run(folder: Path, installed: Iterable[str]) -> tuple[ResolvedRecipe, dict[str, Any]]:
    """Create the run in the folder; returns its recipe, and the question for the program."""
    recipe = load_resolved("scalerl", "doctor", engine_settings(set(installed)))
    home, name = Home(folder / "home"), recipe.identity(0)
    home.run(name).create(recipe, 0)
    return recipe, {"run": name, "budget_gpu_hours": recipe.compute_unit_gpu_hours}


def training_finding(part: str, report: dict[str, Any], recipe: ResolvedRecipe) -> Finding:
    """Judge a run: it must reach its budget and take steps, and generator and learner must agree."""
    what = f"2 generators ({recipe.generator.type}) and 2 ranks ({recipe.learner.type})"
    problem = ""
    if report["state"] != "done":
        problem = f"a run with {what} is {report['state'] or 'not begun'}: {report['message']}"
    elif not report["steps"]:
        problem = f"a run with {what} ended without an optimiser step"
    rates = report["pass_rates"]
    found = f"{what} took {counted(report['steps'], 'optimiser step')} in {report['seconds']:.0f} s, start included"
    if rates:
        found += f"; pass rate {rates[0]:.2f} to {rates[-1]:.2f}"
    if report["mismatch"] is not None:
        found += f"; log-probs of generator and learner differ by {report['mismatch']:.1e} nats at the first step"
    if problem:
        log = tuple(report["log"])
        return Finding(part=part, check=CHECK, level="error", found=problem, remedy=REMEDY, log=log)
    warnings = "; ".join([found, *report["warnings"]]) if report["warnings"] else ""
    return judged(part, CHECK, warnings, found, "see the warnings of the run", level="warning")


def log_of(folder: Path) -> tuple[str, ...]:
    """The last lines of the run's log."""
    logs = sorted((folder / "home" / "runs").glob("*/logs/attempt-*.log"))
    return tuple(tail(logs[-1], NUM_LOG_LINES)) if logs else ()
