"""A folder of checkpoints that was used again is read as the newest run, or refused."""

import json
import os
from pathlib import Path

import pytest

from ablations.errors import AblationsError
from ablations.logs.meaning import LogMeaning
from ablations.logs.sources import find_log

DAY = 86_400


def history(last: int, start: float, began: list[dict] | None = None) -> list[dict]:
    """Rows of every fifth step up to `last`; `began` is the beginning of an earlier attempt."""
    rows = list(began or [])
    first = rows[-1]["step"] if rows else 0
    return rows + [{"step": step, "eval_reward": start + step / 1000} for step in range(first + 5, last + 1, 5)]


def write(folder: Path, name: str, rows: list[dict], at: float) -> None:
    path = folder / name / "trainer_state.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"global_step": rows[-1]["step"] if rows else 0, "log_history": rows}))
    os.utime(path, (at, at))


def read(folder: Path) -> tuple[str, int, tuple[str, ...]]:
    """The chosen file, the number of its scores, and the notes."""
    source = find_log(folder)
    (log,) = source.read()
    path = source.files[0].relative_to(folder)
    return str(path.parent), int((log.columns["eval_reward"] > 0).sum()), log.notes


def test_the_checkpoint_of_an_older_run_is_left_out_however_long_it_is(tmp_path):
    write(tmp_path, "checkpoint-500", history(500, 0.1), 10 * DAY)
    write(tmp_path, "checkpoint-20", history(20, 0.2), 20 * DAY)
    write(tmp_path, "checkpoint-40", history(40, 0.2), 20 * DAY + 600)
    note = "checkpoint-500 is of an older run, or of a lost attempt, in this folder and is left out."
    assert read(tmp_path) == ("checkpoint-40", 8, (note,))


def test_what_a_resume_has_lost_is_left_out(tmp_path):
    began = history(20, 0.1)
    write(tmp_path, "checkpoint-20", began, 1 * DAY)
    write(tmp_path, "checkpoint-60", history(60, 0.1, began), 2 * DAY)
    write(tmp_path, "checkpoint-40", history(40, 0.3, began), 3 * DAY)
    assert read(tmp_path)[:2] == ("checkpoint-40", 8)
    assert "checkpoint-60 is" in read(tmp_path)[2][0]


@pytest.mark.parametrize("gap", [0, 30, -DAY])
def test_runs_whose_times_do_not_tell_which_is_newer_are_refused(tmp_path, gap):
    """Copied together, or the checkpoints of one before and after those of the other."""
    write(tmp_path, "checkpoint-500", history(500, 0.1), 10 * DAY)
    write(tmp_path, "checkpoint-20", history(20, 0.2), 10 * DAY + gap)
    write(tmp_path, "checkpoint-40", history(40, 0.2), 10 * DAY + 40)
    with pytest.raises(AblationsError, match="are from different runs, and their file times do not show"):
        find_log(tmp_path)


@pytest.mark.parametrize("gap", [0, 1, -DAY])
def test_checkpoints_of_one_run_need_no_times(tmp_path, gap):
    """As after a copy; the state saved after training has a row more, and a checkpoint that is cut short counts not."""
    rows = history(60, 0.1)
    for number in (20, 40, 60):
        write(tmp_path, f"checkpoint-{number}", rows[: number // 5], DAY + number * gap)
    assert read(tmp_path) == ("checkpoint-60", 12, ())
    (tmp_path / "checkpoint-20" / "trainer_state.json").write_text("{")
    write(tmp_path, ".", [*rows, {"step": 60, "train_runtime": 12.5}], DAY)
    assert read(tmp_path)[:2] == (".", 12)


def test_the_number_of_answers_gives_trl_s_scores_no_error():
    with pytest.raises(AblationsError, match="--samples: trl logs the mean of the means of its batches"):
        LogMeaning(trainer="trl", gpus=8, samples="128").check()
    LogMeaning(trainer="verl", gpus=8, samples="128").check()
