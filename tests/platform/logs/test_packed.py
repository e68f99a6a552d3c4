"""Packed values come back as they were, and a log takes no more memory than its file."""

import gzip
import json
import math
import random
import tracemalloc

import numpy as np
import pytest

from ablations.errors import AblationsError
from ablations.logs.packed import TextOf, pack
from ablations.logs.rows import RowColumns, log_of_rows
from ablations.logs.sources import find_log

LONG = "a long answer, " * 40


def unlike(value):
    """A value with its type, so that 1, 1.0 and True differ, and NaN is like itself."""
    return type(value).__name__, repr(value)


@pytest.mark.parametrize(
    "values",
    [
        [0.1, 1e-300, -0.0, math.inf, math.nan],
        [1, -7, 2**53],
        [1, 2**53 + 1, 2**64, 10**400],
        [1, 1.0, True, None, False, 0, math.nan],
        ["0.310000", "-1e-06", "12", "", "1,5"],
        ["0.310000", "-1e-06", "12", "+.5E3"],
        ["7"],
        [""],
        ["train", "eval", "train", "train"],
        ["train", None, "train", "train"],
        ["one", "two", "drei", "vier \N{GRINNING FACE}", "a\ud800"],
        ["with\0sign", "other"],
        [None, None],
        [b"1.5", 2.0],
        [LONG[:200], LONG[:199]],
    ],
)
def test_values_come_back_as_they_were(values):
    assert [*map(unlike, pack(values))] == [*map(unlike, values)]
    assert {*map(unlike, pack(values).different())} == {*map(unlike, values)}


def test_of_long_texts_and_lists_enough_is_kept_to_tell_them_apart():
    first, other, same, listed = pack([LONG, f"{LONG}!", LONG, [0.9, 0.999]])
    assert first == same != other
    assert first.startswith(LONG[:200])
    assert len(first) < 240
    assert listed == "[0.9, 0.999]"
    assert isinstance(listed, TextOf)


def made_rows(count: int) -> list[dict[str, object]]:
    """Rows in which columns are missing, change their type, repeat or are text."""
    draw = random.Random(7)
    rows = []
    for step in range(count):
        row: dict[str, object] = {"step": step, "loss": draw.random(), "seed": draw.choice([0, 1]), "model": "qwen"}
        if step % 5 == 0:
            row |= {"acc": draw.choice([0.5, 1, None, "0.25", math.nan]), "split": draw.choice(["eval", "test"])}
        if step % 3:
            row |= {"nested": {"a": step, "b": f"{draw.random():.3f}"}, "betas": [0.9, 0.999]}
        if step > 300:
            row |= {"late": True, "note": f"row {step}"}
        rows.append(row)
    return rows


def test_columns_of_packed_rows_are_those_of_the_rows():
    rows = made_rows(1000)
    log = log_of_rows(((f"line {n}", row) for n, row in enumerate(rows, 1)), name="a", place="a", steps=("step",))
    assert [*log.columns] == [
        "step",
        "loss",
        "seed",
        "model",
        "acc",
        "split",
        "nested/a",
        "nested/b",
        "betas",
        "late",
        "note",
    ]

    def number(value: object) -> float:
        return math.nan if value is None else float(str(value))

    for name in ("loss", "acc", "late"):
        expected = [float(one) if isinstance(one := row.get(name), bool) else number(one) for row in rows]
        assert np.array_equal(log.columns[name], np.array(expected), equal_nan=True), name
    nested = [row["nested"]["b"] if "nested" in row else math.nan for row in rows]  # type: ignore[index]
    assert np.array_equal(log.columns["nested/b"], np.array(nested, dtype=float), equal_nan=True)
    is_nan = [isinstance(row.get("acc"), float) and row["acc"] != row["acc"] for row in rows]
    assert log.nan_rows("acc").tolist() == [number for number, found in enumerate(is_nan) if found]
    # Equal texts and whole numbers are the configuration; a list is not, nor is a bool that is not in all rows.
    assert log.config == {"model": "qwen", "late": "True"}
    labels = log.labels()
    assert labels.keys() == {"seed", "split"}
    assert labels["split"] == [row.get("split", "") for row in rows]
    assert labels["seed"] == [str(row["seed"]) for row in rows]
    with pytest.raises(AblationsError, match=r"column 'note' holds text, 'row 301' in line 302"):
        log.columns["note"]


def test_rows_come_back_in_their_order_with_their_places():
    rows = made_rows(600)
    columns = RowColumns("a")
    for number, row in enumerate(rows):
        columns.add(f"line {number}", row)
        assert columns.num_rows == number + 1
    found = [*columns.rows]
    assert [place for place, _ in found] == [f"line {number}" for number in range(600)]
    for (_, row), given in zip(found, rows, strict=True):
        flat = {name: value for name, value in given.items() if name != "nested"}
        flat |= {f"nested/{name}": value for name, value in given.get("nested", {}).items()}  # type: ignore[attr-defined]
        flat |= {"betas": "[0.9, 0.999]"} if "betas" in given else {}
        assert {name: unlike(value)[1] for name, value in row.items()} == {n: unlike(v)[1] for n, v in flat.items()}


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "csv", "parquet"])
def test_a_log_takes_less_memory_than_its_file(tmp_path, form):
    draw = random.Random(3)
    rows = [{"step": step} | {f"actor/metric_{n}": draw.random() for n in range(40)} for step in range(6000)]
    path = tmp_path / f"run.{form}"
    text = "\n".join(map(json.dumps, rows)).encode()
    size = len(text)
    if form.endswith("gz"):
        path.write_bytes(gzip.compress(text, 1))
    elif form == "jsonl":
        path.write_bytes(text)
    elif form == "csv":
        names = [*rows[0]]
        lines = [",".join(names), *(",".join(repr(row[name]) for name in names) for row in rows)]
        path.write_text("\n".join(lines))
        size = path.stat().st_size
    else:
        arrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(arrow.Table.from_pylist(rows), path)
    expected = [row["actor/metric_7"] for row in rows]
    del rows, text
    tracemalloc.start()
    (log,) = find_log(path).read()
    column = log.columns["actor/metric_7"]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert column.tolist() == expected
    assert most < 0.9 * size
