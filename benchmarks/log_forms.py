"""The forms in which trainers write the log of a run: files of twelve kinds, all with the same events."""

import csv
import io
import json
import sqlite3
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from resumed_runs import LOSS, SCORE, TIME, Event, ResumedRun

OWN_STEP = "trainer/step"


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
