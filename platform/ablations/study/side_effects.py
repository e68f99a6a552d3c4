"""Settings of a trainer with side effects on a comparison, found before anything trains.

Each function of EFFECTS gives the effect that settings of one variant have, and what to write instead, or None.
docs/behind_comparisons.md says in which version each was seen, and how.
"""

import ast
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from ablations.logs.trainer_defaults import ACTOR, LORA, ROLLOUT
from ablations.study.expand import Study
from ablations.study.needed_packages import PROGRAM
from ablations.study.program_settings import ProgramSettings, Unreadable, calls_in, settings_of_program
from scalerl.checks.finding import Finding
from scalerl.plain_json import parsed_json
from scalerl.readable_folders import refuse_unreadable
from scalerl.recipe.command import CommandRecipe

Effect = tuple[str, str] | None
COUNTS_LEFT = ("dapo", "cispo", "vespo", "bnpo")
"""Losses of TRL that are divided by the tokens left after masking."""
EVALUATION_SIZES = (
    "test_split_size",
    "max_eval_samples",
    "eval_samples",
    "eval_size",
    "dataset_test_split",
    "eval_split",
)
"""Settings of TRL and of scripts that say how many prompts are held out: 100, or `test[:100]`."""
UNEQUAL_EVALUATIONS = ("eval_strategy", "eval_steps", "num_generations_eval", *EVALUATION_SIZES)
"""Settings of TRL that say when and on what a run is evaluated."""
MOST_READ = 20_000
"""Rows of a data file that are read."""
MOST_OF_DATA = 50_000_000
"""Characters of them; a file may be one line."""


def side_effects(study: Study) -> list[Finding]:
    """Warnings about a study of a known trainer: each effect once, with the variants that have it if not all do."""
    found: dict[tuple[str, str, str], list[str]] = {}
    evaluations: dict[str, dict[str, tuple[str, str]]] = {}
    for variant in study.variants:
        if not isinstance(variant.recipe, CommandRecipe):
            return []
        settings = settings_of_program(variant.recipe, study.sweep.reference, study.budget_at.source)
        for check, of_settings in EFFECTS.items() if settings else ():
            with suppress(Unreadable, ArithmeticError):
                if settings and (effect := of_settings(settings, study.sweep.seeds)):
                    found.setdefault((check, *effect), []).append(variant.name)
        with suppress(Unreadable):
            if settings and settings.trainer == "trl" and not settings.value("use_vllm"):
                evaluations[variant.name] = {
                    name: (repr(given[0]), settings.shown(name))
                    for name in UNEQUAL_EVALUATIONS
                    if (given := settings.find(name))
                }
    found |= _unequal_evaluations(evaluations, study.reference.name)
    findings: list[Finding] = []
    for (check, text, remedy), names in found.items():
        some = tuple(names) if len(names) < len(study.variants) else ()
        findings.append(Finding(part=PROGRAM, check=check, level="warning", found=text, remedy=remedy, variants=some))
    return findings


def _unequal_evaluations(
    by_variant: dict[str, dict[str, tuple[str, str]]], reference: str
) -> dict[tuple[str, str, str], list[str]]:
    """The variants with other evaluations than the reference, by check, text and remedy; settings as value and text."""
    wanted, found = by_variant.get(reference, {}), dict[tuple[str, str, str], list[str]]()
    for variant, own in by_variant.items() if reference in by_variant else ():
        names = [name for name in UNEQUAL_EVALUATIONS if own.get(name, ("", ""))[0] != wanted.get(name, ("", ""))[0]]
        if names:
            text = (
                f"{' and '.join(own[name][1] if name in own else f'no {name}' for name in names)}, unlike {reference}: "
            )
            text += "an evaluation draws its answers from the random state of training, so runs of one seed have other "
            text += "rollouts after the first one, and are no pair"
            remedy = f"give all variants the same {' and '.join(names)}"
            found.setdefault(("unequal evaluations", text, remedy), []).append(variant)
    return found


def _generation(s: ProgramSettings) -> tuple[int, str]:
    """The optimizer steps after which a step and a generation of TRL end together, and the settings that say so."""
    names = ("num_iterations", "steps_per_generation", "gradient_accumulation_steps")
    if s.value("generation_batch_size") is not None:
        raise Unreadable("generation_batch_size")  # depends on the number of processes
    iterations, steps, accumulation = (Fraction(s.number(name, names[2])) for name in names)
    if min(iterations, steps, accumulation) <= 0:
        raise Unreadable("a number of steps below 1")
    return (iterations * steps / accumulation).numerator, ", ".join(s.shown(name) for name in names if s.find(name))


def _window(s: ProgramSettings, _: Sequence[int]) -> Effect:
    resumes = re.search("resume_from_checkpoint|get_last_checkpoint", s.script) or s.value("resume_from_checkpoint")
    every, (window, why) = s.number("save_steps"), _generation(s)
    if s.value("save_strategy") != "steps" or not resumes or every < 1 or every % window == 0:
        return None
    text = f"{s.shown('save_steps')} is not a multiple of the {window} steps on one generation, by {why}: a run that "
    text += "resumes from a checkpoint in between generates anew, so each later generation comes at another step"
    return text, f"set save_steps to a multiple of {window}, such as {-(-every // window) * window:g}"


def _dropout(s: ProgramSettings, _: Sequence[int]) -> Effect:
    name = {"trl": "lora_dropout", "verl": f"{LORA}.dropout"}.get(s.trainer, "trainer.model.lora.dropout")
    why = "old log-probs have no dropout"
    if s.trainer == "trl":
        has_lora = s.find(name) if "LoraConfig" in s.script else s.value("use_peft") is True
        steps, shown = _generation(s)
        is_apart = steps > 1 or (s.value("use_vllm") and s.value("vllm_importance_sampling_correction"))
        if not has_lora or not is_apart or s.value("disable_dropout"):
            return None
        why = f"by {shown if steps > 1 else s.shown('use_vllm')} old log-probs are computed apart, other units dropped"
    if not s.number(name) or (s.trainer == "verl" and not s.number(f"{LORA}.rank")):
        return None
    return f"{s.shown(name)}: {why}, so ratios are clipped though the policy has not moved", f"set {name} to 0"


def _masking(s: ProgramSettings, _: Sequence[int]) -> Effect:
    if s.value("mask_truncated_completions") is not True or s.value("loss_type") not in COUNTS_LEFT:
        return None
    text = f"{s.shown('mask_truncated_completions')} with {s.shown('loss_type')}, which is divided by the tokens left: "
    text += "when most answers are cut, the others get the weight of the whole batch"
    return text, "set loss_type to grpo or dr_grpo, or raise max_completion_length"


def _evaluation(s: ProgramSettings, _: Sequence[int]) -> Effect:
    given = {name: re.search(r"^(\d+)$|\[:(\d+)\]$", str(one[0])) for name in EVALUATION_SIZES if (one := s.find(name))}
    sizes = [(name, int(found[1] or found[2])) for name, found in given.items() if found]
    answers, batch = s.number("num_generations_eval", "num_generations"), "per_device_eval_batch_size"
    total = sizes[0][1] * answers if sizes and s.value("eval_strategy") not in ("no", False) else 0
    if total <= s.number(batch) or total % s.number(batch) == 0:
        return None
    text = (
        f"{s.shown(sizes[0][0])}, {answers:g} to each, leaves a smaller last batch by {s.shown(batch)}: eval_reward is "
    )
    text += "the mean of the means of batches, in an order that depends on the seed, so its answers count more"
    return text, f"set {batch} to a divisor of {total:g}"


def _cap(s: ProgramSettings, _: Sequence[int]) -> Effect:
    if s.trainer == "verl":
        mode, bounds = f"{ACTOR}.policy_loss.loss_mode", (f"{ACTOR}.clip_ratio_low", f"{ACTOR}.clip_ratio_high")
        unset = " and ".join(s.shown(name) for name in bounds if s.find(name) is None)
        right = "set clip_ratio_high to the cap less 1, and clip_ratio_low to 10, which bounds nothing"
        is_clipped = s.value(mode) == "cispo" and unset
        return (f"{s.shown(mode)} with {unset}: weights are clipped as PPO's ratios are", right) if is_clipped else None
    name = "epsilon" if s.value("epsilon_high") is None else "epsilon_high"
    if s.value("loss_type") != "cispo" or s.number(name) >= 1:
        return None
    text = f"{s.shown('loss_type')} takes {s.shown(name)} as the cap of its weights: a token of a policy that has not "
    return text + f"moved has weight 1, and counts {s.number(name):g}", "set epsilon_high to the cap, 5 in ScaleRL"


def _request_seed(s: ProgramSettings, seeds: Sequence[int]) -> Effect:
    copies, shared = "the answers to a prompt are copies", "seeds of the study that are neighbours share answers"
    if s.trainer == "verl":
        name = f"{ROLLOUT}.full_determinism"
        text = f"{s.shown(name)}: all requests to a replica have one seed, so there {copies}"
        return (text, f"set {name} to false") if s.value(name) and s.number(f"{ROLLOUT}.n") > 1 else None
    name = "generation_kwargs.seed" if s.trainer == "trl" else "orchestrator.train.sampling.extra_body.seed"
    if (given := s.find(name)) and given[0] is not None and (s.trainer != "trl" or s.value("use_vllm")):
        is_counted = s.trainer == "trl" and s.value("vllm_mode") == "server"
        why = f"answer i to a prompt has it plus i, so {shared}" if is_counted else f"all requests have it, so {copies}"
        return f"{s.shown(name)}: {why}", f"leave out {name}"
    for call in calls_in(s.script, "SamplingParams") if any(b - a == 1 for a, b in pairwise(sorted(seeds))) else ():
        own = {one.arg: ast.unparse(one.value) for one in call.keywords}
        if own.get("n", "1") != "1" and re.fullmatch(r"[A-Za-z_][\w.]*", own.get("seed", "")):
            text = f"SamplingParams has n={own['n']} and seed={own['seed']}: completion i of n has the seed plus i, so "
            return text + shared, f"write seed={own['seed']} * 1000"
    return None


def _warm_up(s: ProgramSettings, _: Sequence[int]) -> Effect:
    name = "deepspeed.scheduler.type"
    starts = [s.find(f"deepspeed.scheduler.params.{one}") for one in ("warmup_min_lr", "warmup_min_ratio")]
    if (
        s.find(name) is None
        or "Warmup" not in s.shown(name)
        or any(one and one[0] not in (0, "auto") for one in starts)
    ):
        return None
    text = f"{s.shown(name)} has rate 0 in the first two updates, which change nothing"
    return text, "set warmup_min_lr, or warmup_min_ratio for WarmupCosineLR, above 0"


def _data(s: ProgramSettings, _: Sequence[int]) -> Effect:
    files = [(name, path) for name, (one, _) in s.given.items() for path in (one if isinstance(one, list) else [one])]
    for name, path in files:
        if isinstance(path, str) and path.endswith((".jsonl", ".json")) and os.path.isfile(s.folder / path):
            found = os.stat(s.folder / path)
            if column := _mixed_column(s.folder / path, (found.st_mtime_ns, found.st_size)):
                text = f"{path} ({name}): column {column} has texts and numbers, so datasets reads its texts as JSON, "
                return text + "007 as 7 and null as None", f"write all values of {column} as texts"
    return None


@lru_cache(maxsize=64)
def _mixed_column(path: Path, _: tuple[int, int]) -> str | None:
    """A column with texts and numbers in the first rows of a file, of this time and size; None without one."""
    kinds: dict[str, set[type]] = {}
    with suppress(OSError, ValueError, AttributeError):
        refuse_unreadable(path)
        with path.open(errors="replace") as file:
            lines = file.read(MOST_OF_DATA).split("\n", MOST_READ)[:MOST_READ]
        for column, value in (pair for line in lines for pair in parsed_json(line).items()):
            kinds.setdefault(column, set()).add(float if type(value) is int else type(value))
    return next((column for column, found in kinds.items() if found >= {str, float}), None)


EFFECTS: dict[str, Callable[[ProgramSettings, Sequence[int]], Effect]] = {
    "window": _window, "dropout": _dropout, "masking": _masking, "evaluation": _evaluation, "cap": _cap,
    "request seed": _request_seed, "warm-up": _warm_up, "data": _data,
}  # fmt: skip
