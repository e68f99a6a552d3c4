"""Nine logs in five forms, imported as one sweep, and two tables of one study at two scales."""

import csv
import json
import math
import os
from itertools import product
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ablations.cli import app

GPUS, STEPS, EVERY, SECONDS = 64, 200, 5, 60.0
SCORE, TIME = "val-core/math/acc/mean@8", "perf/time_per_step"
CEILINGS = {"cispo": 0.66, "dapo": 0.60, "grpo": 0.58}
FORMS = ("jsonl", "csv", "log", "parquet", "tensorboard")


def hours(step: int) -> float:
    """Compute up to a step."""
    return step * SECONDS * GPUS / 3600


def row_of(variant: str, seed: int, step: int) -> dict[str, float]:
    """What verl logs of a step; the score follows eq. 1 with B = 1.7 and C_mid = 20."""
    row = {TIME: SECONDS, "actor/entropy": 1 - step / 500, "critic/score/mean": 0.3 + step / 1000}
    if step % EVERY == 0:
        ceiling = CEILINGS[variant] + 0.004 * (seed - 1)
        noise = 0.004 * math.sin(5 * step + 2 * seed + 7 * ceiling)
        row[SCORE] = 0.2 + (ceiling - 0.2) / (1 + (20 / hours(step)) ** 1.7) + noise
    return row


def write(folder: Path, form: str, variant: str, seed: int, steps: int = STEPS) -> Path:
    """A log of one run in one of the forms."""
    rows = {step: row_of(variant, seed, step) for step in range(1, steps + 1)}
    path = folder / f"{variant}-s{seed}"
    if form == "jsonl":
        path = path.with_suffix(".jsonl")
        path.write_text("".join(json.dumps({"step": step, "data": row}) + "\n" for step, row in rows.items()))
    elif form == "log":
        path = path.with_suffix(".log")
        lines = (
            " - ".join([f"step:{step}", *(f"{key}:{value}" for key, value in row.items())])
            for step, row in rows.items()
        )
        path.write_text("INFO starting\n" + "\n".join(lines) + "\n")
    elif form in ("csv", "parquet"):
        columns = ["step", TIME, "actor/entropy", "critic/score/mean", SCORE]
        table = [[step, *(row.get(column) for column in columns[1:])] for step, row in rows.items()]
        path = path.with_suffix(f".{form}")
        if form == "csv":
            with path.open("w", newline="") as file:
                csv.writer(file).writerows([columns, *table])
        else:
            arrow = pytest.importorskip("pyarrow", reason="Parquet is an extra: pip install pyarrow")
            from pyarrow import parquet

            parquet.write_table(arrow.table(dict(zip(columns, map(list, zip(*table, strict=True)), strict=True))), path)
    else:
        pytest.importorskip("tensorboard", reason="TensorBoard is an extra: pip install tensorboard")
        from torch.utils.tensorboard import SummaryWriter

        with SummaryWriter(str(path)) as writer:
            for step, row in rows.items():
                for name, value in row.items():
                    writer.add_scalar(name, value, step)
    return path


def run(home: Path, *arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments, "--home", str(home)], catch_exceptions=False)
    assert result.exit_code == 0, (arguments, result.output)
    return result.stdout


def write_nine(folder: Path) -> list[Path]:
    """Nine runs: three variants of three seeds, each in the next of the forms."""
    names = [(variant, seed) for variant in CEILINGS for seed in range(3)]
    found = [write(folder, FORMS[number % len(FORMS)], *name) for number, name in enumerate(names)]
    for file in folder.rglob("*"):  # a file that was written a moment ago is read again
        os.utime(file, ns=(0, file.stat().st_mtime_ns - 10**9))
    return found


def import_nine(home: Path, logs: list[Path]) -> None:
    """Import them as sweep `mine`; a second import finds them unchanged."""
    options = ("--log", "verl", "--gpus", str(GPUS), "--as", "mine", "--reference", "dapo")
    assert "sweep 'mine' with 9 runs, 9 new" in run(home, "import", *map(str, logs), *options)
    assert "9 unchanged" in run(home, "import", *map(str, logs), *options[:-2])


def import_ladder(home: Path, folder: Path) -> None:
    """Import the sweeps `study@1e8` and `study@1e9`, in which `new` gains 0.02 and 0.05 over `old`."""
    for scale, gain in (("1e8", 0.02), ("1e9", 0.05)):
        rows = ["curve,seed,compute,score"]
        for name, seed, hour in product(("old", "new"), (0, 1), range(10, 210, 10)):
            rise = (0.3 + gain * (name == "new")) / (1 + (20 / hour) ** 1.7)
            rows.append(f"{name},{seed},{hour},{0.2 + rise + 0.001 * math.sin(hour + seed)}")
        (folder / "curves.csv").write_text("\n".join(rows) + "\n")
        run(home, "import", str(folder / "curves.csv"), "--as", f"study@{scale}")
