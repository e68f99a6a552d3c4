"""PipelineRL-8 and PPO-off-policy-8 on the wall clock and on the virtual one: idle device time, and the same learning.

    python benchmarks/wall_clock.py --home /tmp/wall-clock           # about ten minutes on two free cores

Every run stops after the same number of optimiser steps. On the wall clock (scale `laptop_wall`) the two schedules take
turns of `SLICE_STEPS` steps, from checkpoint to checkpoint, so that other work on the machine meets both alike; on the
virtual clock (scale `laptop`) they train side by side. Two questions:

    idle        the device-seconds in which PipelineRL-8's processes waited, over those of PPO-off-policy-8, up to the
                FLOPs that the shorter of the two runs reached
    learning    pass rates of each schedule on both clocks, interpolated to the same FLOPs and averaged over the last
                half of the run, against the gap between two executions of one wall-clock run (`--again`), the
                spread of seeds (`--spread`) and the sampling error of the evaluations

Runs that are in the home folder are not trained again. Writes `results/wall_clock.json`.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from record import write_record

from ablations.study.resolve import load_resolved
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import read_rows

SCALES = {"wall": "laptop_wall", "virtual": "laptop"}
SCHEDULES = ("pipeline", "ppo_off_policy")
K = 8
EVERY_STEPS = 32
"""Optimiser steps between two evaluations; a whole number of PPO's phases."""
SLICE_STEPS = 64
TARGET = 0.6
POINTS = 4
"""Shares of the common FLOPs at which pass rates are compared: the last half."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=256)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="trained on both clocks")
    parser.add_argument("--spread", type=int, nargs="*", default=[], help="seeds trained on the virtual clock alone")
    parser.add_argument(
        "--again", type=Path, help="home folder of an earlier execution: the same wall-clock runs again"
    )
    parser.add_argument("--train", nargs=4, metavar=("CLOCK", "SCHEDULE", "SEED", "STEPS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    home: Path = options.home.absolute()
    if options.train:
        clock, schedule, seed, steps = options.train
        train_steps(home, clock, schedule, int(seed), int(steps))
        return
    train_all(home, options.seeds, options.spread, options.steps)
    homes = [home] if options.again is None else [home, options.again.absolute()]
    seeds, spread = (" ".join(map(str, each)) for each in (options.seeds, options.spread))
    result = {
        "command": f"python benchmarks/wall_clock.py --steps {options.steps} --seeds {seeds} --spread {spread}",
        "recipe": load_resolved("scalerl", SCALES["wall"]).model_dump(mode="json"),
        "idle": [idle(each, seed) for each in homes for seed in options.seeds],
        "target": TARGET,
        "learning": {schedule: learning(homes, schedule, options.seeds, options.spread) for schedule in SCHEDULES},
    }
    write_record("wall_clock", result, load_averages=[loads(each) for each in homes])
    print(json.dumps({name: result[name] for name in ("idle", "learning")}, indent=1))


# --- training -------------------------------------------------------------------------------------------------------


def folder_of(home: Path, clock: str, schedule: str, seed: int) -> RunFolder:
    return RunFolder(home / f"{clock}-{schedule}-{seed}")


def train_all(home: Path, seeds: list[int], spread: list[int], steps: int) -> None:
    """Train what is missing."""
    for seed in seeds:
        for end in [*range(SLICE_STEPS, steps, SLICE_STEPS), steps]:
            for schedule in SCHEDULES:
                start(home, "wall", schedule, seed, end).wait()
    for seed in [*seeds, *spread]:
        for process in [start(home, "virtual", schedule, seed, steps) for schedule in SCHEDULES]:
            process.wait()


def loads(home: Path) -> dict[str, list[float]]:
    """The machine's load over the last minute at the end of each attempt; a run's own share is 1 for each process."""
    return {path.parent.name: json.loads(path.read_text()) for path in sorted(home.glob("*/loads.json"))}


def start(home: Path, clock: str, schedule: str, seed: int, steps: int) -> subprocess.Popen[bytes]:
    arguments = ["--home", str(home), "--train", clock, schedule, str(seed), str(steps)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, __file__, *arguments], env=environment)


def train_steps(home: Path, clock: str, schedule: str, seed: int, steps: int) -> None:
    """Train one run for a number of optimiser steps, evaluated at the start and after every `EVERY_STEPS`."""
    folder = folder_of(home, clock, schedule, seed)
    done = max((row["step"] for row in read_rows(folder.metrics, "eval")), default=0)
    if done >= steps:
        return
    from scalerl.run import loop  # seconds to import
    from scalerl.run import train as training

    recipe = load_resolved("scalerl", SCALES[clock], [f"off_policy={{type: {schedule}, k: {K}}}"])
    folder.create(recipe, seed)

    class StepRun(loop.Run):
        """Evaluates by steps and not by compute, so that all runs are compared at the same of them."""

        def advance(self, budget_gpu_hours: float) -> None:
            if self.evaluations == 0:
                self._evaluate()
            self.cluster.start()
            while self.cluster.learner.version < steps:
                self._log(loop.SCHEDULES[schedule](self.cluster))
                if self.cluster.learner.version % EVERY_STEPS == 0:
                    self._evaluate()
            self.save()

    loop.Run = StepRun
    training.train(folder.path, budget_gpu_hours=math.inf, warm_starts=home / "warm-starts")
    log = folder.path / "loads.json"
    before = json.loads(log.read_text()) if log.exists() else []
    log.write_text(json.dumps([*before, round(os.getloadavg()[0], 2)]))


# --- reading --------------------------------------------------------------------------------------------------------


def idle(home: Path, seed: int) -> dict[str, Any]:
    """Idle device-seconds of both schedules in one pair of wall-clock runs up to the FLOPs both reached."""
    rows = {
        schedule: list(read_rows(folder_of(home, "wall", schedule, seed).metrics, "train")) for schedule in SCHEDULES
    }
    flops = min(each[-1]["flops"] for each in rows.values())
    sides = {schedule: sides_at(each, flops) for schedule, each in rows.items()}
    pipeline, ppo = (sides[schedule]["idle_device_s"] for schedule in SCHEDULES)
    return {"seed": seed, "flops": flops, **sides, "ratio": pipeline / ppo, "reached": pipeline / ppo <= TARGET}


def sides_at(rows: list[dict[str, Any]], flops: float) -> dict[str, float]:
    """Elapsed and idle time when a run had done `flops`, and the mean age of the tokens trained on."""
    at = [row["flops"] for row in rows]
    elapsed = [row["compute_gpu_hours"] * 3600 / 2 for row in rows]
    generator = [row["generator_idle"] * seconds for row, seconds in zip(rows, elapsed, strict=True)]
    trainer = [row["trainer_idle"] * seconds for row, seconds in zip(rows, elapsed, strict=True)]
    ages = [(int(age), count) for row in rows for age, count in row["staleness"].items()]
    generator_s, trainer_s = float(np.interp(flops, at, generator)), float(np.interp(flops, at, trainer))
    return {
        "steps": float(np.interp(flops, at, [row["step"] for row in rows])),
        "elapsed_s": float(np.interp(flops, at, elapsed)),
        "generator_idle_s": generator_s,
        "trainer_idle_s": trainer_s,
        "idle_device_s": generator_s + trainer_s,
        "mean_age": sum(age * count for age, count in ages) / sum(count for _, count in ages),
        "oldest": max(age for age, _ in ages),
    }


def learning(homes: list[Path], schedule: str, seeds: list[int], spread: list[int]) -> dict[str, Any]:
    """Pass rates on both clocks at the same FLOPs, seed by seed, and how far apart they may be by chance."""
    runs = [("wall", seed) for seed in seeds] + [("virtual", seed) for seed in [*seeds, *spread]]
    curves = {(clock, seed): curve(homes[0], clock, schedule, seed) for clock, seed in runs}
    curves |= {("wall again", seed): curve(home, "wall", schedule, seed) for home in homes[1:] for seed in seeds}
    end = min(flops[-1] for flops, _ in curves.values())
    at = [end * (1 + (point + 1) / POINTS) / 2 for point in range(POINTS)]
    rates = {name: np.interp(at, *each) for name, each in curves.items()}
    gaps = [float((rates["wall", seed] - rates["virtual", seed]).mean()) for seed in seeds]
    samples = max(
        row["num_samples"] for row in read_rows(folder_of(homes[0], "wall", schedule, seeds[0]).metrics, "eval")
    )
    middle = float(np.mean([rate.mean() for rate in rates.values()]))
    result: dict[str, Any] = {
        "flops": [float(f) for f in at],
        "pass_rates": {f"{clock} {seed}": [round(float(r), 4) for r in rate] for (clock, seed), rate in rates.items()},
        "wall_less_virtual": gaps,
        "mean_gap": statistics.mean(gaps),
        "between_executions": [
            float((rates["wall", seed] - rates["wall again", seed]).mean()) for seed in seeds for _ in homes[1:]
        ],
        # Independent answers would give this; prompts are the same in all evaluations, which makes it too wide.
        "binomial_sd_of_a_gap_at_one_point": math.sqrt(2 * middle * (1 - middle) / samples),
    }
    means = [float(rates["virtual", seed].mean()) for seed in [*seeds, *spread]]
    if len(means) > 1:
        # Seeds have warm starts of their own, so two runs of one seed differ by less than this says.
        sd = statistics.stdev(means)
        result |= {"sd_between_virtual_seeds": sd, "sd_of_mean_gap": sd * math.sqrt(2 / len(seeds))}
    return result


def curve(home: Path, clock: str, schedule: str, seed: int) -> tuple[list[float], list[float]]:
    """FLOPs and pass rates of a run's evaluations."""
    rows = list(read_rows(folder_of(home, clock, schedule, seed).metrics, "eval"))
    return [row["flops"] for row in rows], [row["pass_rate"] for row in rows]


if __name__ == "__main__":
    main()
