"""Runs given to a campaign, and the refusal of those that cannot be compared with its others."""

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from ablations.answers.footing import MOST_APART
from ablations.answers.level import level_of
from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.home.labels import run_name
from ablations.home.source import source_of
from ablations.home.started_sweep import StartedSweep
from ablations.readings.run_reading import kept_reading
from ablations.text import compute_text, cut_message
from scalerl.recipe.command import AnyRecipe, CommandRecipe
from scalerl.run.run_folder import RunFolder

SHARES_UP_TO = 10_000
"""Number of answers up to which two runs may score the same by chance."""
COARSE_DIGITS = 7
"""Digits behind the point up to which two of a thousand runs may score the same by chance."""
PROMPT_KEYS = ("prompt", "problem", "question", "input")
OF_READING = ("score column", "compute column", "answers of an evaluation")
"""Conditions of how runs were read, compared where both sides say them: curves name no columns, and campaigns of
earlier versions none of these."""
CODE_SUFFIXES = (".py", ".sh", ".yaml", ".yml", ".toml", ".json", ".cfg", ".ini")
"""Suffixes of the files of a folder that count as code and settings."""


@dataclass(frozen=True, kw_only=True)
class NewRun:
    """A run to record: `NewRun(score=0.413, conditions={"machine": "ada, AMD EPYC"})`."""

    score: float
    conditions: Mapping[str, str] = field(default_factory=dict)
    """What all runs of a campaign share: machine, scale, budget, evaluation, judge."""
    source: str = ""
    """The run's id, by which it is recorded once; empty for a bare score."""
    compute: float | None = None


def refuse_unfair(new: Sequence[NewRun], known: Sequence[NewRun], ceiling: float | None) -> None:
    """Raise AblationsError for a score that cannot be, or a run made under other conditions than the first."""
    before = list(known)
    for run in new:
        if not math.isfinite(run.score):
            raise AblationsError(f"score {run.score}: must be a finite number; leave a run that failed out")
        if ceiling is not None and run.score > ceiling:
            raise AblationsError(
                f"score {run.score:g}: above the ceiling of the campaign, {ceiling:g}; look for an error in the "
                "evaluation"
            )
        if not is_coarse(run.score) and any(run.score == one.score for one in before):
            raise AblationsError(
                f"score {run.score!r}: equal to the last digit to a run of this campaign; either it is the same run, "
                "or its seed changes nothing"
            )
        if before:
            _refuse_other_conditions(run.conditions, _conditions_of(before))
        before.append(run)


def _conditions_of(runs: Sequence[NewRun]) -> dict[str, str]:
    """The conditions of the first run, and each reading of the first run that says it."""
    read = {name: text for run in reversed(runs) for name, text in run.conditions.items() if name in OF_READING}
    return {**runs[0].conditions, **read}


def _refuse_other_conditions(given: Mapping[str, str], first: Mapping[str, str]) -> None:
    for name in dict.fromkeys((*first, *given)):
        if name in OF_READING and not (name in given and name in first):
            continue
        here, there = given.get(name, "not said"), first.get(name, "not said")
        if here != there:
            raise AblationsError(
                f"{name}: {cut_message(here, 120)}, but the runs of this campaign have {cut_message(there, 120)}; "
                "scores are compared only if nothing but the proposal differs. Run it as the others, or start another "
                "campaign"
            )


def is_coarse(score: float) -> bool:
    """True if two runs may well have a score: one of few digits, or a share of at most SHARES_UP_TO answers."""
    share = float(Fraction(score).limit_denominator(SHARES_UP_TO))
    return round(score, COARSE_DIGITS) == score or abs(share - score) < 1e-12


def identity_of_files(paths: Sequence[Path], *, home: Path) -> str:
    """Hash of the content of files, and of the code and settings files of folders; empty without any.

    Hidden folders and the home folder are left out, since runs write there.
    """
    found = []
    for path in paths:
        if not path.exists():
            raise AblationsError(f"--code {path}: no such file or folder")
        names = [""] if path.is_file() else sorted(_code_in(path, home))
        if not names:
            raise AblationsError(f"--code {path}: no file in it ends in {', '.join(CODE_SUFFIXES)}; name files")
        found += [(name, hashlib.sha256((path / name).read_bytes()).hexdigest()) for name in names]
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16] if found else ""


def _code_in(folder: Path, home: Path) -> Iterator[str]:
    for parent, folders, files in os.walk(folder):
        folders[:] = [one for one in folders if one[0] != "." and Path(parent, one).absolute() != home]
        here = Path(parent).relative_to(folder)
        yield from (str(here / one) for one in files if one.endswith(CODE_SUFFIXES) and not one.startswith("."))


def refuse_evaluation_prompts(trained_on: Path, evaluation: str) -> None:
    """Raise AblationsError if a file of training prompts has one of the evaluation prompts, or none are known."""
    if not evaluation:
        raise AblationsError("--trained-on: the campaign names no evaluation prompts; start it with --evaluation")
    held_out = set(prompts_in(Path(evaluation)))
    both = [one for one in prompts_in(trained_on) if one in held_out]
    if both:
        raise AblationsError(
            f"{trained_on}: {len(both)} of its prompts are evaluation prompts of {evaluation}, the first "
            f"{cut_message(both[0], 80)!r}; take them out and train again"
        )


def prompts_in(path: Path) -> list[str]:
    """The prompts of a file, one a line: the line, or of a JSON object the first of PROMPT_KEYS."""
    right = f"write a prompt a line, or a JSON object a line with one of the keys {', '.join(PROMPT_KEYS)}"
    found = []
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise AblationsError(f"{path}: cannot be read as prompts: {error}; {right}") from error
    for number, text in enumerate(lines, start=1):
        row = text
        with suppress(ValueError):
            row = json.loads(text)
        if isinstance(row, dict):
            row = next((row[key] for key in PROMPT_KEYS if key in row), None)
        if not isinstance(row, str | int | float):
            raise AblationsError(f"{path}:{number}: found {cut_message(text, 80)!r}; {right}")
        found.append(" ".join(str(row).split()))
    return [one for one in found if one]


def runs_of_sweep(sweep: StartedSweep, variant: str, *, compute: float | None) -> tuple[list[NewRun], str, int]:
    """The runs of a variant with their levels at `compute`, by default the budget, the identity of its recipe, and the
    number of runs left out since they still train.

    AblationsError if a run has ended before, or none has ended.
    """
    plan = sweep.plan
    planned = next(one for one in plan.variants if one.name == variant)
    at, found, identity, unfinished = compute or plan.budget_gpu_hours, list[NewRun](), "", 0
    for run in planned.runs:
        folder = sweep.run(run.id)
        status = folder.read_status()
        curve = kept_reading(folder, run_name(variant, run.seed), plan.fit_settings).curve
        if status.state in ("", "running", "pending", "requeued", "preempted") and not plan.imported:
            unfinished += 1
            continue
        reached = 0.0 if curve is None else float(curve.compute[-1])
        if curve is None or reached * MOST_APART < at:
            command = f"platform retry {plan.sweep}{sweep.home.end_of_command}"
            right = "its log is too short" if plan.imported else f"`{command}` trains it on"
            raise AblationsError(
                f"{run_name(variant, run.seed)} has ended at {compute_text(reached)} of {compute_text(at)} "
                f"{plan.compute_name}; {right}"
            )
        level = level_of(curve, min(at, reached))
        if level is None:
            raise AblationsError(
                f"{run_name(variant, run.seed)}: too few evaluations up to {compute_text(min(at, reached))} "
                f"{plan.compute_name} for a level; evaluate it more often, and look for times in another unit"
            )
        recipe = None if plan.imported else folder.read_recipe()[0]
        conditions = {"budget": f"{at:g} {plan.compute_name}"} | ({"scale": plan.scale} if plan.scale else {})
        conditions |= _reading(folder, curve)
        if recipe is not None:
            identity = hashlib.sha256(f"{recipe.canonical_json()} {status.code_versions}".encode()).hexdigest()[:16]
            conditions |= {"machine": f"{status.host}, {status.processor}", **_evaluation(recipe)}
        spent = status.compute_gpu_hours or reached
        found.append(NewRun(score=level.value, conditions=conditions, source=run.id, compute=spent))
    if not found:
        command = f"platform status {plan.sweep}{sweep.home.end_of_command}"
        raise AblationsError(f"{variant}: no run of it has ended; `{command}` says when they will")
    return found, identity, unfinished


def _reading(folder: RunFolder, curve: Curve) -> dict[str, str]:
    """What score and compute of an imported run are made of, and the answers behind each score if always as many."""
    source, samples = source_of(folder), curve.samples
    found = {} if source is None else {f"{name} column": text for name, text in source.read_as.items()}
    if samples is not None and (samples == samples[0]).all():
        found["answers of an evaluation"] = f"{samples[0]:g}"
    return found


def _evaluation(recipe: AnyRecipe) -> dict[str, str]:
    """What a recipe is judged by: tasks with their judges, and evaluation settings."""
    if isinstance(recipe, CommandRecipe):
        return {"evaluation": json.dumps(recipe.model_dump(mode="json", include={"evaluation"}), sort_keys=True)}
    settings = recipe.canonical("tasks", "evaluation")
    return {name: json.dumps(value, sort_keys=True) for name, value in settings.items()}
