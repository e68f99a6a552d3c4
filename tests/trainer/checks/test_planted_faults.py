"""Files with planted faults: one pass of the checks names every one of them by file and line."""

import json
from typing import TYPE_CHECKING, cast

import pytest
from trainer.tiny import tiny_recipe
from trainer.tiny_text_model import text_model

from scalerl.checks.examine import examine_recipes
from scalerl.checks.other_forms import check_other_forms, other_forms
from scalerl.checks.subject import MadeTask, Subject
from scalerl.recipe import PretrainedModel
from scalerl.rollout import Judgement
from scalerl.tasks import make_task
from scalerl.tasks.task import Written
from scalerl.tokens import CharacterTokenizer

if TYPE_CHECKING:
    from scalerl.tasks import Task

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
        for fault in one.faults:
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
    "train.jsonl:48": "the written answer",
    "train.jsonl:49": "max_prompt_tokens is 200",
    "train.jsonl:50": "not JSON",
    "train.jsonl:51": "no answer in column",
    "train.jsonl:52": "[4]",
    "train.jsonl:53": "id '3' already belongs to train.jsonl:4",
    "train.jsonl:54": "60 are allowed",
    "code.jsonl:31": "no assertion",
    "code.jsonl:32": "the written answer",
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


def of_part(recipe, name):
    """What is found under a name, if anything."""
    found = examine_recipes({"a": recipe}, quick=True, say=lambda _: None)
    return next((one for one in found if one.check == name), None)


CHARACTERS = {"hidden": 16, "layers": 1, "heads": 2, "mlp": 16, "tokenizer": "characters"}


def recipe_of(tmp_path, kind, rows, **settings):
    held = lines(tmp_path / "held.jsonl", rows[-30:])
    task = {"type": kind, "path": lines(tmp_path / "train.jsonl", rows[:-30]), "validation_path": held, **settings}
    return tiny_recipe(
        model=CHARACTERS, tasks=[task], warm_start={"steps": 0}, generation={"thinking": 8, "answer": 60}
    )


class Deaf:
    """A task whose verifier takes an answer only as it is written in the row."""

    def __init__(self, task):
        self.task, self.train, self.validation, self.num_judges = task, task.train, task.validation, 1

    def written(self, prompt):
        return self.task.written(prompt)

    def judge(self, prompt, response):
        written = self.task.written(prompt).answer
        text = self.task.tokenizer.reader.answer(response).text
        return Judgement("right" if text == written else "wrong")


@pytest.mark.parametrize(
    ("gold", "forms"),
    [
        ("27", ["\\boxed{27}", "The answer is 27.", "So we have it.\n\nAnswer: 27"]),
        ("The answer is: 27", ["\\boxed{27}", "The answer is 27.", "So we have it.\n\nAnswer: 27"]),
        ("<answer>84</answer>", ["\\boxed{84}", "The answer is 84.", "So we have it.\n\nAnswer: 84"]),
        (
            "-12,345",
            ["\\boxed{-12345}", "The answer is -12345.", "So we have it.\n\nAnswer: -12345", "\\boxed{-12,345}"],
        ),
        ("3 tenths", ["The answer is 3 tenths."]),
        (r"\frac{1}{2}", [r"The answer is $\frac{1}{2}$."]),
    ],
)
def test_a_right_answer_is_written_in_forms_of_its_own(tmp_path, gold, forms):
    recipe = recipe_of(tmp_path, "math", sums(0, 60))
    written = Written(where="a.jsonl:1", text="", answer=f"\\boxed{{{gold}}}")
    assert list(other_forms(recipe.tasks[0], gold, written)) == forms


def test_right_answers_of_every_kind_are_right_in_other_forms(tmp_path):
    choices = [{"question": f"{n}?", "choices": [f"a{n}", "b", "c"], "answer": "ABC"[n % 3]} for n in range(60)]
    words = [{"question": f"Who is {n}?", "answers": [f"Person {n}", f"Number {n}"]} for n in range(60)]
    cases = (("math", sums(0, 60)), ("choice", choices), ("qa", words), ("code", list(map(adding, range(60)))))
    for kind, rows in cases:
        folder = tmp_path / kind
        folder.mkdir()
        finding = of_part(recipe_of(folder, kind, rows), f"{kind} in other forms")
        assert finding is not None
        assert finding.level == "ok", finding.faults


def test_a_gold_answer_that_is_compared_with_more_than_itself_is_named(tmp_path):
    """The judge takes the whole phrase alone, as a wrong reading of the column would."""
    rows = [*sums(0, 57), *({"question": f"{n}?", "answer": f"The answer is: {n}"} for n in range(3))]
    recipe = recipe_of(tmp_path, "math", rows)
    task = make_task(recipe.tasks[0], CharacterTokenizer())
    subject = Subject(recipe)
    subject.tokenizer = CharacterTokenizer()
    subject.tasks = (MadeTask(settings=recipe.tasks[0], is_downstream=False, task=cast("Task", Deaf(task))),)
    (finding,) = check_other_forms(subject, lambda _: None)
    assert finding.level == "error"
    assert {"train.jsonl:1", "held.jsonl:28"} <= {fault.where for fault in finding.faults}
    assert "rejects" in finding.faults[0].what


def test_a_gold_answer_that_is_met_without_its_unit_is_listed(tmp_path):
    rows = sums(0, 60)
    rows[3] |= {"answer": "8 apples"}
    rows[5] |= {"answer": "3 tenths"}
    finding = of_part(recipe_of(tmp_path, "math", rows), "math read in part")
    assert finding is not None
    assert [(fault.where, fault.what) for fault in finding.faults] == [
        ("train.jsonl:4", "'8 apples' is read without the unit 'apples'")
    ]


def test_an_order_that_the_prompts_lack_is_refused_before_a_run_is(tmp_path):
    curriculum = {"type": "ordered", "by": "difficulty"}
    recipe = recipe_of(tmp_path, "math", sums(0, 60))
    ordered = tiny_recipe(
        model=CHARACTERS, tasks=[recipe.tasks[0].model_dump(exclude_none=True)], curriculum=curriculum,
        warm_start={"steps": 0}, generation={"thinking": 8, "answer": 60},
    )  # fmt: skip
    finding = of_part(ordered, "math order")
    assert finding is not None
    assert finding.level == "error"
    assert "all training prompts have the same difficulty" in finding.found
    assert of_part(recipe, "math order") is None


def test_a_column_that_no_prompt_shows_is_a_warning(tmp_path):
    rows = [{**row, "context": "Sums are sums."} for row in sums(0, 60)]
    finding = of_part(recipe_of(tmp_path, "math", rows), "math columns")
    assert finding is not None
    assert finding.found == "no prompt shows the column context (60 rows)"
    assert "{context}" in finding.remedy
    assert of_part(recipe_of(tmp_path, "math", rows, template="{context} {question}"), "math columns") is None


def test_no_warm_start_of_a_model_made_from_scratch_is_a_warning_and_no_refusal(tmp_path):
    finding = of_part(recipe_of(tmp_path, "math", sums(0, 60)), "demonstrations")
    assert finding is not None
    assert finding.level == "warning"


def test_a_chat_template_that_asks_no_model_is_refused_and_a_foreign_end_a_warning(tmp_path):
    no_turn = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    template = text_model(tmp_path / "silent", template=no_turn)
    base = text_model(tmp_path / "base")
    (base / "generation_config.json").unlink()
    settings = json.loads((base / "tokenizer_config.json").read_text())
    (base / "tokenizer_config.json").write_text(json.dumps(settings | {"eos_token": "<|endoftext|>"}))
    rows = recipe_of(tmp_path, "math", sums(0, 60)).tasks[0].model_dump(exclude_none=True)
    for folder, name, level, said in (
        (template, "model", "error", "opens no turn of the model"),
        (base, "chat template", "warning", "ends an answer with '<|im_end|>'"),
    ):
        model = PretrainedModel.model_validate({"path": str(folder)})
        finding = of_part(tiny_recipe(model=model, tasks=[rows], warm_start={"steps": 0}), name)
        assert finding is not None
        assert finding.level == level
        assert said in finding.found
