"""Logs of runs that were killed and resumed from an earlier step: whether a curve has any value of a lost attempt.

    python benchmarks/resumed_logs.py            # 650 logs in 13 forms; about half a minute

Each run is killed at random steps, one to three times, and resumed from random earlier ones, now and then from the
start, from the last step, or from a step with an evaluation. Every attempt evaluates at steps of its own, some evaluate
before they train, some log an evaluation late, and of some a late one comes when the next attempt is under way. The
curve that should be read is kept beside the log while it is written: what a resume overwrites is taken out of it, and
everything from the start if the run begins again. Writes results/resumed_logs.json.
"""

import csv
import io
import json
import math
import sqlite3
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from record import write_record

from ablations.errors import AblationsError
from ablations.imports.found_run import FoundRun
from ablations.imports.orders import Foreign
from ablations.logs.meaning import LogMeaning

SEED, EACH = 46, 50
GPUS, BEGAN, BETWEEN_S = 10, 1_700_000_000.0, 5_000.0
TIME, LOSS, SCORE, OWN_STEP = "perf/t", "loss", "val/acc", "trainer/step"
Curve = list[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Event:
    """What one call logs: `Event(clock=1.7e9, step=5, values={"val/acc": 0.31}, attempt=0)`."""

    clock: float
    step: int
    values: Mapping[str, float]
    attempt: int


@dataclass(frozen=True, kw_only=True)
class ResumedRun:
    """A run as it was logged, and its curve without lost attempts."""

    events: Sequence[Event]
    resumed_from: Sequence[int]
    """The step of the checkpoint of each attempt after the first."""
    curve: Curve
    """Compute in GPU-hours, and score."""


@dataclass(kw_only=True)
class Kept:
    """What counts so far: the score and the time by step."""

    scores: dict[int, float] = field(default_factory=dict)
    times: dict[int, float] = field(default_factory=dict)

    def resume(self, step: int) -> None:
        """Forget what comes after a step; all if the run begins again."""
        for values in (self.scores, self.times):
            for one in [one for one in values if one > step or step == 0]:
                del values[one]

    def curve(self) -> Curve:
        return [
            (sum(time for at, time in self.times.items() if at <= step) * GPUS / 3600, score)
            for step, score in sorted(self.scores.items())
        ]


def resumed_run(rng: np.random.Generator, *, may_be_late: bool = True) -> ResumedRun:
    """A run with one to three resumes; `may_be_late` allows evaluations that are logged after later steps."""
    last, usual = int(rng.integers(30, 70)), int(rng.choice([3, 4, 5, 7, 10]))
    lag = int(rng.choice([0, 0, 1, 2, 3])) if may_be_late else 0
    is_together, is_before = bool(rng.random() < 0.3) and not lag, bool(rng.random() < 0.2)
    kept, events, resumed_from = Kept(), list[Event](), list[int]()
    clock, begin, overdue = BEGAN, 0, list[tuple[int, float]]()

    def log(step: int, values: dict[str, float], attempt: int) -> None:
        nonlocal clock
        clock += 0.5
        events.append(Event(clock=clock, step=step, values=values, attempt=attempt))
        if SCORE in values:
            kept.scores[step] = values[SCORE]
        if TIME in values:
            kept.times[step] = values[TIME]

    num_attempts = int(rng.integers(2, 5))
    for attempt in range(num_attempts):
        killed = last if attempt == num_attempts - 1 else int(rng.integers(begin + 1, last - 3 + attempt))
        every = usual if rng.random() < 0.6 else int(rng.integers(2, 11))
        origin = begin if rng.random() < 0.5 else 0
        waiting: list[tuple[int, float]] = []
        if rng.random() < 0.4:
            log(begin, {SCORE: score_of(begin, attempt)}, attempt)
        for step in range(begin + 1, killed + 1):
            training = {TIME: round(30 + 4 * attempt + rng.random(), 3), LOSS: round(float(rng.random()), 4)}
            is_scored = (step - origin) % every == 0
            scored = {SCORE: score_of(step, attempt)} if is_scored else {}
            if is_before and scored and not lag:
                log(step, scored, attempt)
                log(step, training, attempt)
            elif lag or not is_together:
                log(step, training, attempt)
                if scored:
                    waiting.append((step, scored[SCORE]))
            else:
                log(step, training | scored, attempt)
            while waiting and step - waiting[0][0] >= lag:
                at, score = waiting.pop(0)
                log(at, {SCORE: score}, attempt)
            if overdue and step == begin + 2:
                for at, score in overdue:  # the evaluator of the attempt before
                    clock += 0.5
                    events.append(Event(clock=clock, step=at, values={SCORE: score}, attempt=attempt))
                overdue = []
        if attempt == num_attempts - 1:
            for at, score in waiting:
                log(at, {SCORE: score}, attempt)
            break
        begin = next_begin(rng, killed, usual)
        resumed_from.append(begin)
        kept.resume(begin)
        overdue = [one for one in waiting if one[0] > begin + 3] if rng.random() < 0.5 else []
        clock += BETWEEN_S
    return ResumedRun(events=events, resumed_from=resumed_from, curve=kept.curve())


def next_begin(rng: np.random.Generator, killed: int, every: int) -> int:
    """The step of a checkpoint up to the one at which a run was killed."""
    kind = rng.random()
    if kind < 0.12:
        return 0
    if kind < 0.24:
        return killed - 1
    if kind < 0.5:
        return killed // every * every
    return int(rng.integers(0, killed + 1))


def score_of(step: int, attempt: int) -> float:
    """The score of an attempt, which no other attempt has."""
    return round(0.2 + 0.5 * step / (step + 40) + 0.01 * attempt, 4)


def rows_of(run: ResumedRun) -> list[dict[str, float]]:
    return [{"step": event.step, **event.values} for event in run.events]


def json_lines(run: ResumedRun, folder: Path) -> list[Path]:
    (path := folder / "dapo-s0.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows_of(run)))
    return [path]


def json_list(run: ResumedRun, folder: Path) -> list[Path]:
    (path := folder / "dapo-s0.json").write_text(json.dumps(rows_of(run)))
    return [path]


def history(run: ResumedRun, folder: Path) -> list[Path]:
    """The history of W&B as JSON lines, whose own step counts calls."""
    rows = [{"_step": n, OWN_STEP: event.step, **event.values} for n, event in enumerate(run.events)]
    (path := folder / "dapo-s0.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [path]


def printed(run: ResumedRun, folder: Path) -> list[Path]:
    """Lines as verl prints them, and slime's for evaluations."""
    lines = []
    for event in run.events:
        if [*event.values] == [SCORE]:
            lines.append(f"(Actor pid=7) eval {event.step}: {{'{SCORE}': {event.values[SCORE]}}}")
        else:
            lines.append(" - ".join([f"step:{event.step}", *(f"{name}:{one}" for name, one in event.values.items())]))
    (path := folder / "dapo-s0.log").write_text("\n".join([*lines, ""]))
    return [path]


def csv_lines(run: ResumedRun, folder: Path) -> list[Path]:
    """A table in the order of logging, with the header again at each resume."""
    text, names, attempt = io.StringIO(), ["step", TIME, LOSS, SCORE], -1
    writer = csv.DictWriter(text, names)
    for event in run.events:
        if event.attempt != attempt:
            writer.writeheader()
            attempt = event.attempt
        writer.writerow({"step": event.step, **event.values})
    (path := folder / "dapo-s0.csv").write_text(text.getvalue())
    return [path]


def by_step(run: ResumedRun) -> list[Event]:
    return sorted(run.events, key=lambda event: event.step)


def csv_by_step(run: ResumedRun, folder: Path) -> list[Path]:
    """A table sorted by step, with the time of each row."""
    names = ["step", "_timestamp", TIME, LOSS, SCORE]
    with (path := folder / "dapo-s0.csv").open("w") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows({"step": event.step, "_timestamp": event.clock, **event.values} for event in by_step(run))
    return [path]


def parquet_by_step(run: ResumedRun, folder: Path) -> list[Path]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        {
            "step": event.step,
            "wall_time": datetime.fromtimestamp(event.clock, UTC),
            **dict.fromkeys((TIME, LOSS, SCORE)),
        }
        | {**event.values}
        for event in by_step(run)
    ]
    pq.write_table(pa.Table.from_pylist(rows), path := folder / "dapo-s0.parquet")
    return [path]


def trackio(run: ResumedRun, folder: Path) -> list[Path]:
    with closing(sqlite3.connect(path := folder / "p.db")) as database:
        database.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY, run_name TEXT, step INTEGER, metrics TEXT)")
        rows = [("dapo-s0", event.step, json.dumps(event.values)) for event in run.events]
        database.executemany("INSERT INTO metrics (run_name, step, metrics) VALUES (?, ?, ?)", rows)
        database.commit()
    return [path]


def event_files(run: ResumedRun, folder: Path, *, has_mark: bool, has_folders: bool) -> list[Path]:
    """An event file of TensorBoard for each attempt; `has_mark` writes TensorBoard's own mark of a restart."""
    events_of, summaries = (import_module(f"tensorboard.compat.proto.{name}_pb2") for name in ("event", "summary"))
    logged, mark, summary_of = events_of.Event, events_of.SessionLog, summaries.Summary
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    def record(event: Any) -> bytes:
        content = event.SerializeToString()
        length = len(content).to_bytes(8, "little")
        parts = (length, masked_crc32c(length).to_bytes(4, "little"), content)
        return b"".join((*parts, masked_crc32c(content).to_bytes(4, "little")))

    for attempt in sorted({event.attempt for event in run.events}):
        events = [event for event in run.events if event.attempt == attempt]
        began = events[0].clock - 0.1
        found = [logged(wall_time=began, file_version="brain.Event:2")]
        if attempt and has_mark:
            begin = run.resumed_from[attempt - 1]
            status = mark(status=mark.START)
            found.append(logged(wall_time=began, step=begin and begin + 1, session_log=status))
        for event in events:
            for tag, value in event.values.items():
                summary = summary_of(value=[summary_of.Value(tag=tag, simple_value=value)])
                found.append(logged(wall_time=event.clock, step=event.step, summary=summary))
        place = folder / "dapo-s0" / (f"try{attempt}" if has_folders else "")
        place.mkdir(parents=True, exist_ok=True)
        # A second later: the name has whole seconds.
        (place / f"events.out.tfevents.{began:.0f}.host.1.0").write_bytes(b"".join(map(record, found)))
    return [folder / "dapo-s0"]


def marked_files(run: ResumedRun, folder: Path) -> list[Path]:
    return event_files(run, folder, has_mark=True, has_folders=False)


def unmarked_files(run: ResumedRun, folder: Path) -> list[Path]:
    return event_files(run, folder, has_mark=False, has_folders=False)


def folders_of_files(run: ResumedRun, folder: Path) -> list[Path]:
    return event_files(run, folder, has_mark=False, has_folders=True)


def wandb_parts(run: ResumedRun, folder: Path) -> list[Path]:
    """The offline runs of one id: a file for each attempt, in the blocks of LevelDB's log."""
    messages = import_module("wandb.proto.wandb_internal_pb2")
    found = []
    for attempt in sorted({event.attempt for event in run.events}):
        records = [messages.Record(run=messages.RunRecord(run_id="abc1", display_name="dapo-s0"))]
        rows: dict[int, dict[str, float]] = {}
        for event in run.events:
            if event.attempt == attempt:
                rows.setdefault(event.step, {}).update(event.values)
        for step, values in rows.items():
            row = messages.HistoryRecord(step=messages.HistoryStep(num=step))
            for name, value in values.items():
                row.item.add(key=name, value_json=json.dumps(value))
            records.append(messages.Record(history=row))
        place = folder / f"offline-run-20261120_10150{attempt}-abc1"
        place.mkdir()
        content = in_blocks([record.SerializeToString() for record in records])
        (place / "run-abc1.wandb").write_bytes(content)
        found.append(place)
    return found


def in_blocks(records: Sequence[bytes]) -> bytes:
    """Records in the format of W&B's files, whose blocks have 32 KiB."""
    content = b":W&B" + b"\xee\xbe\x00"
    for record in records:
        left = 32768 - len(content) % 32768
        if left < 7 + len(record):
            assert left < 7 or len(record) < 32768 - 14, "no record here is so long"
            kinds = [(2, record[: left - 7]), (4, record[left - 7 :])] if left > 7 else [(1, record)]
            content += b"" if left > 7 else bytes(left)
        else:
            kinds = [(1, record)]
        for kind, part in kinds:
            typed = bytes([kind]) + part
            content += zlib.crc32(typed).to_bytes(4, "little") + len(part).to_bytes(2, "little") + typed
    return content


FILES: dict[str, Callable[[ResumedRun, Path], list[Path]]] = {
    "JSON lines": json_lines,
    "JSON list": json_list,
    "W&B history": history,
    "printed lines": printed,
    "CSV": csv_lines,
    "CSV by step": csv_by_step,
    "Parquet by step": parquet_by_step,
    "Trackio": trackio,
    "TensorBoard, marked": marked_files,
    "TensorBoard": unmarked_files,
    "TensorBoard, folders": folders_of_files,
    "W&B parts": wandb_parts,
}
MLFLOW = "MLflow"
ON_TIME = {"W&B parts"}
"""Forms whose writer allows no step back, so that no evaluation comes late."""
COMPUTE = f"cumsum({TIME}) * {GPUS} / 3600"


def read_files(form: str, run: ResumedRun, folder: Path) -> FoundRun:
    """A run that is written in one of the forms of files."""
    meaning = LogMeaning(score=SCORE, compute=COMPUTE, step=OWN_STEP if form == "W&B history" else None)
    return only_run(Foreign(names=tuple(map(str, FILES[form](run, folder))), meaning=meaning))


def read_mlflow(run: ResumedRun, uri: str, name: str) -> FoundRun:
    """A run that is logged in an experiment of its own."""
    from mlflow import MlflowClient
    from mlflow.entities import Metric

    client = MlflowClient(uri)
    logged = client.create_run(client.create_experiment(name), run_name="dapo-s0", tags={"variant": "dapo"})
    metrics = [
        Metric(tag, value, int(1000 * event.clock), event.step)
        for event in run.events
        for tag, value in event.values.items()
    ]
    client.log_batch(logged.info.run_id, metrics)
    client.set_terminated(logged.info.run_id)
    return only_run(Foreign(names=(name,), meaning=LogMeaning(score=SCORE, compute=COMPUTE), mlflow=uri))


def only_run(foreign: Foreign) -> FoundRun:
    """The run of the only source; AblationsError if it cannot be read."""
    (source,) = foreign.sources()[""]
    (found,) = source.read()[0]
    if found.curve is None:
        raise AblationsError(found.reason)
    return found


def outcome(run: ResumedRun, read: Callable[[], FoundRun]) -> str:
    """`equal` to the true curve, `refused: ...`, or what is wrong with it."""
    try:
        found = read()
    except AblationsError as error:
        return f"refused: {error}"
    assert found.curve is not None
    seen = [*zip(found.curve.compute.tolist(), found.curve.score.tolist(), strict=True)]
    lost = {round(score, 4) for _, score in seen} - {score for _, score in run.curve}
    if lost:
        return f"lost values in the curve: {sorted(lost)}"
    if len(seen) != len(run.curve):
        return f"fewer readings: {len(seen)} of {len(run.curve)}" if len(seen) < len(run.curve) else "more readings"
    is_equal = all(
        math.isclose(a, b, rel_tol=1e-6)
        for one, other in zip(seen, run.curve, strict=True)
        for a, b in zip(one, other, strict=True)
    )
    return "equal" if is_equal else "other compute"


def outcomes(each: int, seed: int, folder: Path, uri: str) -> dict[str, Counter[str]]:
    """How many logs of each form come out how."""
    found: dict[str, Counter[str]] = {}
    for number, form in enumerate([*FILES, MLFLOW]):
        counts = found[form] = Counter()
        for one in range(each):
            rng = np.random.default_rng([seed, number, one])
            run = resumed_run(rng, may_be_late=form not in ON_TIME)
            place = folder / f"{number}-{one}"
            place.mkdir(parents=True)
            if form == MLFLOW:
                said = outcome(run, partial(read_mlflow, run, uri, f"{form} {one}"))
            else:
                said = outcome(run, partial(read_files, form, run, place))
            counts[said.partition(":")[0]] += 1
            if said != "equal" and "-v" in sys.argv:
                print(form, one, said[:300], run.resumed_from)
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = outcomes(EACH, SEED, folder, f"sqlite:///{folder}/mlflow.db")
    total = sum(found.values(), Counter())
    report = {"logs": total.total(), "outcomes": dict(total), "forms": {form: dict(one) for form, one in found.items()}}
    print(json.dumps(report, indent=2))
    write_record("resumed_logs", {"settings": {"seed": SEED, "logs of each form": EACH}, **report})


if __name__ == "__main__":
    main()
