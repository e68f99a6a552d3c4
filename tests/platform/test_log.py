"""Logging a script of one's own: what is written, what is refused, and what a restart does to the log."""

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from waiting import wait_until

import ablations
from ablations import log
from ablations.log import OwnRun, start
from ablations.readings.task_curves import curve_of
from scalerl.evaluation.prompt_counts import PromptCounts
from scalerl.run.run_log import read_rows


def started(folder: Path) -> OwnRun:
    return start(folder)


def steps_in(folder: Path) -> list[int]:
    return [row["step"] for row in read_rows(folder / "metrics.jsonl")]


def test_rows_are_evaluations_that_the_platform_reads(tmp_path):
    run = started(tmp_path)
    run.log(step=0, compute=0, right=1, of=4)
    run.log(step=np.int64(5), compute=torch.tensor(20.0), score=np.float32(0.5), right=torch.tensor(2), of=4)
    curve = curve_of(read_rows(tmp_path / "metrics.jsonl"), "own")
    assert curve is not None
    assert curve.compute.tolist() == [0, 20]
    assert curve.score.tolist() == [0.25, 0.5]
    assert curve.samples is not None
    assert curve.samples.tolist() == [4, 4]


def test_answers_by_prompt_are_read_back_prompt_by_prompt(tmp_path):
    run = started(tmp_path)
    right, of = [40, 0, 13, 35], [40, 36, 36, 40]
    run.log(step=1, compute=1, right=right, of=np.array(of))
    (row,) = read_rows(tmp_path / "metrics.jsonl")
    counts = PromptCounts.from_text(row["prompt_counts"])
    assert counts.right.tolist() == right
    assert counts.judged.tolist() == of
    assert (row["num_prompts"], row["num_samples"], row["pass_rate"]) == (4, 152, 88 / 152)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"step": 1, "compute": 1, "score": math.nan}, "score is nan, which is not a finite number; has the training"),
        ({"step": 1, "compute": 1, "score": 71.0}, r"score is 71; a pass rate lies in \[0, 1\]"),
        ({"step": 1, "compute": -1, "score": 0.5}, "compute is -1; must not be negative"),
        ({"step": 1.5, "compute": 1, "score": 0.5}, "step is 1.5; must be a whole number"),
        ({"step": 1, "compute": "many", "score": 0.5}, "compute is 'many'; must be a number"),
        ({"step": 1, "compute": 1}, "nothing to log; pass score, or right and of"),
        ({"step": 1, "compute": 1, "right": 3}, "pass both right and of, or neither"),
        ({"step": 1, "compute": 1, "right": 3, "of": 2}, "3 right answers of 2"),
        ({"step": 1, "compute": 1, "right": 0, "of": 0}, "of is 0; an evaluation needs at least one answer"),
        ({"step": 1, "compute": 1, "right": [1, 2], "of": 4}, "both whole numbers, or both lists"),
        ({"step": 1, "compute": 1, "right": [1, 2], "of": [4]}, "right has 2 entries and of has 1"),
        ({"step": 1, "compute": 1, "score": 0.5, "right": 1, "of": 4}, "score is 0.5, but right / of is 0.25"),
        ({"step": 0, "compute": 9, "score": 0.5}, "step 0 is already logged"),
        ({"step": 1, "compute": 0, "score": 0.5}, "compute 0 is not above the 0 of step 0"),
    ],
)
def test_numbers_that_make_no_evaluation_are_refused_in_words_and_not_logged(tmp_path, row, words):
    run = started(tmp_path)
    run.log(step=0, compute=0, score=0.5)
    with pytest.raises(ValueError, match=words):
        run.log(**row)
    run.log(step=2, compute=2, score=0.5)
    assert steps_in(tmp_path) == [0, 2]


def first_part(folder: Path, text: str) -> None:
    """Rows 0 to 3 as a process writes them that then dies; `text` is what it writes last."""
    code = (
        f"from ablations.log import start\nrun = start({str(folder)!r})\n"
        "for step in range(4): run.log(step=step, compute=step, score=0.5)\n"
        f"import os; os.write(run._file.fileno(), {text.encode()!r}); os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)


def test_a_restart_removes_a_row_that_a_crash_has_cut_short_and_replaces_later_rows(tmp_path):
    first_part(tmp_path, '{"kind": "eval", "st')
    run = started(tmp_path)
    assert steps_in(tmp_path) == [0, 1, 2, 3]
    run.log(step=2, compute=2.5, score=0.25)
    with pytest.raises(ValueError, match="step 2 is already logged; log each step once, in order"):
        run.log(step=1, compute=3, score=0.5)
    rows = list(read_rows(tmp_path / "metrics.jsonl"))
    assert [(row["step"], row["compute_gpu_hours"], row["pass_rate"]) for row in rows] == [
        *((0, 0, 0.5), (1, 1, 0.5)),
        (2, 2.5, 0.25),
    ]
    del run
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    (tmp_path / "metrics.jsonl").write_text("\n".join([lines[0], "garbage", *lines[1:], ""]))
    with pytest.raises(ValueError, match=r"metrics.jsonl:2: not a row of this log"):
        started(tmp_path)


def test_a_second_process_may_not_log_the_same_run(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "OTHER_PROCESS_LIMIT_S", 0.0)
    first = started(tmp_path)
    with pytest.raises(ValueError, match="another process logs this run; end that process, or call start"):
        started(tmp_path)
    first.log(step=0, compute=0, score=0.5)
    assert steps_in(tmp_path) == [0]


LOGS = """
import sys, time
from ablations import log
run = log.start()
for step in range(3):
    run.log(step=step, compute=step, score=0.1 * int(sys.argv[1]))
    time.sleep(0.1)
"""


def of_attempt(folder: Path, attempt: str, number: int) -> "subprocess.Popen[str]":
    """A short process of a program in one attempt; it logs scores of a tenth of its number."""
    given = {"LOG": folder / "metrics.jsonl", "FOLDER": folder / "work", "SEED": 0, "BUDGET": 9, "SETTINGS": "{}"}
    variables = {f"ABLATIONS_{name}": str(value) for name, value in (given | {"ATTEMPT": attempt}).items()}
    return subprocess.Popen(
        [sys.executable, "-c", LOGS, str(number)], env=os.environ | variables, stderr=subprocess.PIPE, text=True
    )


def scores_in(folder: Path) -> list[float]:
    return [row["pass_rate"] for row in read_rows(folder / "metrics.jsonl")]


def test_of_two_short_processes_of_one_program_the_second_is_refused(tmp_path):
    both = [of_attempt(tmp_path, "one", number) for number in (1, 2)]
    said = [process.communicate()[1] for process in both]
    (refused,) = (text for text in said if text)
    assert "of this program logs the run already; call start() in one process only, such as rank 0" in refused
    assert sorted(process.returncode for process in both) == [0, 1]
    assert len(set(scores_in(tmp_path))) == 1


def test_a_program_that_begins_its_training_again_may_log_again(tmp_path):
    """Within an attempt, as a launcher does with workers that have died, and in the next attempt."""
    for attempt, number in (("one", 1), ("one", 2), ("two", 3)):
        assert of_attempt(tmp_path, attempt, number).communicate()[1] == ""
    assert scores_in(tmp_path) == pytest.approx([0.3] * 3)


def test_an_attempt_waits_for_the_process_of_the_one_before(tmp_path):
    first = of_attempt(tmp_path, "one", 1)
    wait_until(lambda: bool(scores_in(tmp_path)), "a row")
    assert of_attempt(tmp_path, "two", 2).communicate()[1] == ""
    assert first.communicate()[1] == ""
    assert scores_in(tmp_path) == pytest.approx([0.2] * 3)


def test_in_a_sweep_everything_is_what_the_platform_has_set(tmp_path, monkeypatch):
    work = tmp_path / "work"
    for name, value in {"LOG": tmp_path / "metrics.jsonl", "FOLDER": work, "SEED": 3, "BUDGET": 0.5}.items():
        monkeypatch.setenv(f"ABLATIONS_{name}", str(value))
    monkeypatch.setenv("ABLATIONS_SETTINGS", '{"rate": 0.1}')
    run = ablations.start("elsewhere", seed=9, budget=9.0)
    run.log(step=0, compute=0, score=0.5)
    assert (run.folder, run.seed, run.budget, run.settings) == (work, 3, 0.5, {"rate": 0.1})
    assert steps_in(tmp_path) == [0]


def test_a_script_by_itself_gets_a_folder_named_after_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["code/my_script.py"])
    run = ablations.start(seed=4, settings={"rate": 0.1})
    assert run.folder.parent == Path("own-runs/my_script")
    assert json.loads((run.folder / "run.json").read_text()) == {"seed": 4, "budget": None, "settings": {"rate": 0.1}}


def test_a_copy_of_the_module_alone_works_without_any_package(tmp_path):
    shutil.copy(log.__file__, tmp_path / "log.py")
    code = "import sys, log; log.start('run').log(step=0, compute=0, score=0.5); print(*sys.modules)"
    command = [sys.executable, "-S", "-c", code]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, env={"PYTHONPATH": ""})
    loaded = {name.partition(".")[0] for name in result.stdout.split()}
    assert loaded - sys.stdlib_module_names - {"__main__"} == {"log"}
    assert steps_in(tmp_path / "run") == [0]
