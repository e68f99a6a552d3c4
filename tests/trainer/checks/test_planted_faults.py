"""Files with planted faults: one pass of the checks names every one of them by file and line."""

import json

import pytest
from trainer.tiny import tiny_recipe
from trainer.tiny_text_model import text_model

from scalerl.checks.examine import examine_recipes
from scalerl.recipe import PretrainedModel

OPEN = r"\frac{1}{"
"""A brace that is never closed: no box holds it."""


def lines(path, rows):
    """Rows as JSON lines; a text is written as it is."""
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return str(path)


def sums(first, number):
    return [{"question": f"What is {n} plus {n + 2}?", "answer": str(2 * n + 2)} for n in range(first, first + number)]


def adding(n):
    return {
        "question": f"Write add{n}(a), which adds {n}.",
        "tests": [f"assert add{n}(1) == {n + 1}"],
        "solution": f"def add{n}(a):\n    return a + {n}",
    }


def named(recipe):
    """What is said of each row that is at fault, by file and line."""
    faults: dict[str, list[str]] = {}
    for one in examine_recipes({"planted": recipe}, quick=True, say=lambda _: None):
        for fault in one.checked.faults:
            faults.setdefault(fault.where, []).append(f"{fault.kind}: {fault.what}")
    return faults


@pytest.fixture
def planted(tmp_path):
    """A mix of three tasks and a downstream file, with a fault in every row that is not a sum."""
    train = [
        *({**row, "n": n} for n, row in enumerate(sums(0, 40))),
        {"n": 41, "question": "What is 0 plus 2?", "answer": "2"},
        {"n": 42, "question": "what is  1 PLUS 3 ?", "answer": "4"},
        {"n": 43, "question": "What is 500 plus 502?", "answer": "1002"},
        {"n": 44, "question": "What is 600 plus 602?", "answer": "1202"},
        {"n": 45, "question": "What is 700 plus 702?", "answer": "1402"},
        '{"n": 46, "question": "Not a number?", "answer": NaN}',
        {"n": 47, "question": "Nothing?", "answer": ""},
        {"n": 48, "question": "Never closed?", "answer": OPEN},
        {"n": 49, "question": "Long? " + "x" * 300, "answer": "1"},
        '{"n": 50, "question": "Cut off',
        {"n": 51, "question": "No answer?"},
        {"n": 52, "question": "A list?", "answer": [4]},
        {"n": 3, "question": "The same id as line 4?", "answer": "1"},
        {"n": 54, "question": "Long answer?", "answer": "9" * 60},
    ]
    code = [*map(adding, range(30)), {**adding(31), "tests": "print('no assertion')"}]
    code += [{**adding(32), "solution": "def add32(a):\n    return a"}]
    tasks = [
        {
            "type": "math",
            "path": lines(tmp_path / "train.jsonl", train),
            "validation_path": lines(tmp_path / "held.jsonl", sums(500, 30)),
            "id": "n",
            "max_prompt_tokens": 200,
        },
        {
            "type": "math",
            "name": "other",
            "path": lines(tmp_path / "other.jsonl", sums(800, 40)),
            "validation_path": lines(tmp_path / "other_held.jsonl", sums(700, 30)),
        },
        {
            "type": "code",
            "path": lines(tmp_path / "code.jsonl", code),
            "validation_path": lines(tmp_path / "code_held.jsonl", map(adding, range(100, 130))),
        },
        {
            "type": "qa",
            "path": lines(
                tmp_path / "qa.jsonl", [{"question": f"Who is {n}?", "answer": f"No. {n}"} for n in range(9)]
            ),
            "validation_path": lines(tmp_path / "qa_held.jsonl", [{"question": "Who is it?", "answer": "me"}]),
        },
    ]
    held = [{**row, "n": 500 + n} for n, row in enumerate(sums(500, 30))]
    lines(tmp_path / "held.jsonl", held)
    return tiny_recipe(
        model={"hidden": 16, "layers": 1, "heads": 2, "mlp": 16, "tokenizer": "characters"},
        tasks=tasks,
        warm_start={"steps": 5},
        generation={"thinking": 8, "answer": 60},
        evaluation={
            "downstream": [{"type": "math", "name": "aime", "path": lines(tmp_path / "aime.jsonl", sums(600, 30))}]
        },
    )


EXPECTED = {
    "train.jsonl:41": "duplicate",
    "train.jsonl:42": "duplicate",
    "train.jsonl:43": "held out: the same problem as held.jsonl:1",
    "train.jsonl:44": "downstream: the same problem as aime.jsonl:1",
    "train.jsonl:45": "held out: the same problem as other_held.jsonl:1",
    "train.jsonl:46": "nan",
    "train.jsonl:47": "answer",
    "train.jsonl:48": "its own answer",
    "train.jsonl:49": "max_prompt_tokens is 200",
    "train.jsonl:50": "not JSON",
    "train.jsonl:51": "no answer in column",
    "train.jsonl:52": "[4]",
    "train.jsonl:53": "id '3' already belongs to train.jsonl:4",
    "train.jsonl:54": "60 are allowed",
    "code.jsonl:31": "no assertion",
    "code.jsonl:32": "its own answer",
    "qa": "1 held-out prompt",
}


def test_every_planted_fault_is_named_and_no_sound_row(planted):
    faults = named(planted)
    assert set(faults) == set(EXPECTED)
    for where, said in EXPECTED.items():
        assert any(said.lower() in text.lower() for text in faults[where]), (where, faults[where])


def test_prompts_beyond_the_context_or_the_tokenizer_are_named(tmp_path):
    folder = text_model(tmp_path / "model")
    rows = sums(0, 40)
    rows[10] = {"question": "Long? " + "x" * 180, "answer": "1"}
    # Qwen's tokenizer composes a letter and its accent, so the policy reads another text than the file has.
    rows[20] = {"question": "Un cafe\u0301?", "answer": "1"}
    task = {"type": "math", "path": lines(tmp_path / "train.jsonl", rows), "template": "{question}"}
    recipe = tiny_recipe(
        model=PretrainedModel.model_validate({"path": str(folder)}),
        tasks=[{**task, "validation_path": lines(tmp_path / "held.jsonl", sums(100, 30))}],
        warm_start={"steps": 0},
        generation={"thinking": 32, "answer": 24},
    )
    faults = named(recipe)
    assert set(faults) == {"train.jsonl:11", "train.jsonl:21"}
    assert "do not fit the context of 256" in faults["train.jsonl:11"][0]
    assert "'Un caf\u00e9?' instead of 'Un cafe\u0301?'" in faults["train.jsonl:21"][0]
