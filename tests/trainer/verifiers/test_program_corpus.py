"""Programs and their tests as models and data sets write them, judged as a person would (`tests/data/answers`)."""

import json
from concurrent.futures import ThreadPoolExecutor

from places import DATA

from scalerl.recipe import Code
from scalerl.tasks import make_task
from scalerl.tokens import CharacterTokenizer

TOKENIZER = CharacterTokenizer(thinks=False)
QUESTIONS = ("question", "problem", "question_content", "problem_description", "description", "text", "prompt")
CASES = [json.loads(line) for line in (DATA / "answers" / "programs.jsonl").read_text(encoding="utf-8").splitlines()]


def task_of(folder, row, form):
    """The task of one problem, held out between two others."""
    column = next(name for name in QUESTIONS if name in row)
    others = [row | {column: f"# {name}\n{row[column]}"} for name in ("first", "last")]
    folder.mkdir()
    (folder / "train.jsonl").write_text(json.dumps(others[0]) + "\n")
    (folder / "held.jsonl").write_text("".join(json.dumps(one) + "\n" for one in (row, others[1])))
    settings = {"path": str(folder / "train.jsonl"), "validation_path": str(folder / "held.jsonl"), "form": form}
    return make_task(Code(**settings), TOKENIZER)


def test_every_program_is_judged_as_a_person_would(tmp_path):
    tasks = {}

    def is_off(case):
        prompt = tasks[key_of(case)].validation[0]
        verdict = tasks[key_of(case)].judge(prompt, [*TOKENIZER.encode(case["answer"]), TOKENIZER.eos_ids[0]]).outcome
        return None if (verdict == "right") == (case["expected"] == "right") else (case["kind"], case["name"], verdict)

    def key_of(case):
        return json.dumps([case["row"], case["form"]])

    for case in CASES:
        if key_of(case) not in tasks:
            tasks[key_of(case)] = task_of(tmp_path / str(len(tasks)), case["row"], case["form"])
    with ThreadPoolExecutor(max_workers=4) as threads:
        assert [off for off in threads.map(is_off, CASES) if off is not None] == []


def test_right_and_wrong_are_in_balance():
    num_right = sum(case["expected"] == "right" for case in CASES)
    assert len(CASES) > 250
    assert abs(2 * num_right - len(CASES)) < 0.1 * len(CASES)
