"""Every kind of log is read as its own writer wrote it."""

import json
import math
import os
import sqlite3
import subprocess
import sys
import warnings
from contextlib import closing
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ablations.errors import AblationsError, FileError
from ablations.logs.log import Log
from ablations.logs.rows import log_of_rows
from ablations.logs.several_runs import joined
from ablations.logs.sources import find_log
from ablations.logs.tensorboard_events import split_records
from ablations.logs.wandb_offline import split_blocks

SCORES = {0: 0.2, 2: 0.35, 4: 0.5}
"""Held-out score by step, as the writers below log it."""


def only_log(path: Path) -> Log:
    (log,) = find_log(path).read()
    return log


def logged(log: Log, column: str) -> dict[float, float]:
    """The values of a column by the file's own step."""
    step = next(log.columns[name] for name in log.steps if name in log.columns)
    values = log.columns[column]
    return {float(at): float(value) for at, value in zip(step, values, strict=True) if not math.isnan(value)}


def in_another_process(code: str, **environment: str) -> None:
    """Run a writer by itself: its threads, settings and warnings stay its own."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_json_lines_as_verls_logger_of_files_writes_them(tmp_path):
    path = tmp_path / "dapo-s1.jsonl"
    with path.open("w") as file:
        for step in range(5):
            row = {"perf/time_per_step": 60.0 + step, "critic": {"loss": 0.1}}
            row |= {"val-core/openai/gsm8k/acc/mean@4": SCORES[step]} if step in SCORES else {}
            file.write(json.dumps({"step": step, "data": row}) + "\n")
    log = only_log(path)
    assert log.name == "dapo-s1"
    assert logged(log, "val-core/openai/gsm8k/acc/mean@4") == SCORES
    assert logged(log, "critic/loss") == dict.fromkeys(range(5), 0.1)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_as_pandas_writes_them(tmp_path, kind):
    frame = pd.DataFrame({"step": range(5), "acc": [SCORES.get(step) for step in range(5)], "note": ["a"] * 5})
    path = tmp_path / f"dapo-s1.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    log = only_log(path)
    assert logged(log, "acc") == SCORES
    assert log.config == {"note": "a"}
    assert log.columns.keys() == {"step", "acc", "note"}


def event_writer(folder, **more):
    pytest.importorskip("tensorboard", reason="TensorBoard is an extra: pip install tensorboard", exc_type=ImportError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TensorBoard's, of NumPy and protobuf
        from torch.utils.tensorboard import SummaryWriter
    return SummaryWriter(folder, **more)


def test_event_files_as_tensorboards_writer_writes_them(tmp_path):
    writer = event_writer(tmp_path / "dapo-s1")
    for step in range(5):
        writer.add_scalar("perf/step_time", 2.0 * step, step, new_style=False)
        if step in SCORES:
            writer.add_scalar("eval/aime", SCORES[step], step, new_style=True)
    writer.add_text("note", "no scalar", 3)
    writer.add_histogram("weights", np.arange(5.0), 3)
    writer.close()
    log = only_log(tmp_path / "dapo-s1")
    assert log.name == "dapo-s1"
    assert logged(log, "eval/aime") == pytest.approx(SCORES)  # written in single precision
    assert logged(log, "perf/step_time") == {step: 2.0 * step for step in range(5)}
    assert log.columns.keys() == {"step", "eval/aime", "perf/step_time"}


def test_an_event_that_is_half_written_is_left_out_and_said_and_damage_is_refused(tmp_path):
    writer = event_writer(tmp_path / "run")
    for step in range(3):
        writer.add_scalar("acc", 0.5, step)
    writer.close()
    (path,) = (tmp_path / "run").iterdir()
    whole = path.read_bytes()
    assert only_log(tmp_path / "run").notes == ()
    for cut in (1, 20):
        path.write_bytes(whole[:-cut])
        log = only_log(tmp_path / "run")
        assert list(logged(log, "acc")) == [0.0, 1.0]
        assert log.notes == ("The last row is incomplete and was skipped.",)
    # Damage is refused.
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    first = next(split_records(BytesIO(whole), checksum=masked_crc32c))
    path.write_bytes(whole.replace(first, b"\xff" * len(first)))
    with pytest.raises(FileError, match="record 1 is damaged"):
        only_log(tmp_path / "run")
    path.write_bytes(whole.replace(np.float32(0.5).tobytes(), np.float32(0.75).tobytes(), 1))
    with pytest.raises(FileError, match=r"record \d is damaged \(its checksum does not match\)"):
        only_log(tmp_path / "run")
    # A length that is too large must not pass for the half-written end of the file.
    second = 8 + 4 + len(first) + 4
    path.write_bytes(whole[: second + 6] + b"\x7f" + whole[second + 7 :])
    with pytest.raises(FileError, match="record 2 is damaged"):
        only_log(tmp_path / "run")


WANDB = """
import wandb
quiet = wandb.Settings(silent=True, console="off", x_disable_stats=True)
run = wandb.init(mode="offline", project="p", name="dapo", group="losses", dir=DIR, settings=quiet,
                 config={"algorithm": {"loss": "dapo"}, "seed": 1})
for step in range(5):
    run.log({"perf/time": 2.0 * step, "nested": {"x": step}, "text": "x" * 20000}, step=step)
    if step in SCORES:
        run.log({"val/acc": SCORES[step]}, step=step)
run.log({"val/acc": float("nan")}, step=6)
run.finish()
"""


@pytest.fixture(scope="module")
def wandb_run(tmp_path_factory):
    """The folder of an offline run that W&B's own client wrote, with records longer than a block."""
    pytest.importorskip("wandb", reason="W&B is an extra: pip install wandb", exc_type=ImportError)
    folder = tmp_path_factory.mktemp("wandb")
    in_another_process(WANDB.replace("DIR", repr(str(folder))).replace("SCORES", repr(SCORES)))
    (run,) = folder.glob("wandb/offline-run-*")
    return run


def test_an_offline_run_as_wandbs_client_writes_it(wandb_run):
    log = only_log(wandb_run)
    assert log.name == "dapo"
    assert log.config == {"algorithm/loss": "dapo", "seed": "1", "group": "losses"}
    assert logged(log, "val/acc") == SCORES
    assert logged(log, "perf/time") == {step: 2.0 * step for step in range(5)}
    assert logged(log, "nested/x") == {step: step for step in range(5)}
    assert log.nan_rows("val/acc").size == 1
    assert log.notes == ()


def test_an_offline_run_that_is_half_written_ends_with_its_last_whole_record(wandb_run, tmp_path):
    (path,) = wandb_run.glob("*.wandb")
    content = path.read_bytes()
    for size in (len(content) // 2, len(content) // 2 + 1000):
        (tmp_path / "run-x.wandb").write_bytes(content[:size])
        log = only_log(tmp_path / "run-x.wandb")
        assert log.notes == ("The last row is incomplete and was skipped.",)
        assert logged(log, "perf/time").items() < {step: 2.0 * step for step in range(5)}.items()
    assert len([*split_blocks(BytesIO(content))]) > 5  # HalfWritten if the last one were not whole
    (tmp_path / "run-x.wandb").write_bytes(content[:12] + bytes([content[12] ^ 64]) + content[13:])
    with pytest.raises(FileError, match="record 1 is damaged"):
        only_log(tmp_path / "run-x.wandb")


TRACKIO = """
import trackio
for name, seed in (("dapo", 1), ("grpo", 2)):
    trackio.init(project="p", name=name, config={"loss": name, "seed": seed})
    for step in range(5):
        trackio.log({"perf/time": 2.0 * step} | ({"eval/reward": SCORES[step]} if step in SCORES else {}), step=step)
    trackio.finish()
"""


def test_a_project_as_trackio_writes_it_has_all_its_runs(tmp_path):
    pytest.importorskip("trackio", reason="Trackio is an extra: pip install trackio", exc_type=ImportError)
    in_another_process(TRACKIO.replace("SCORES", repr(SCORES)), TRACKIO_DIR=str(tmp_path), HF_HUB_OFFLINE="1")
    dapo, grpo = find_log(tmp_path / "p.db").read()
    assert (dapo.name, grpo.name) == ("dapo", "grpo")
    assert (dapo.config["loss"], grpo.config["seed"]) == ("dapo", "2")
    assert logged(dapo, "eval/reward") == SCORES
    assert logged(grpo, "perf/time") == {step: 2.0 * step for step in range(5)}


def test_rows_that_sqlite_keeps_beside_the_database_are_read(tmp_path):
    with closing(sqlite3.connect(path := tmp_path / "p.db")) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY, run_name TEXT, step INTEGER, metrics TEXT)")
        database.execute("INSERT INTO metrics VALUES (1, 'dapo', 7, '{\"acc\": 0.5}')")
        database.commit()
        source = find_log(path)
        assert source.files == (path, tmp_path / "p.db-wal")
        (log,) = source.read()
        assert logged(log, "acc") == {7: 0.5}


def test_a_state_as_a_trainer_of_hugging_face_writes_it(tmp_path):
    from transformers import TrainerState

    for last in (2, 4):
        rows = [{"step": step, "step_time": 3.0} for step in range(1, last + 1)]
        rows += [{"step": step, "eval_reward": score} for step, score in SCORES.items() if step <= last]
        (folder := tmp_path / "dapo-s1" / f"checkpoint-{last}").mkdir(parents=True)
        TrainerState(log_history=rows, global_step=last).save_to_json(str(folder / "trainer_state.json"))
    for path in (tmp_path / "dapo-s1", tmp_path / "dapo-s1" / "checkpoint-4" / "trainer_state.json"):
        source = find_log(path)
        assert source.name == "dapo-s1"
        assert logged(source.read()[0], "eval_reward") == SCORES
    # The state after training has more than the last checkpoint, unless training went on since.
    scores = SCORES | {6: 0.5}
    for last in (6, 2):
        rows = [{"step": step, "step_time": 3.0} for step in range(1, last + 1)]
        rows += [{"step": step, "eval_reward": score} for step, score in scores.items() if step <= last]
        rows.append({"step": last, "train_runtime": 12.5})
        TrainerState(log_history=rows, global_step=last).save_to_json(str(tmp_path / "dapo-s1" / "trainer_state.json"))
        assert max(logged(only_log(tmp_path / "dapo-s1"), "eval_reward")) == max(last, 4)


@pytest.mark.parametrize(
    ("name", "whole", "cut", "said"),
    [
        ("a.jsonl", ['{"step": 1, "acc": 0.1}', '{"step": 2, "acc": 0.2}'], '{"step": 3, "ac', r"a\.jsonl:2: not JSON"),
        ("a.csv", ["step,acc,x", "1,.1,7", "2,.2,8"], "3,.", r"a\.csv:3: 2 fields below a header of 3"),
    ],
)
def test_a_last_row_that_is_half_written_is_left_out_and_said(tmp_path, name, whole, cut, said):
    path = tmp_path / name
    path.write_text("\n".join([*whole, cut]))
    log = only_log(path)
    assert logged(log, "acc") == {1: 0.1, 2: 0.2}
    assert log.notes == ("The last row is incomplete and was skipped.",)
    path.write_text("\n".join([*whole[:-1], cut, whole[-1], ""]))
    with pytest.raises(FileError, match=said):
        only_log(path)


def test_nan_and_infinity_are_what_programs_write_for_them_and_absence_is_neither(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"step": 1, "acc": NaN, "x": "Infinity"}\n{"step": 2, "acc": 0.2}\n{"step": 3, "acc": null}\n')
    log = only_log(path)
    assert log.nan_rows("acc").size == 1
    assert logged(log, "acc") == {2: 0.2}
    assert logged(log, "x") == {1: math.inf}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", "", "a.jsonl: no rows; let the trainer log at least one step first"),
        ("a.jsonl", "[1, 2]\n", "a.jsonl:1: found '[1, 2]'; write one JSON object per line"),
        ("a.jsonl", "[" * 100_000, "a.jsonl:1: not JSON"),
        ("a.json", "[" * 100_000, "not JSON"),
        ("a.json", '{"a": 1}\n{"a": 2\n{"a": 3}\n', "a.json:2: not JSON"),
        ("a.json", '{"a": 1}', "a.json: no list of rows; write a list of objects, or one under 'log_history'"),
        ("a.csv", "", "a.csv: no rows below the header"),
        ("a.csv", "x,x\n1,2\n", "2 columns are called 'x'; keep one and rename the others"),
        ("a.parquet", "step", "not Parquet"),
        ("a.db", "", "not a Trackio database"),
        ("a.db", "not a database at all", "cannot be read (file is not a database)"),
        ("a.log", "step 1", "a.log: no line has a step and values, such as 'step:5 - val/acc:0.31'"),
        ("a.md", "step 1", "no readable log; files are .jsonl, .ndjson, .json, .csv, .parquet, .wandb, .tsv, .log"),
    ],
)
def test_what_is_no_log_is_refused_with_what_would_be_one(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    with pytest.raises(AblationsError) as raised:
        only_log(tmp_path / name)
    assert said in str(raised.value)


def test_a_trial_as_ray_tune_2_60_writes_it_has_the_columns_that_come_after_its_first_result(tmp_path):
    (folder := tmp_path / "train_31d63_00000_0_seed=3").mkdir()
    writer = f"""
from ray.tune.logger import CSVLoggerCallback, JsonLoggerCallback
class Trial:
    config, evaluated_params, checkpoint, local_path = {{"seed": 3}}, {{}}, None, {str(folder)!r}
    init_local_path = lambda self: None
trial, loggers = Trial(), (CSVLoggerCallback(), JsonLoggerCallback())
for attempt in ([0, 1, 2, 3], [2, 3, 4]):  # the second goes on from a checkpoint of step 1
    for one in loggers:
        one.log_trial_start(trial)
    for step in attempt:
        result = {{"training_iteration": step, "time_this_iter_s": 2.0, "config": {{"seed": 3}}}}
        if step in {SCORES} and step:  # no evaluation before training
            result["eval"] = {{"acc": {SCORES}[step]}}
        for one in loggers:
            one.log_trial_result(step, trial, result)
    for one in loggers:
        one.log_trial_end(trial)
"""
    in_another_process(writer)
    assert "acc" not in (folder / "progress.csv").read_text()
    log = only_log(folder)
    assert log.name == folder.name
    assert logged(log, "eval/acc") == {step: score for step, score in SCORES.items() if step}
    assert log.columns["training_iteration"].tolist() == [0, 1, 2, 3, 2, 3, 4]
    assert only_log(folder / "result.json").columns.keys() == log.columns.keys() >= {"config/seed", "time_this_iter_s"}


def test_a_trial_that_population_based_training_of_ray_2_60_moves_to_other_settings_is_refused(tmp_path):
    """A trial as tune.Tuner with PopulationBasedTraining wrote it: from line 4 on it has another trial's weights."""
    rates = [0.001, 0.001, 0.001, 0.05, 0.05]
    rows = [
        {
            "training_iteration": step,
            "trial_id": "1b6cb_00000",
            "acc": acc,
            "config": {"optim": {"lr": lr}, "data": "/a/1"},
        }
        for step, acc, lr in zip([1, 2, 3, 3, 4], [0.001, 0.002, 0.003, 0.65, 0.7], rates, strict=True)
    ]
    (path := tmp_path / "result.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "params.json").write_text('{"optim": {"lr": 0.4}}')  # the last draw, with which nothing was trained
    with pytest.raises(FileError, match=r"config/optim/lr is 0\.001 in line 1 and 0\.05 in line 4, .*\(PBT\)"):
        find_log(tmp_path).read()
    for row in rows[3:]:  # a lost attempt whose folder of data was another one, and then a second trial
        row["config"] = {"optim": {"lr": 0.001}, "data": "/b/2"}
    others = [{**row, "trial_id": "1b6cb_00001", "config": {"optim": {"lr": 0.05}}} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert only_log(path).columns["config/optim/lr"].tolist() == [0.001] * 5
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *others]))
    assert only_log(path).columns["config/optim/lr"].tolist() == [0.001] * 5 + [0.05] * 5


def test_a_trial_of_ray_tune_is_read_from_its_first_result_on(tmp_path):
    (path := tmp_path / "result.json").write_text("")
    with pytest.raises(AblationsError, match="no rows; let the trainer log at least one step first"):
        find_log(path).read()
    path.write_text('{"training_iteration": 1, "acc": 0.25}\n')
    assert logged(only_log(path), "acc") == {1: 0.25}
    path.write_text('{"training_iteration": 1, "acc": 0.25}\n{"training_iteration": 2, "acc": 0.5}\n')
    assert logged(only_log(path), "acc") == {1: 0.25, 2: 0.5}
    path.write_text('{"lr": 0.1}\n')
    with pytest.raises(AblationsError, match="no list of rows"):
        find_log(path).read()


@pytest.mark.parametrize("junk", ["x", "1", "a.b", "'"])
def test_a_long_answer_printed_beside_a_step_takes_no_quadratic_time(tmp_path, junk):
    (path := tmp_path / "dapo-s1.log").write_text(f"step:5 - acc:0.25 - {junk * 400_000}\n")
    assert logged(only_log(path), "acc") == {5: 0.25}  # an hour if each start of a name looked on to the end


@pytest.mark.parametrize(
    ("printed", "column"),
    [
        ("\x1b[36m(TaskRunner pid=7)\x1b[0m step:{} - val/acc/mean@8:np.float64({}) - lr:1e-06", "val/acc/mean@8"),
        ("Step {} | rewards:nan successes:{} lr:1e-06 ", "successes"),
        ("(Actor pid=7) [2026-11-20 10:00:00] metrics.py:247 - eval {}: {{'eval/aime': {}, 'n': 4}}", "eval/aime"),
        ("INFO 11-20 10:00 trainer.py:9] Global step {}: {{'reward': {}, 'timing/step_total': 61.2}}", "reward"),
        ("Evaluation completed in 0:01:00, global_step {}, eval_metrics: {{'eval_math_pass1': {}}}", "eval_math_pass1"),
    ],
)
def test_lines_that_trainers_print_are_read_among_others(tmp_path, printed, column):
    other = "Training Progress:  3%| | 6/200 [12:01<1:00:00, 36.0s/it]\n(raylet) step:x - 5 objects, step 3 failed\n"
    (path := tmp_path / "dapo-s1.log").write_text(
        "".join(f"{printed.format(step, score)}\n{other}" for step, score in SCORES.items())
    )
    log = only_log(path)
    assert logged(log, column) == SCORES
    assert log.name == "dapo-s1"


def test_a_number_with_signs_between_thousands_is_not_read_and_one_that_may_be_cut_is_left_out(tmp_path):
    (path := tmp_path / "dapo-s1.log").write_text(
        "step:1 - acc:0.25 - n:1,234 - k:9,\nstep:2 - acc:0.5 - k:61\nstep:3 - k:6"
    )
    log = only_log(path)
    assert (logged(log, "acc"), logged(log, "k"), "n" in log.columns) == ({1: 0.25, 2: 0.5}, {1: 9, 2: 61}, False)
    assert log.notes == ("The last row is incomplete and was skipped.",)


@pytest.mark.parametrize(
    "printed",
    [
        "Step {} | train loss:0.5 acc:0.9 | val loss:0.6 acc:{}",
        "Step {} | val acc:{} | train acc:0.9",
        "Global step {}: {{'aime': {{'acc': {}}}, 'math': {{'acc': 0.9}}}}",
    ],
)
def test_a_name_that_stands_for_two_values_of_a_printed_line_is_none_of_them(tmp_path, printed):
    (path := tmp_path / "dapo-s1.log").write_text("".join(printed.format(*one) + "\n" for one in SCORES.items()))
    with pytest.raises(
        AblationsError, match=r"column 'acc' has two values in line 1, .* and .*; log each under its own name"
    ):
        logged(only_log(path), "acc")
    path.write_text("".join(f"Step {step + 1},000 | acc:{score} val acc:{score}\n" for step, score in SCORES.items()))
    assert logged(only_log(path), "acc") == {1000 * step + 1000: score for step, score in SCORES.items()}


ROW_TWICE = '"step": 1, "gpuh": 1, "acc": 0.25, "acc": 0.5'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", f"{{{ROW_TWICE}}}\n"),
        ("a.json", f"[{{{ROW_TWICE}}}]"),
        ("a.json", f'{{"log_history": [{{{ROW_TWICE}}}]}}'),
        ("a.jsonl", f'{{"step": 1, "data": {{{ROW_TWICE}}}}}\n'),
        ("a.jsonl", '{"step": 1, "acc": 0.25, "gpuh": 1, "acc": 0.5, "acc": 0.25}\n'),
        ("a.out", "step:1 - acc:0.25 - gpuh:1 - acc:0.5\n"),
        ("a.out", "eval 1: {'acc': 0.25, 'acc': 0.5}\n"),
    ],
)
def test_a_name_that_a_row_has_twice_with_two_values_is_refused_if_it_is_used(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    log = only_log(tmp_path / name)
    with pytest.raises(AblationsError, match=r"column 'acc' has two values in (line|row) 1, 0.25 and 0.5.*; log each"):
        log.columns["acc"]
    assert log.columns["step"].tolist() == [1]
    (tmp_path / name).write_text(content.replace("0.5", "0.25"))  # an equal value says the same
    assert only_log(tmp_path / name).columns["acc"].tolist() == [0.25]


def test_nested_and_flat_columns_of_one_name_are_refused_if_they_differ_and_used(tmp_path):
    def refuses(path):
        with pytest.raises(
            AblationsError, match=r"column 'eval/acc' has two values in (row|line) 1, 0.25 and 0.5; log"
        ):
            only_log(path).columns["eval/acc"]

    row = {"step": 1, "eval": {"acc": 0.25, "loss": 1.0}, "eval/acc": 0.5}
    (path := tmp_path / "a.jsonl").write_text(json.dumps(row))
    refuses(path)
    (path := tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": [row]}))
    refuses(path)
    pd.DataFrame([row]).to_parquet(path := tmp_path / "a.parquet")
    refuses(path)
    (path := tmp_path / "b.jsonl").write_text(json.dumps(row | {"eval/acc": None}))
    assert only_log(path).columns["eval/acc"].tolist() == [0.25]
    (path := tmp_path / "c.jsonl").write_text('{"step": 1, "eval": {"acc": 0.25}, "eval": {"loss": 1.0}}')
    log = only_log(path)
    assert (log.columns["eval/acc"].tolist(), log.columns["eval/loss"].tolist()) == ([0.25], [1.0])


def test_columns_of_a_parquet_file_with_one_name_are_refused(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    table = arrow.Table.from_arrays(
        [arrow.array([1]), arrow.array([0.25]), arrow.array([0.5])], names=["step", "acc", "acc"]
    )
    pytest.importorskip("pyarrow.parquet").write_table(table, path := tmp_path / "a.parquet")
    with pytest.raises(FileError, match="2 columns are called 'acc'; keep one and rename the others"):
        only_log(path)


@pytest.mark.parametrize("general", ["train", "metrics", "training_log"])
@pytest.mark.parametrize("other", ["eval", "val", "test_metrics"])
def test_a_file_with_the_scores_of_evaluation_is_not_passed_over_for_one_with_a_general_name(tmp_path, general, other):
    for name in (general, other, "checkpoints"):
        (tmp_path / f"{name}.csv").write_text("step,acc\n1,.9\n")
    with pytest.raises(AblationsError, match=f"3 logs: .*{other}.csv.*name one file"):
        find_log(tmp_path)
    (tmp_path / f"{other}.csv").unlink()
    assert find_log(tmp_path).files == (tmp_path / f"{general}.csv",)


def test_event_files_below_a_runs_folder_are_its_log_also_in_parts_and_those_of_several_runs_are_refused(tmp_path):
    def write(folder: str, scores: dict[int, float]) -> None:
        with closing(event_writer(tmp_path / folder)) as writer:
            for step, score in scores.items():
                writer.add_scalar("acc", score, step)

    write("dapo-s1/exp_001/tensorboard", {0: 0.25, 2: 0.5, 4: 0.75})
    write("dapo-s1/exp_001/tensorboard/1764000000.1", {0: 0.0})  # where TensorBoard keeps settings
    log = only_log(tmp_path / "dapo-s1")
    assert (log.name, logged(log, "acc"), log.notes) == ("dapo-s1", {0: 0.25, 2: 0.5, 4: 0.75}, ())
    write("dapo-s1/exp_002/tensorboard", {4: 0.5, 6: 1.0})
    log = only_log(tmp_path / "dapo-s1")
    assert logged(log, "acc") == {0: 0.25, 2: 0.5, 4: 0.5, 6: 1.0}
    assert log.notes == ("2 parts of a run that was resumed are joined",)
    write("dapo-s2/tb", {0: 0.25})
    with pytest.raises(
        AblationsError, match=r"dapo-s1.* and .*dapo-s2/tb begin at steps 0 and 0, so they are not parts"
    ):
        find_log(tmp_path).read()


def test_the_tenth_writer_of_a_second_comes_after_the_ninth(tmp_path):
    for part, number, scores in (("b", 9, {0: 0.25, 2: 0.5, 4: 0.75}), ("a", 10, {4: 0.5, 6: 1.0})):
        with closing(event_writer(tmp_path / "run" / part)) as writer:
            for step, score in scores.items():
                writer.add_scalar("acc", score, step)
        (made,) = (tmp_path / "run" / part).iterdir()
        made.rename(made.with_name(f"events.out.tfevents.1764000000.host.7.{number}"))
    assert logged(only_log(tmp_path / "run"), "acc") == {0: 0.25, 2: 0.5, 4: 0.5, 6: 1.0}


def test_writers_of_training_and_evaluation_that_share_a_name_are_no_parts_of_a_run(tmp_path):
    with closing(event_writer(tmp_path / "a" / "train")) as train, closing(event_writer(tmp_path / "a" / "val")) as val:
        for step in range(1, 9):
            train.add_scalar("acc", 0.9, step, walltime=step)
            val.add_scalar("acc", 0.1, step + 1, walltime=step + 0.5)
    with pytest.raises(AblationsError, match=r"a/train and .*a/val were written at the same time.* name one of the"):
        only_log(tmp_path / "a")
    assert logged(only_log(tmp_path / "a" / "val"), "acc") == pytest.approx(dict.fromkeys(range(2, 10), 0.1))


def test_parts_whose_own_steps_begin_again_are_joined_by_the_steps_that_count_on():
    parts = [
        log_of_rows(
            [("", {"_step": 0, "gs": gs}), ("", {"_step": 1, "gs": gs + 1})], name="a", place="a", steps=("_step",)
        )
        for gs in (4, 6)
    ]
    assert joined(parts, ("gs",)).columns["gs"].tolist() == [4, 5, 6, 7]
    for steps in ((), ("other",)):
        with pytest.raises(AblationsError, match="begin at steps 0 and 0"):
            joined(parts, steps)


def test_a_folder_must_hold_one_log(tmp_path):
    with pytest.raises(AblationsError, match="no log; name one file per run"):
        find_log(tmp_path)
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("step,acc\n1,.1\n")
    with pytest.raises(AblationsError, match=r"2 logs: a\.csv, b\.csv; name one file per run"):
        find_log(tmp_path)
    with pytest.raises(AblationsError, match="no such file or folder"):
        find_log(tmp_path / "none")


def test_a_file_with_a_general_name_is_named_by_its_folder(tmp_path):
    (folder := tmp_path / "dapo-s1").mkdir()
    (folder / "metrics.jsonl").write_text('{"step": 1, "acc": 0.1}\n')
    (folder / "config.json").write_text("{}")
    (folder / "stdout.log").write_text("step:1 - acc:0.2\n")
    assert find_log(folder / "metrics.jsonl").name == find_log(folder).name == "dapo-s1"
    assert find_log(folder / "stdout.log").name == "dapo-s1"
    with pytest.raises(AblationsError, match=r"no log; name one file or folder per run, such as .*/\*;"):
        find_log(tmp_path)


@pytest.mark.parametrize(
    ("files", "asked", "name"),
    [
        # A name that many runs have, or that is only a seed or a number, is told by the folders above.
        (["dapo/seed1/logs/metrics.jsonl"], "dapo/seed1/logs/metrics.jsonl", "dapo-seed1"),
        (["dapo/seed_1/metrics.jsonl"], "dapo/seed_1", "dapo-seed_1"),
        (["dapo/s1.jsonl"], "dapo/s1.jsonl", "dapo-s1"),
        (["dapo-s1/version_0/metrics.csv"], "dapo-s1/version_0", "dapo-s1"),
        (["10-00-00/0/metrics.jsonl"], "10-00-00/0/metrics.jsonl", "10-00-00-0"),
        (["run-dapo_s1-tag-eval_acc.csv"], "run-dapo_s1-tag-eval_acc.csv", "dapo_s1"),
        # Of several files the one with a general name is the log; NeMo-RL's rollouts are none.
        (["dapo-s1/metrics.jsonl", "dapo-s1/checkpoints.jsonl"], "dapo-s1", "dapo-s1"),
        (["dapo-s1/run.csv", "dapo-s1/train_data_step1.jsonl", "dapo-s1/val_data_step1.jsonl"], "dapo-s1", "dapo-s1"),
    ],
)
def test_a_run_is_named_by_the_folders_above_if_its_own_name_says_too_little(tmp_path, files, asked, name):
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("step,acc\n1,.1\n")
    source = find_log(tmp_path / asked)
    assert (source.name, source.files) == (name, (tmp_path / files[0],))


def test_a_library_that_is_missing_is_refused_with_the_command_that_brings_it(tmp_path, monkeypatch):
    (path := tmp_path / "run-x.wandb").touch()
    for module in [one for one in sys.modules if one.partition(".")[0] == "wandb"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(AblationsError, match=r"an offline run of W&B is read .* wandb, which .*`pip install wandb`$"):
        only_log(path)
