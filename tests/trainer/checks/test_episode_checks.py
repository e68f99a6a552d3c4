"""What the checks and the start of a run say of episodes: room in the context, memory, the model's own context."""

import json

import pytest
from trainer.runs import new_run
from trainer.tiny import tiny_recipe
from trainer.tiny_text_model import text_model
from trainer.tokens.test_next_turn import QWEN3

from scalerl.checks.data import check_data
from scalerl.checks.lengths import check_lengths
from scalerl.checks.memory import prompt_lengths
from scalerl.checks.subject import Subject
from scalerl.generator.make import make_generator
from scalerl.model.build import new_policy
from scalerl.recipe.models import context_of
from scalerl.run.train import train
from scalerl.tasks.task import TaskError

GAME = {"type": "episodes", "environment": "guess", "turns": 3, "train": 4, "validation": 4}
CHARACTERS = {"tokenizer": "characters"}
PLAIN = {"generation": {"thinking": "none", "answer": 4}, "length_control": {"type": "none"}}


def recipe_of(model=CHARACTERS, **settings):
    return tiny_recipe(tasks=[{**GAME, **settings}], model=model, **PLAIN)


def finding(recipe):
    (found,) = check_lengths(Subject(recipe))
    return found


def test_a_context_without_room_for_one_turn_is_refused_by_check_and_by_a_run(tmp_path):
    # "1-32" is four tokens, and a turn may have four.
    found = finding(recipe_of(context_tokens=7))
    assert found.level == "error"
    assert found.found == (
        "context_tokens 7 has no room for one turn: the first text of seed 0 has 4 tokens, and a turn 4"
    )
    assert found.remedy == "set the task's context_tokens to 8 for one turn, or higher"
    assert finding(recipe_of(context_tokens=7, tokens_per_turn=3)).level == "ok"
    found = finding(recipe_of(context_tokens=8))
    assert (found.level, found.found) == ("ok", "a first text has at most 4 tokens, a turn 4, an episode 8")
    folder = new_run(tmp_path / "run", recipe_of(context_tokens=7))
    with pytest.raises(TaskError, match=r"task 'guess': context_tokens 7 has no room for one turn: .*; set the task's"):
        train(folder.path, budget_gpu_hours=0.1, warm_starts=tmp_path)
    assert not any(tmp_path.glob("*/model.safetensors"))


def test_a_context_beyond_the_models_own_is_refused(tmp_path):
    folder = text_model(tmp_path / "qwen")
    model = {"type": "pretrained", "path": str(folder)}
    recipes = [
        tiny_recipe(**PLAIN, tasks=[{**GAME, "context_tokens": tokens}], warm_start={"steps": 0}).model_dump(
            mode="json"
        )
        for tokens in (256, 257)
    ]
    fits, exceeds = (type(tiny_recipe()).model_validate({**one, "model": model}) for one in recipes)
    assert context_of(fits.model) == json.loads((folder / "config.json").read_text())["max_position_embeddings"] == 256
    assert finding(fits).level == "ok"
    found = finding(exceeds)
    assert found.found == "context_tokens 257 exceeds the model's context of 256"
    assert found.remedy == "set the task's context_tokens to 256, or lower"


def test_memory_is_that_of_the_longest_episode():
    recipe = recipe_of(context_tokens=300)
    lengths = prompt_lengths(Subject(recipe))
    assert (lengths.trained, lengths.measured) == (296, 296)
    generator = make_generator(recipe, new_policy(recipe), slots=2, max_prompt=lengths.trained)
    assert generator._tokens.shape == (2, 300)
    assert recipe_of(context_tokens=300, tokens_per_turn=2).most_before_turn == 298
    assert tiny_recipe().most_before_turn == 0


def test_a_template_that_drops_thoughts_is_refused_by_check_and_by_a_run_unless_the_history_is_kept(tmp_path):
    model = {"type": "pretrained", "path": str(text_model(tmp_path / "qwen", template=QWEN3))}
    settings = {"length_control": {"type": "none"}, "warm_start": {"steps": 0}}

    def recipe_with(history):
        stored = tiny_recipe(tasks=[{**GAME, "history": history, "context_tokens": 256}], **settings)
        return type(stored).model_validate({**stored.model_dump(mode="json"), "model": model})

    (found,) = check_data(Subject(recipe_with("template")))
    assert found.level == "error"
    (fault,) = found.faults
    assert "writes earlier turns in another way once later ones follow" in fault.what
    assert fault.what.endswith("set history: keep to keep each turn as it was sampled")
    folder = new_run(tmp_path / "run", recipe_with("template"))
    with pytest.raises(TaskError, match=r"task 'guess': .* in another way .*; set history: keep"):
        train(folder.path, budget_gpu_hours=0.1, warm_starts=tmp_path)
    assert not any(found.level == "error" for found in check_data(Subject(recipe_with("keep"))))
