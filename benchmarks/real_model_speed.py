"""An evaluation and an optimiser step of SmolLM2-135M at an earlier commit and at this one, in turns.

    python benchmarks/real_model_speed.py [--before c126fbe] [--rounds 3]

Needs `make smollm`. Both sides answer the same sums (a file made here) with default settings: an evaluation of 206
prompts x 2, then optimiser steps on 16 rollouts. Each side runs in a process of its own with two threads. Ratios are of
processor time, since other work on the machine changes wall time more. Writes results/real_model_speed.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from record import write_record

REPOSITORY = Path(__file__).parent.parent
MODEL = REPOSITORY / "models" / "smollm2-135m-instruct"
STEPS = 3
CHILD = """
import json, sys, time
from pathlib import Path
import torch
from scalerl.recipe import ResolvedRecipe
from scalerl.run.assemble import assemble
from scalerl.schedules import SCHEDULES

settings, warm_starts, steps = json.loads(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(2)
torch.use_deterministic_algorithms(True)
recipe = ResolvedRecipe.model_validate(settings)
parts = assemble(recipe, 0, warm_starts)

def timed(work, *arguments):
    wall, processor = time.monotonic(), time.process_time()
    found = work(*arguments)
    return found, {"wall_s": time.monotonic() - wall, "processor_s": time.process_time() - processor}

rows, evaluation = timed(parts.meter.held_out.measure, parts.cluster, 0)
learner, taken = parts.cluster.learner, []
plain = learner.step

def step(*arguments):
    update, seconds = timed(plain, *arguments)
    taken.append({**seconds, "loss": update.metrics["loss"], "tokens": update.trained_tokens})
    return update

learner.step = step
parts.cluster.start()
while len(taken) < steps:
    SCHEDULES["pipeline"](parts.cluster)
print(json.dumps({"evaluation": evaluation, "pass_rate": rows[-1]["pass_rate"], "steps": taken}))
"""


def main() -> None:
    """Measure both sides in turns and write the medians of their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", default="c126fbe", help="commit to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = folder / "before"
        git = ["git", "-C", str(REPOSITORY)]
        subprocess.run([*git, "worktree", "add", "--detach", str(before), options.before], check=True)
        try:
            settings = settings_of(folder)
            sides = {"before": before, "now": REPOSITORY}
            rounds = [
                {side: measured(tree, settings, folder) for side, tree in sides.items()} for _ in range(options.rounds)
            ]
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", str(before)], check=True)
    found = {
        "before": options.before,
        "evaluation_ratio": ratio(rounds, lambda one: one["evaluation"]["processor_s"]),
        "step_ratio": ratio(rounds, lambda one: statistics.median(step["processor_s"] for step in one["steps"])),
        "rounds": rounds,
    }
    print(json.dumps({name: value for name, value in found.items() if name != "rounds"}, indent=1))
    write_record("real_model_speed", found)


def ratio(rounds, seconds) -> float:
    """Median over rounds of how many times as long the earlier commit takes."""
    return round(statistics.median(seconds(one["before"]) / seconds(one["now"]) for one in rounds), 2)


def settings_of(folder: Path) -> dict:
    """Sums and differences of one or two digits, as a file of mathematics, and every setting at its default."""
    rng = np.random.default_rng(0)
    sums = sorted({(int(a), int(b)) for a, b in rng.integers(1, 100, size=(3000, 2))})[:2060]
    lines = [json.dumps({"question": f"What is {a} + {b}?", "answer": str(a + b)}) for a, b in sums]
    path = folder / "sums.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return {
        "model": {"type": "pretrained", "path": str(MODEL)},
        "tasks": [{"type": "math", "path": str(path), "validation": 0.1}],
        "warm_start": {"steps": 0},
        "batch": {"prompts": 4, "generations": 4},
        "generation": {"thinking": "none", "answer": 24},
        "length_control": {"type": "none"},
        "off_policy": {"type": "pipeline", "k": 1},
        "cluster": {"generators": 1, "trainers": 1, "slots": 32},
        "evaluation": {"samples": 2},
        "entropy_bonus": 1e-9,  # every rollout has a gradient, whatever its group's rewards
        "zero_variance": "keep",
        "threads": 2,
    }


def measured(tree: Path, settings: dict, folder: Path) -> dict:
    """What the trainer of this source tree takes."""
    command = [sys.executable, "-c", CHILD, json.dumps(settings), str(folder / "warm"), str(STEPS)]
    environment = {**os.environ, "PYTHONPATH": str(tree / "trainer")}
    done = subprocess.run(command, env=environment, cwd=tree, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{tree}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
