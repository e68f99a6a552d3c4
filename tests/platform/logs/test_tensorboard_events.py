"""Event files are read as their writers mean them: in the order of time, without what a restart overwrites."""

from contextlib import closing

import pytest
from imported import study_of_logs
from torch.utils.tensorboard import SummaryWriter

from ablations.errors import AblationsError
from ablations.logs.meaning import LogMeaning

pytest.importorskip("tensorboard", reason="TensorBoard is an extra: pip install tensorboard", exc_type=ImportError)


def write(folder, steps, began, *, score, every=5, purge_step=None, tag="acc"):
    """An event file of steps, one second each from `began` on, with the time of each and a score at some."""
    with closing(SummaryWriter(folder, purge_step=purge_step, filename_suffix=f".{began}")) as writer:
        for number, step in enumerate(steps):
            writer.add_scalar("t", 36.0, step, walltime=began + number)
            if step % every == 0:
                writer.add_scalar(tag, score, step, walltime=began + number)


def curve_of(folder):
    (run,) = study_of_logs([folder], LogMeaning(score="acc", compute="cumsum(t) / 3600")).runs
    assert run.curve is not None
    return dict(zip(run.curve.step.tolist(), run.curve.score.tolist(), strict=True)), run


def test_what_a_writer_has_purged_is_in_no_curve_and_is_said(tmp_path):
    write(tmp_path, range(1, 28), 1_700_000_000, score=0.0)  # a collapse
    write(tmp_path, range(11, 41), 1_700_010_000, score=0.5, every=8, purge_step=11)
    found, run = curve_of(tmp_path)
    assert found == {5: 0.0, 10: 0.0, 16: 0.5, 24: 0.5, 32: 0.5, 40: 0.5}
    assert run.curve.compute[-1] == pytest.approx(0.4)
    assert run.warnings == (
        "attempt 1 reached step 27 and attempt 2 goes on at 11, so 17 rows after step 10 of attempts before it are "
        "left out",
    )


def test_a_purged_step_that_is_not_logged_again_is_missing_and_this_is_said(tmp_path):
    write(tmp_path, range(1, 28), 1_700_000_000, score=0.0)
    write(tmp_path, range(11, 41), 1_700_010_000, score=0.5, every=8, purge_step=9)
    assert "t is missing at 2 steps up to step 40, the first of them 9" in curve_of(tmp_path)[1].warnings[-1]


def test_a_mark_of_the_first_start_overwrites_nothing(tmp_path):
    write(tmp_path, range(1, 11), 1_700_000_000, score=0.25, purge_step=0)
    assert curve_of(tmp_path)[0] == {5: 0.25, 10: 0.25}


def test_files_count_in_the_order_of_their_times_and_not_of_their_names(tmp_path):
    write(tmp_path, range(11, 41), 1_700_010_000, score=0.5)
    write(tmp_path, range(1, 28), 1_700_000_000, score=0.0)  # copied here later
    assert curve_of(tmp_path)[0] == dict.fromkeys((5, 10), 0.0) | dict.fromkeys(range(15, 41, 5), 0.5)


def test_files_of_writers_that_run_side_by_side_are_no_attempts(tmp_path):
    write(tmp_path, range(1, 41), 1_700_000_000, score=0.5, tag="other")
    with closing(SummaryWriter(tmp_path, filename_suffix=".eval")) as writer:
        for step in range(5, 41, 5):
            writer.add_scalar("acc", step / 100, step, walltime=1_700_000_000 + step + 3)
    assert curve_of(tmp_path)[0] == pytest.approx({step: step / 100 for step in range(5, 41, 5)})
    write(tmp_path, range(1, 41), 1_700_000_000, score=0.25)  # training accuracy, which is equal at 25
    with pytest.raises(AblationsError, match="acc has two values at 7 of 8 steps"):
        curve_of(tmp_path)


def write_two_curves(folder, steps, *, purge_step=None):
    """What a loop logs that plots training and held-out scores together: seconds and rewards, then both scores."""
    with closing(SummaryWriter(folder, purge_step=purge_step)) as writer:
        for step in steps:
            writer.add_scalar("t", 36.0, step)
            writer.add_scalars("acc/all", {"train": 0.75, "val": step / 100}, step)
            writer.add_scalar("loss", 1 / step, step)


def test_curves_of_tensorboardx_are_columns_of_their_run(tmp_path):
    # tensorboardX 2.6.4, writer.py:521: the folder of a curve is its tag's, and its files have the name of the run's.
    for folder, tag, values in (
        ("", "t", dict.fromkeys(range(1, 11), 36.0)),
        ("acc/all/val", "acc/all", {step: step / 100 for step in range(1, 11)}),
        ("acc/all/train", "acc/all", dict.fromkeys(range(1, 11), 0.75)),
    ):
        with closing(SummaryWriter(tmp_path / folder)) as writer:
            for step, value in values.items():
                writer.add_scalar(tag, value, step, walltime=1_700_000_000 + step)
    (run,) = study_of_logs([tmp_path], LogMeaning(score="acc/all/val", compute="cumsum(t) / 3600")).runs
    assert run.curve is not None
    assert run.curve.score == pytest.approx([step / 100 for step in range(1, 11)])


def test_a_damaged_file_of_another_run_below_is_not_read(tmp_path):
    write(tmp_path, range(1, 41), 1_700_000_000, score=0.5)
    write(tmp_path / "debug", range(1, 41), 1_700_000_000, score=0.25)
    (other,) = (tmp_path / "debug").iterdir()
    content = bytearray(other.read_bytes())
    content[-3] ^= 1
    other.write_bytes(content)
    assert curve_of(tmp_path)[0] == dict.fromkeys(range(5, 41, 5), 0.5)
    with pytest.raises(AblationsError, match="checksum"):
        curve_of(tmp_path / "debug")


@pytest.mark.parametrize("at", ["", "started_at"])
def test_curves_of_add_scalars_are_columns_of_their_run(tmp_path, at):
    write_two_curves(tmp_path / at, range(1, 21))
    # Settings have a folder of their own, with a value, and are no curve.
    with closing(SummaryWriter(tmp_path / at)) as writer:
        writer.add_hparams({"lr": 1e-4}, {"acc/all": 0.99})
    (run,) = study_of_logs([tmp_path], LogMeaning(score="acc/all/val", compute="cumsum(t) / 3600")).runs
    assert run.curve is not None
    assert run.curve.step.tolist() == list(range(1, 21))
    assert run.curve.score == pytest.approx([step / 100 for step in range(1, 21)])
    assert run.curve.compute[-1] == pytest.approx(0.2)
    assert not run.warnings
    with pytest.raises(AblationsError, match=r"columns are: acc/all/val, acc/all/train, loss, step, t$"):
        study_of_logs([tmp_path], LogMeaning(score="acc/all", compute="cumsum(t) / 3600"))


def test_curves_of_add_scalars_lose_what_a_restart_overwrites(tmp_path):
    write_two_curves(tmp_path, range(1, 16))
    write_two_curves(tmp_path, range(11, 21), purge_step=11)
    (run,) = study_of_logs([tmp_path], LogMeaning(score="acc/all/val", compute="cumsum(t) / 3600")).runs
    assert run.curve is not None
    assert run.curve.step.tolist() == list(range(1, 21))
    assert run.curve.compute[-1] == pytest.approx(0.2)
    assert run.warnings == (
        "attempt 1 reached step 15 and attempt 2 goes on at 11, so 5 rows after step 10 of attempts before it are left "
        "out",
    )
