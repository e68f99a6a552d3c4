"""What of a run log MLflow gets: which rows, under which names, at which times."""

import json

import pytest
from fixtures_home import make_home, planned_run

from ablations.tracking.mlflow_metrics import MetricPoint, is_sent, row_batches, row_points, row_scalars


def sent_steps(num_steps: int) -> list[int]:
    return [step for step in range(1, num_steps + 1) if is_sent({"kind": "train", "step": step})]


def test_the_first_steps_are_all_sent_and_32_of_every_doubling_after_them():
    # 63 below 64; then 32 each from 64, 128, 256, 512 and 1024 on; of 2048 to 2400 every 64th: 2048, 2112, ..., 2368.
    steps = sent_steps(2400)
    assert len(steps) == 63 + 5 * 32 + 6
    assert steps[:63] == list(range(1, 64))
    assert steps[63:95] == list(range(64, 128, 2))
    assert steps[95:127] == list(range(128, 256, 4))
    assert steps[-6:] == [2048, 2112, 2176, 2240, 2304, 2368]


def test_no_series_is_longer_than_mlflow_draws_and_what_is_sent_does_not_depend_on_how_long_the_run_gets():
    assert len(sent_steps(10_000)) == 63 + 7 * 32 + 8 < 320
    assert sent_steps(3000)[: len(sent_steps(777))] == sent_steps(777)


def test_every_evaluation_is_sent():
    assert all(is_sent({"kind": kind, "step": step}) for kind in ("eval", "downstream") for step in (65, 131, 99_999))


def test_each_batch_ends_with_the_number_of_rows_that_the_server_then_has(tmp_path):
    folder = make_home(tmp_path).run(planned_run("scalerl", 0).id)
    problems: list[str] = []
    batches = list(row_batches(folder, 0, started_ms=1_000_000, max_points=150, problems=problems))
    rows = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    assert problems == []
    assert all(len(points) <= 150 for _, points in batches)
    assert [count for count, _ in batches] == [points[-1].value for _, points in batches]
    assert batches[-1][0] == len(rows) == 121
    assert {points[-1].name for _, points in batches} == {"system/rows"}
    entropy = [point for _, points in batches for point in points if point.name == "train/entropy"]
    train = [row for row in rows if row["kind"] == "train" and (row["step"] < 64 or row["step"] % 2 == 0)]
    assert entropy == [
        MetricPoint("train/entropy", row["entropy"], 1_000_000 + int(1000 * row["wall_s"]), row["step"])
        for row in train
    ]


def test_rows_that_are_not_sent_are_counted_all_the_same(tmp_path):
    folder = make_home(tmp_path).run(planned_run("scalerl", 0).id)
    row = {"kind": "train", "step": 65, "loss": 0.1, "wall_s": 6.5}
    folder.metrics.write_text(json.dumps(row) + "\n")
    batches = list(row_batches(folder, 0, started_ms=0, max_points=150, problems=[]))
    assert batches == [(1, [MetricPoint("system/rows", 1, 6500, 1)])]
    assert list(row_batches(folder, 1, started_ms=0, max_points=150, problems=[])) == []


def test_a_row_of_another_trainers_log_has_no_time_and_is_sent_with_that_of_the_start():
    row = {"kind": "eval", "step": 6, "task": "score", "pass_rate": 0.5}
    assert row_points(row, 1000) == [MetricPoint("eval/pass_rate", 0.5, 1000, 6)]


@pytest.mark.parametrize(
    ("row", "numbers"),
    [
        (
            {"kind": "train", "step": 3, "wall_s": 1.5, "loss": -0.5, "prompt_counts": "8:87", "grad_norm": None},
            {"loss": -0.5},
        ),
        (
            {"skipped": True, "staleness": {"0": 1, "4": 3}},
            {"skipped": 1.0, "staleness_mean": 3.0, "staleness_max": 4.0},
        ),
        (
            {"outcomes": {"right": 3, "timed_out": 1}, "pass_at": {"1": 0.5}},
            {"outcomes_right": 3.0, "outcomes_timed_out": 1.0, "pass_at_mean": 1.0, "pass_at_max": 1.0},
        ),
        (
            {"device_s": {"generator": {"decode": 3.0, "sync": 1.0}, "trainer": {}}},
            {"device_s_generator_decode": 3.0, "device_s_generator_sync": 1.0},
        ),
    ],
)
def test_a_row_gives_numbers_only_and_a_histogram_its_mean(row, numbers):
    assert row_scalars(row) == numbers
