"""docs/formats.md has the fields of the train rows that other recipes write, all of them and no others."""

import pytest
from formats_page import documented_field, section, train_fields
from trainer.tiny import SETTINGS, tiny_recipe
from trainer.wall import wall_recipe

from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import read_rows
from scalerl.run.train import train

MOE = {"type": "moe", "hidden": 16, "layers": 1, "heads": 2, "mlp": 16, "experts": 4, "experts_per_token": 2}
RECIPES = {  # prompts without variance are kept, so that no step is skipped
    "critic": {"critic": {"type": "value_network"}, "zero_variance": "keep", "epochs": 2},
    "experts": {"model": MOE, "zero_variance": "keep"},
    "fp16": {"parameters": "fp16", "zero_variance": "keep"},
    "kl": {"kl": {"coefficient": 0.01}, "zero_variance": "keep"},
    "correction": {"correction": {"type": "mask"}, "zero_variance": "keep"},
    "episodes": {
        "tasks": [
            {
                "type": "episodes",
                "environment": "guess",
                "settings": {"numbers": 4, "says": "marks"},
                "turns": 3,
                "context_tokens": 48,
                "train": 32,
                "validation": 4,
            }
        ],
        "model": {"hidden": 16, "layers": 1, "heads": 2, "mlp": 16, "tokenizer": "characters"},
        "generation": {"thinking": "none", "answer": 3},
        "length_control": {"type": "none"},
        "zero_variance": "keep",
    },
    "mix": {"tasks": [SETTINGS["tasks"][0], {**SETTINGS["tasks"][0], "name": "other"}], "zero_variance": "keep"},
}
EPISODES, MEASURED = {"turns", "earned", "environment_tokens", "ends"}, {"environment_s"}
ONLY = {
    "critic": {"value_loss", "value_grad_norm", "value_clipped", "explained_variance"},
    "experts": {"balance"},
    "fp16": {"loss_scale"},
    "kl": {"kl"},
    "correction": {"corrected_below", "corrected_above"},
    "episodes": EPISODES,
    "mix": {"mismatch_task_name", "update"},
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_adds_the_documented_fields(tmp_path, name):
    folder = RunFolder(tmp_path)
    folder.create(tiny_recipe(**RECIPES[name]), seed=0)
    train(folder.path, budget_gpu_hours=0.5 if name == "mix" else 0.05, warm_starts=tmp_path / "warm_starts")
    always, _ = train_fields()
    rows = [row for row in read_rows(folder.metrics, kind="train") if not row["skipped"]]
    assert rows
    found = [{*map(documented_field, row)} - {"kind"} for row in rows]
    assert all(always <= fields for fields in found)
    assert set().union(*found) == always | ONLY[name]  # a batch of a mix may have one task alone
    table = section("`metrics.jsonl`").after("\n`eval`: ").table()
    some = {field for field, meaning in table.items() if meaning.startswith("only ")}
    rows = [row for row in read_rows(folder.metrics, kind="eval") if "share" not in row]
    expected = (ONLY[name] if name == "episodes" else set()) | (table.keys() - some)
    assert all(row.keys() - {"kind", "prompt_counts"} == expected - {"prompt_counts"} for row in rows)


def test_every_field_of_some_recipes_is_written_by_one_of_these():
    assert train_fields()[1] == MEASURED.union(*ONLY.values())


def test_on_the_wall_clock_the_time_of_environments_is_a_field_too(tmp_path):
    folder = RunFolder(tmp_path)
    folder.create(wall_recipe(**RECIPES["episodes"]), seed=0)
    train(folder.path, budget_gpu_hours=0.001, warm_starts=tmp_path / "warm_starts")
    rows = list(read_rows(folder.metrics, kind="train"))
    assert set().union(*rows) >= EPISODES | MEASURED
    # A game of this package answers at once, and no environment takes longer than the run.
    assert all(0 < row["environment_s"] < min(1.0, row["wall_s"]) for row in rows)
