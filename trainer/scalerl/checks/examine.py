"""Runs each check once for each group of recipes that agree in the settings the check depends on."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from scalerl.checks.answers import check_answers
from scalerl.checks.constant_answers import check_constant_answers
from scalerl.checks.data import check_curriculum, check_data
from scalerl.checks.engines import check_engines
from scalerl.checks.finding import Finding
from scalerl.checks.lengths import check_lengths
from scalerl.checks.memory import check_memory
from scalerl.checks.noise import check_noise
from scalerl.checks.other_forms import check_other_forms
from scalerl.checks.own_process import tried_once
from scalerl.checks.programs import check_sandbox, check_tests
from scalerl.checks.round_trip import check_tokenizer
from scalerl.checks.subject import Subject
from scalerl.recipe import CustomTask, Recipe, ResolvedRecipe
from scalerl.recipe.episodes import Episodes, OwnEnvironment

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Examination:
    """One check, and the settings that determine its outcome."""

    run: Callable[[Subject, Say], Iterator[Finding]]
    blocks: tuple[str, ...]
    """Settings that it depends on, apart from tasks and tokenizer."""
    is_quick: bool = True
    """True if it needs neither torch nor the model's weights."""
    needs_tokenizer: bool = True


def _own(subject: Subject, say: Say) -> Iterator[Finding]:
    """Yields a line for each function of the user's own: what is wrong with it, or how long it takes."""
    for setting, own in subject.recipe.own.items():
        say(f"trying {own.function}")
        if isinstance(own, OwnEnvironment):
            task = subject.recipe.tasks[int(setting.split(".")[1])]
            yield tried_once("environment", own, cast(Episodes, task))
        else:
            yield tried_once("task" if isinstance(own, CustomTask) else setting, own)


def _step(subject: Subject, say: Say) -> Iterator[Finding]:
    from scalerl.checks.step import check_step  # loads torch, which the quick checks do without

    return check_step(subject, say)


EVERYTHING = tuple(ResolvedRecipe.model_fields)
CHECKS = (
    Examination(run=lambda subject, say: check_tokenizer(subject), blocks=(), needs_tokenizer=False),
    Examination(run=lambda subject, say: check_sandbox(subject), blocks=(), needs_tokenizer=False),
    Examination(
        run=lambda subject, say: check_engines(subject),
        blocks=("generator", "learner", "adapter"),
        needs_tokenizer=False,
    ),
    Examination(run=_own, blocks=(*Recipe.model_fields, "tasks"), needs_tokenizer=False),
    Examination(run=lambda subject, say: check_data(subject), blocks=()),
    Examination(run=check_answers, blocks=("warm_start", "model")),
    Examination(run=check_other_forms, blocks=()),
    Examination(run=check_constant_answers, blocks=()),
    Examination(run=check_tests, blocks=(), is_quick=False),
    Examination(run=lambda subject, say: check_curriculum(subject), blocks=("curriculum",)),
    Examination(run=lambda subject, say: check_lengths(subject), blocks=("generation", "length_control", "generator")),
    Examination(run=lambda subject, say: check_noise(subject), blocks=("evaluation",)),
    Examination(run=lambda subject, say: check_memory(subject), blocks=EVERYTHING, is_quick=False),
    Examination(run=_step, blocks=EVERYTHING, is_quick=False),
)


def examine_recipes(recipes: Mapping[str, ResolvedRecipe], *, quick: bool, say: Say) -> Iterator[Finding]:
    """Findings in the order of the checks; `say` gets a line at the start of slow work, and an empty one at its end.

    Recipes that agree in all settings of a check are examined together, so forty variants of a sweep have their data
    read once.
    """
    subjects: dict[str, Subject] = {}
    for check in CHECKS:
        if not quick or check.is_quick:
            yield from _examine(check, recipes, subjects, say)


def _examine(
    check: Examination, recipes: Mapping[str, ResolvedRecipe], subjects: dict[str, Subject], say: Say
) -> Iterator[Finding]:
    """Findings of one check; a finding shared by several groups of recipes is returned once."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, recipe in recipes.items():
        groups.setdefault((data_key(recipe), _key(recipe, check.blocks)), []).append(name)
    found: dict[Finding, list[str]] = {}
    for (data, _), names in groups.items():
        recipe = recipes[names[0]]
        subject = subjects.setdefault(data, Subject(recipe))
        if not (check.needs_tokenizer and isinstance(subject.tokenizer, str)):
            for finding in check.run(subject.of(recipe), say):
                found.setdefault(finding, []).extend(names)
            say("")
    for finding, names in found.items():
        yield replace(finding, variants=tuple(names))


def data_key(recipe: ResolvedRecipe) -> str:
    """Key of tasks and tokenizer: files by content, and the tokenizer's name for a model made from scratch."""
    model: Any = recipe.model
    tokenizer = model.path_sha256 if model.type == "pretrained" else model.tokenizer
    blocks = recipe.canonical("tasks", "evaluation")
    return json.dumps([tokenizer, recipe.generation.thinks, blocks], sort_keys=True)


def _key(recipe: ResolvedRecipe, blocks: tuple[str, ...]) -> str:
    return json.dumps(recipe.canonical(*blocks), sort_keys=True) if blocks else ""
