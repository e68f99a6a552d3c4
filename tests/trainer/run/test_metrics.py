"""The run log, read back whatever a crash left of it."""

import hashlib
import json
import math
from dataclasses import dataclass

import pytest

from scalerl.run.metrics import (
    EMPTY_LOG,
    EvaluationRow,
    LogMark,
    MetricsLog,
    Progress,
    RolloutColumns,
    TrainRow,
    read_rows,
)

ROWS = [{"kind": "eval", "step": 0, "pass_rate": 0.25}, {"kind": "train", "step": 1}, {"kind": "eval", "step": 1}]


@dataclass(frozen=True)
class Written:
    """A row of any columns."""

    columns: dict

    def to_json(self):
        return self.columns


def write(path, rows, start=0):
    log = MetricsLog(path, start)
    for row in rows:
        log.write(Written(row))
    mark = log.sync()
    log.close()
    return mark.bytes


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def test_rows_come_back_in_order(tmp_path):
    path = tmp_path / "metrics.jsonl"
    assert write(path, ROWS) == path.stat().st_size
    assert list(read_rows(path)) == ROWS
    assert list(read_rows(path, kind="eval")) == [ROWS[0], ROWS[2]]


def test_a_row_can_be_read_as_soon_as_it_is_written(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl", 0)
    log.write(Written(ROWS[0]))
    assert list(read_rows(tmp_path / "metrics.jsonl")) == ROWS[:1]
    log.close()


def test_a_missing_file_has_no_rows(tmp_path):
    assert list(read_rows(tmp_path / "metrics.jsonl")) == []


def test_a_torn_last_line_is_not_a_row_wherever_it_was_torn(tmp_path):
    path = tmp_path / "metrics.jsonl"
    write(path, ROWS)
    whole = path.read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    for end in range(start, len(whole)):
        path.write_bytes(whole[:end])
        assert list(read_rows(path)) == ROWS[:2]


@pytest.mark.parametrize("line", [b'{"kind": "tr', b"[1, 2]", b"", b"\xff\xfe", b"\0\0\0\0"])
def test_a_corrupt_middle_line_is_named(tmp_path, line):
    path = tmp_path / "metrics.jsonl"
    lines = [json.dumps(row).encode() for row in ROWS]
    path.write_bytes(b"\n".join([lines[0], line, lines[2]]) + b"\n")
    with pytest.raises(ValueError, match=r"metrics\.jsonl:2: not a metrics row"):
        list(read_rows(path))


def test_opening_cuts_off_what_came_after_the_checkpoint(tmp_path):
    path = tmp_path / "metrics.jsonl"
    length = write(path, ROWS[:1])
    write(path, [{"kind": "train", "step": 99, "note": "longer than what replaces it"}] * 3, start=length)
    write(path, ROWS[1:], start=length)
    assert list(read_rows(path)) == ROWS


def test_opening_at_zero_starts_again(tmp_path):
    path = tmp_path / "metrics.jsonl"
    write(path, ROWS)
    write(path, ROWS[:1], start=0)
    assert list(read_rows(path)) == ROWS[:1]


def test_a_mark_sees_every_change_of_the_rows_before_it_and_none_after(tmp_path):
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path, 0)
    for row in ROWS[:2]:
        log.write(Written(row))
    mark = log.sync()
    log.write(Written(ROWS[2]))
    log.close()
    whole = path.read_bytes()
    assert mark == LogMark(bytes=len(b"".join(whole.splitlines(True)[:2])), sha256=sha256(whole[: mark.bytes]))
    path.write_bytes(whole[: mark.bytes] + b"torn")
    assert mark.fault(path) is None
    for content, fault in (
        (whole[:10], f"{path} has 10 bytes, but had {mark.bytes} when the checkpoint was written"),
        (whole[:9] + bytes([whole[9] ^ 1]) + whole[10:], f"{path} has changed since it was written"),
        (None, f"{path} is missing"),
    ):
        path.unlink() if content is None else path.write_bytes(content)
        assert fault in str(mark.fault(path))
    assert EMPTY_LOG.fault(path) is None


def test_an_appended_log_has_the_mark_of_one_written_in_one_go(tmp_path):
    marks = []
    for lengths in ([3], [1, 2]):
        path, end = tmp_path / f"{len(lengths)}.jsonl", EMPTY_LOG
        for start, count in zip([0, *lengths], lengths, strict=False):
            log = MetricsLog(path, end.bytes)
            for row in ROWS[start : start + count]:
                log.write(Written(row))
            end = log.sync()
            log.close()
        marks.append(end)
    assert marks[0] == marks[1]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_json_has_no_word_for_is_refused_and_leaves_no_torn_line(tmp_path, value):
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path, 0)
    with pytest.raises(ValueError, match="Out of range float"):
        log.write(Written({"kind": "train", "loss": value}))
    log.write(Written(ROWS[0]))
    log.close()
    assert list(read_rows(path)) == ROWS[:1]


# --- the rows -------------------------------------------------------------------------------------------------------

PROGRESS = Progress(step=3, compute_gpu_hours=0.5, flops=12, tokens=7)
MEASURED = {"task": "k_smallest", "pass_rate": 0.25}


@pytest.mark.parametrize("kind", ["eval", "downstream"])
def test_a_measurement_is_written_in_the_order_of_the_run_log(tmp_path, kind):
    log = MetricsLog(tmp_path / "metrics.jsonl", 0)
    log.write(EvaluationRow(kind=kind, progress=PROGRESS, weight_version=3, measured=MEASURED, wall_s=1.5))
    log.close()
    assert (tmp_path / "metrics.jsonl").read_text() == (
        f'{{"kind": "{kind}", "step": 3, "compute_gpu_hours": 0.5, "flops": 12, "tokens": 7, "weight_version": 3, '
        '"task": "k_smallest", "pass_rate": 0.25, "wall_s": 1.5}\n'
    )


def test_a_step_is_written_in_the_order_of_the_run_log(tmp_path):
    rollouts = RolloutColumns(
        reward_mean=0.1, pass_rate=0.5, zero_variance=0.0, truncated=0.25, interrupted=0.0, mean_tokens=6.0,
        staleness={"0": 5, "1": 2},
    )  # fmt: skip
    log = MetricsLog(tmp_path / "metrics.jsonl", 0)
    log.write(
        TrainRow(
            progress=PROGRESS,
            learner={"loss": -0.5, "skipped": False},
            rollouts=rollouts,
            outcomes={"right": 2},
            retired=1,
            epoch=4,
            generator_idle=0.25,
            trainer_idle=0.75,
            device_s={"generator": {"decode": 3.0}, "trainer": {"sync": 1.0}},
            tokens_per_s=7.0,
            mfu={"generator": 0.125},
            off_clock_s={"start": 0.5, "evaluate": 0.25, "checkpoint": 0.0},
            wall_s=1.5,
        )
    )
    log.close()
    assert (tmp_path / "metrics.jsonl").read_text() == (
        '{"kind": "train", "step": 3, "compute_gpu_hours": 0.5, "flops": 12, "tokens": 7, "loss": -0.5, '
        '"skipped": false, "reward_mean": 0.1, "pass_rate": 0.5, "zero_variance": 0.0, "truncated": 0.25, '
        '"interrupted": 0.0, "mean_tokens": 6.0, "staleness": {"0": 5, "1": 2}, "outcomes": {"right": 2}, '
        '"retired": 1, "epoch": 4, "generator_idle": 0.25, "trainer_idle": 0.75, '
        '"device_s": {"generator": {"decode": 3.0}, "trainer": {"sync": 1.0}}, "tokens_per_s": 7.0, '
        '"mfu": {"generator": 0.125}, "off_clock_s": {"start": 0.5, "evaluate": 0.25, "checkpoint": 0.0}, '
        '"wall_s": 1.5}\n'
    )
