"""Where the hours of PipelineRL-8 and PPO-off-policy-8 go, on the virtual clock and on the wall clock.

    python benchmarks/device_hours.py --home /tmp/device-hours              # a quarter of an hour on two free cores

Each schedule takes the same number of optimiser steps at scale `laptop` (modelled H100s, 64 generators and 16 trainers)
and at scale `laptop_wall` (one process that decodes, one that trains). The shares of device time by role and activity
are those of the last row's `device_s`, evaluations and checkpoints not in them. On the virtual clock they are the same
on every machine; on the wall clock they are this machine's. Writes `results/device_hours.json`.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any

from record import write_record

from ablations.readings.hours import Hours, hours_cells
from ablations.study.resolve import load_resolved
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import read_rows

SCALES = {"virtual": "laptop", "wall": "laptop_wall"}
SCHEDULES = ("pipeline", "ppo_off_policy")
K = 8
IDLE = ("wait_prompts", "wait_weights", "wait_rollouts", "sync", "unplayed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=256, help="whole phases of PPO are multiples of eight")
    parser.add_argument("--clocks", nargs="+", choices=SCALES, default=list(SCALES))
    options = parser.parse_args()
    home: Path = options.home.absolute()
    spent: dict[str, Hours] = {}
    compute: dict[str, float] = {}
    for clock in options.clocks:
        for schedule in SCHEDULES:
            name = f"{schedule}-{K} {clock}"
            last = train(home, clock, schedule, options.steps)
            hours = Hours.of_rows([last])
            assert hours is not None
            spent[name], compute[name] = hours, last["compute_gpu_hours"]
    result = {
        "command": f"python benchmarks/device_hours.py --steps {options.steps} --clocks {' '.join(options.clocks)}",
        "recipes": {clock: load_resolved("scalerl", SCALES[clock]).model_dump(mode="json") for clock in options.clocks},
        "runs": {name: figures(hours, compute[name]) for name, hours in spent.items()},
    }
    write_record("device_hours", result)
    print(json.dumps(hours_cells(spent), indent=1))


def figures(hours: Hours, compute: float) -> dict[str, Any]:
    """The account, its shares, and the share of all device time in which a device had nothing to do."""
    total = hours.total_s
    idle = sum(spent for seconds in hours.device_s.values() for name, spent in seconds.items() if name in IDLE)
    return {
        "compute_gpu_hours": compute,
        "adds_up_to": total / (3600 * compute),
        "idle": idle / total,
        "shares": {f"{role} {activity}": share for (role, activity), share in hours.shares.items()},
        **hours.to_json(),
    }


def train(home: Path, clock: str, schedule: str, steps: int) -> dict[str, Any]:
    """The last train row of a run of so many steps, without evaluations; one that is there is not trained again."""
    folder = RunFolder(home / f"{clock}-{schedule}-{steps}")
    rows = list(read_rows(folder.metrics, "train"))
    if not rows or rows[-1]["step"] < steps:
        from scalerl.run import loop  # seconds to import
        from scalerl.run import train as training

        folder.create(load_resolved("scalerl", SCALES[clock], [f"off_policy={{type: {schedule}, k: {K}}}"]), 0)

        class StepRun(loop.Run):
            """Stops after a number of steps."""

            def advance(self, budget_gpu_hours: float) -> None:
                self.cluster.start()
                while self.cluster.learner.version < steps:
                    self._log(loop.SCHEDULES[schedule](self.cluster))
                self.save()

        original, loop.Run = loop.Run, StepRun
        training.train(folder.path, budget_gpu_hours=math.inf, warm_starts=home / "warm-starts")
        loop.Run = original
        rows = list(read_rows(folder.metrics, "train"))
    return rows[-1]


if __name__ == "__main__":
    main()
