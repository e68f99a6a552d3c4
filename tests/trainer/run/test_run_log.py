"""The run log, read back whatever a crash left of it."""

import hashlib
import json
import math

import pytest

from scalerl.run.run_log import EMPTY_LOG, LogMark, MetricsLog, Progress, evaluation_row, read_rows

ROWS = [{"kind": "eval", "step": 0, "pass_rate": 0.25}, {"kind": "train", "step": 1}, {"kind": "eval", "step": 1}]


def write(path, rows, start=0):
    log = MetricsLog(path, start)
    for row in rows:
        log.write(row)
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


def test_a_mark_sees_every_change_of_the_rows_before_it_and_none_after(tmp_path):
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path, 0)
    for row in ROWS[:2]:
        log.write(row)
    mark = log.sync()
    log.write(ROWS[2])
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
                log.write(row)
            end = log.sync()
            log.close()
        marks.append(end)
    assert marks[0] == marks[1]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_json_has_no_word_for_is_refused_and_leaves_no_torn_line(tmp_path, value):
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path, 0)
    with pytest.raises(ValueError, match="Out of range float"):
        log.write({"kind": "train", "loss": value})
    log.write(ROWS[0])
    log.close()
    assert list(read_rows(path)) == ROWS[:1]


@pytest.mark.parametrize("kind", ["eval", "downstream"])
def test_a_measurement_is_written_in_the_order_of_the_run_log(tmp_path, kind):
    progress = Progress(step=3, compute_gpu_hours=0.5, flops=12, tokens=7)
    write(tmp_path / "metrics.jsonl", [evaluation_row(kind, progress, {"task": "k_smallest", "pass_rate": 0.25}, 1.5)])
    assert (tmp_path / "metrics.jsonl").read_text() == (
        f'{{"kind": "{kind}", "step": 3, "compute_gpu_hours": 0.5, "flops": 12, "tokens": 7, "weight_version": 3, '
        '"task": "k_smallest", "pass_rate": 0.25, "wall_s": 1.5}\n'
    )
