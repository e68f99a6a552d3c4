"""What the checks say of tasks whose faults are known, with lengths and errors worked out by hand."""

import json
import math

import pytest
from trainer.tiny import tiny_recipe

from scalerl.checks.examine import examine_recipes
from scalerl.checks.memory import GIB, against_machine, check_memory
from scalerl.checks.noise import standard_errors
from scalerl.checks.step import part_of_step
from scalerl.checks.subject import Subject
from scalerl.memory.forecast import MemoryForecast, ProcessMemory
from scalerl.recipe import ResolvedRecipe
from scalerl.tasks import make_task
from scalerl.tokens import make_tokenizer

CHARACTERS = {"hidden": 16, "layers": 1, "heads": 2, "mlp": 16, "tokenizer": "characters"}


def found_in(recipe, *, quick=True):
    """Findings by part and name."""
    found = examine_recipes({"a": recipe}, quick=quick, say=lambda _: None)
    return {(one.part, one.check): one for one in found}


def math_recipe(tmp_path, rows, **changes):
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {"type": "math", "path": str(tmp_path / "sums.jsonl"), "validation": 0.5, "template": "{question}"}
    usual = {"generation": {"thinking": 8, "answer": 20}, "warm_start": {"steps": 0}}
    return tiny_recipe(model=CHARACTERS, tasks=[settings], **usual | changes)


OPEN = r"\frac{1}{"
"""A brace that is never closed: no box holds it, so the verifier finds no answer."""
SUMS = [{"question": f"{a} + {a + 1}", "answer": str(2 * a + 1)} for a in range(100)]


def test_a_sound_recipe_is_ok_in_all_parts():
    task = {"type": "k_smallest", "symbols": 14, "train_prompts": 600, "validation_prompts": 30}
    found = found_in(tiny_recipe(tasks=[task]), quick=False)
    assert {one.level for one in found.values()} == {"ok"}
    assert {part for part, _ in found} == {"tokenizer", "data", "answers", "lengths", "evaluation", "memory", "step"}
    assert ("memory", "agent") not in found
    assert found["data", "k_smallest"].found == "600 prompts to train on, 30 held out"
    assert found["answers", "k_smallest"].found.startswith("630 of 630 written answers are judged right")


def test_refused_demonstrations_are_named_and_a_warm_start_without_any_is_refused(tmp_path):
    rows = [row | {"solution": "as one sees"} for row in SUMS]
    for line in (3, 4, 5, 6, 7, 8):
        rows[line - 1] |= {"question": f"how many? {line}", "answer": OPEN}
    recipe = math_recipe(tmp_path, rows, warm_start={"steps": 5, "batch": 4})
    task = make_task(recipe.tasks[0], make_tokenizer(recipe.model))
    taught = [task.written(prompt).where for prompt in task.train if prompt.answer == OPEN]
    finding = found_in(recipe)["answers", "math demonstrations"]
    num_train = len(task.train)
    assert finding.found == f"{num_train - len(taught)} of {num_train} demonstrations are judged right"
    assert [fault.where for fault in finding.faults] == sorted(taught)
    for row in rows:
        del row["solution"]
    finding = found_in(math_recipe(tmp_path, rows, warm_start={"steps": 5, "batch": 4}))["answers", "demonstrations"]
    assert finding.level == "error"
    assert "the warm start has nothing to learn from" in finding.found


def test_an_evaluation_of_few_prompts_is_a_warning_and_of_one_refused(tmp_path):
    levels = {}
    for number in (1, 29, 30):
        held = tmp_path / "held.jsonl"
        held.write_text("".join(json.dumps(row) + "\n" for row in SUMS[:number]))
        recipe = math_recipe(tmp_path, SUMS)
        task = {**recipe.tasks[0].model_dump(exclude_none=True), "validation_path": str(held)}
        del task["validation"], task["path_sha256"]
        found = found_in(tiny_recipe(model=CHARACTERS, tasks=[task]))
        levels[number] = found["evaluation" if number > 1 else "data", "math"].level
    assert levels == {1: "error", 29: "warning", 30: "ok"}


def test_standard_errors_are_those_of_a_binomial():
    same, others = standard_errors(100, 4)
    assert same == pytest.approx(0.5 / math.sqrt(400))
    assert others == pytest.approx(0.05)


def test_a_step_that_would_take_hours_is_tried_with_fewer_and_shorter_rollouts():
    recipe = tiny_recipe(batch={"prompts": 4, "generations": 4})
    # 6 FLOPs x parameters x tokens; 1e12 of them are allowed.
    assert part_of_step(recipe, 1_000, 10, 10).groups == 4
    assert part_of_step(recipe, 10**9, 10, 10).groups == 2  # 166 tokens: two groups of 4 x 20
    long = part_of_step(recipe, 10**9, 10, 10_000)
    assert (long.groups, long.rollouts, long.answer) == (1, 2, 73)  # 166 / 2 - 10
    assert part_of_step(recipe, 10**12, 10, 10_000).answer == 8


def test_memory_beyond_the_machine_is_refused_and_beyond_what_is_free_a_warning():
    forecast = MemoryForecast(processes=(ProcessMemory(name="trainer", count=2, parts={"weights": 3 * GIB}),))
    levels = [
        against_machine(forecast, limit, free).level
        for limit, free in ((8 * GIB, 7 * GIB), (8 * GIB, 5 * GIB), (5 * GIB, 4 * GIB))
    ]
    assert levels == ["ok", "warning", "error"]
    assert against_machine(forecast, 5 * GIB, 4 * GIB).found.startswith(
        "6.0 GiB at the peak of a run; this machine has 5.0 GiB, of which 4.0 GiB is free"
    )


def test_of_a_run_on_the_wall_clock_it_is_said_what_further_nodes_hold():
    recipe = ResolvedRecipe.model_validate(tiny_recipe().model_dump() | {"cluster": {"type": "wall"}})
    found = {one.check: one.found for one in check_memory(Subject(recipe))}
    assert found["agent"] == (
        "on each additional node, if a run has several: 260 MiB: interpreter and libraries 260 MiB, "
        "weights under way 0 MiB"
    )


def test_recipes_that_a_check_cannot_tell_apart_are_examined_once(tmp_path):
    recipe = math_recipe(tmp_path, SUMS)
    other = recipe.model_copy(update={"aggregation": "token"})
    longer = recipe.model_copy(update={"generation": recipe.generation.model_copy(update={"thinking": 99})})
    said: list[str] = []
    recipes = {"one": recipe, "other": other, "longer": longer}
    found = list(examine_recipes(recipes, quick=True, say=said.append))
    assert [text for text in said if text] == [
        "judging 100 written answers of math",
        "judging 100 right answers of math in other forms",
        "answering 100 prompts of math without reading them",
    ]
    assert [one.variants for one in found if one.part == "data"] == [("one", "other", "longer")]
    lengths = [one.variants for one in found if one.part == "lengths" and one.check == "math"]
    assert lengths == [("one", "other"), ("longer",)]


def test_an_interruption_that_the_tokenizer_cannot_end_is_refused_as_a_run_refuses_it(tmp_path):
    # Symbols have no word for the phrase, as a run finds when it makes its generator.
    control = {"type": "interruption", "phrase": "Time is up! </think>"}
    finding = found_in(tiny_recipe(length_control=control))["lengths", "rollouts"]
    assert finding.level == "error"


def test_a_cache_below_one_rollout_is_refused(tmp_path):
    generator = {"type": "vllm", "cache_tokens": 32, "block_size": 32}
    finding = found_in(math_recipe(tmp_path, SUMS, generator=generator))["lengths", "rollouts"]
    assert finding.level == "error"
    assert finding.found.startswith("generator.cache_tokens 32 cannot hold one rollout of ")
