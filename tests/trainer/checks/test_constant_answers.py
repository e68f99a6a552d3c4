"""What one text earns as the answer to every prompt, with shares that follow from how the answers were made."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from trainer.own_functions import TASK, custom_task
from trainer.tiny import tiny_recipe

from scalerl.checks import constant_answers
from scalerl.checks.constant_answers import check_constant_answers
from scalerl.checks.subject import Subject
from scalerl.recipe import Code, Math, MultipleChoice, Qa, ReasoningGym

CHARACTERS = {"hidden": 16, "layers": 1, "heads": 2, "mlp": 16, "tokenizer": "characters"}


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A busy machine changes no finding."""
    monkeypatch.setattr(constant_answers, "SECONDS", 600.0)


def findings(*tasks, **changes):
    """Findings by the task's name."""
    if len(tasks) > 1:
        tasks = [task.model_copy(update={"weight": 1.0}) for task in tasks]
    written = [task if isinstance(task, dict) else task.model_dump(mode="json", exclude_none=True) for task in tasks]
    recipe = tiny_recipe(model=CHARACTERS, tasks=written, warm_start={"steps": 0}, **changes)
    found = check_constant_answers(Subject(recipe), lambda _: None)
    return {one.check.removesuffix(" without reading"): one for one in found}


def in_file(folder, kind, rows, **settings):
    path = folder / f"{kind.__name__}.jsonl"
    path.write_text(
        "".join(json.dumps({"question": f"Problem number {i}?"} | row) + "\n" for i, row in enumerate(rows))
    )
    return kind(path=str(path), **settings)


def test_answers_that_all_differ_earn_one_prompt_each(tmp_path):
    finding = findings(in_file(tmp_path, Math, [{"answer": str(1000 + i)} for i in range(100)]))["math"]
    assert finding.level == "ok"
    assert finding.found.endswith("as the answer to each of 100 prompts has pass rate 0.01")


@pytest.mark.parametrize(("share", "level"), [(50, "ok"), (74, "ok"), (80, "warning"), (100, "warning")])
@pytest.mark.parametrize("kind", ["math", "qa", "choice"])
def test_the_most_frequent_answer_earns_its_share_and_a_warning_from_three_quarters(tmp_path, kind, share, level):
    alike = [i < share for i in range(100)]
    task = {
        "math": lambda: in_file(
            tmp_path, Math, [{"answer": "7" if one else str(100 + i)} for i, one in enumerate(alike)]
        ),
        "qa": lambda: in_file(
            tmp_path, Qa, [{"answers": ["Paris" if one else f"Bern {i}"]} for i, one in enumerate(alike)]
        ),
        "choice": lambda: in_file(
            tmp_path,
            MultipleChoice,
            [
                {"choices": ["red", "green", f"{i}", "blue"], "answer": "B" if one else "ACD"[i % 3]}
                for i, one in enumerate(alike)
            ],
        ),
    }[kind]()
    finding = findings(task)[kind]
    assert finding.level == level
    assert f"as the answer to each of 100 prompts has pass rate {share / 100:.3g}" in finding.found
    assert {"math": "\\\\boxed{7}", "qa": "'Paris'", "choice": "'B'"}[kind] in finding.found
    assert bool(finding.remedy) == (level == "warning")


def gym(dataset, **settings):
    return ReasoningGym(dataset=dataset, name=dataset, size=60, max_prompt_tokens=100_000, **settings)


def test_data_sets_that_pay_one_text_in_full_are_named_and_sound_ones_are_not():
    bad, good = ("coin_flip", "game_of_life_halting", "puzzle24"), ("chain_sum", "leg_counting")
    with ThreadPoolExecutor() as threads:  # each data set starts a process that imports the library
        found = findings(*threads.map(gym, (*bad, *good)))
    assert {name: one.level for name, one in found.items()} == dict.fromkeys(bad, "warning") | dict.fromkeys(good, "ok")
    for name in ("game_of_life_halting", "puzzle24"):  # any text is true; four numbers that make 24
        assert found[name].found.endswith("has pass rate 1")


def test_partial_scores_of_a_constant_are_said_beside_its_pass_rate():
    # Few cells of a board survive, so an empty one is nearly right everywhere.
    finding = findings(gym("game_of_life", partial_scores=True))["game_of_life"]
    assert finding.level == "warning"
    assert float(finding.found.rpartition("mean reward ")[2]) > 0.9
    assert float(finding.found.rpartition("pass rate ")[2].split()[0]) < 0.5
    assert findings(gym("game_of_life"))["game_of_life"].level == "ok"


@pytest.mark.parametrize(
    ("condition", "level", "said"),
    [
        ("True", "warning", "pass rate 1"),
        ("given.text.strip()", "warning", "pass rate 1"),
        ("not given.text.strip()", "warning", "'' as the answer"),
        ("'know' in given.text", "warning", "'I do not know' as the answer"),
        ("given.text.strip().isdecimal()", "warning", "pass rate 1"),
        ("given.text.strip() == given.problem.answer", "ok", "pass rate 0.0"),
        ("1 / 0", "ok", "pass rate 0"),
    ],
)
def test_a_judge_of_ones_own_that_a_constant_satisfies_is_named(tmp_path, condition, level, said):
    own = custom_task(tmp_path, TASK.replace("given.text.strip() == given.problem.answer", condition))
    subject = Subject(tiny_recipe(model=CHARACTERS, tasks=[own.model_dump(mode="json", exclude_none=True)]))
    if subject.tasks[0].task is None:
        return  # the trial of own functions has refused it already
    (finding,) = check_constant_answers(subject, lambda _: None)
    assert finding.level == level
    assert said in finding.found


def test_a_text_on_which_a_judge_of_ones_own_fails_is_left_out_and_said_once_beside_the_output(tmp_path, capsys):
    right = "given.text.strip() == given.problem.answer"
    own = custom_task(tmp_path, TASK.replace(right, f"{right} or 1 / (given.text.strip() != '0') > 1"))
    (finding,) = findings(own).values()
    assert (finding.level, "'0' as the answer" in finding.found) == ("ok", False)
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("ZeroDivisionError")) == ("", 1)


def test_generated_tasks_pay_no_text_in_full():
    for task in ({"type": "k_smallest", "train_prompts": 300}, {"type": "modular", "train_prompts": 300}):
        (finding,) = check_constant_answers(Subject(tiny_recipe(tasks=[task])), lambda _: None)
        assert finding.level == "ok"
        assert float(finding.found.rpartition("pass rate ")[2]) < 0.05


def test_few_prompts_and_programs_are_not_examined(tmp_path):
    assert findings(in_file(tmp_path, Math, [{"answer": "7"}] * 19, validation=0.3)) == {}
    tests = [{"call": "f", "args": [1], "expected": 2}]
    assert findings(in_file(tmp_path, Code, [{"tests": tests}] * 40)) == {}


def test_a_verifier_that_takes_long_is_left_in_time_and_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(constant_answers, "SECONDS", 0.2)
    work = f"import time; time.sleep(0.05)\n    with open({str(tmp_path / 'judged')!r}, 'a') as file: file.write('.')"
    slow = TASK.replace("    return Judgement(", f"    {work}\n    return Judgement(", 1)
    subject = Subject(tiny_recipe(model=CHARACTERS, tasks=[custom_task(tmp_path, slow).model_dump(exclude_none=True)]))
    assert subject.tasks
    (tmp_path / "judged").write_text("")  # also of making the task
    (finding,) = check_constant_answers(subject, lambda _: None)
    # One answer before the clock starts, those that fit into it, and the one that it ends with.
    assert len((tmp_path / "judged").read_text()) <= 1 + 0.2 / 0.05 + 1
    assert (finding.level, finding.found) == ("ok", "not examined: 20 answers take more than 0.1 s to judge")
