"""How many numbers of SmolLM2 one step of RL changes, as they are published in FP32, and as they would be in BF16.

    PYTHONPATH=platform:trainer:benchmarks python benchmarks/weight_change.py [STEPS]   # some minutes on two free cores

ScaleRL's recipe at scale `smollm`, FP32 weights, learning rates 1e-5 (the scale's) and 1e-6; the first two steps warm
up. Of each step: the share of numbers whose bits change, and the bytes of the changed ones (four for the place of each
and its value) over those of all. Writes `results/weight_change.json`.
"""

import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import yaml
from record import write_record

from ablations.files.lookup import files_of
from scalerl.learner.torch_learner import TorchLearner
from scalerl.recipe import ResolvedRecipe
from scalerl.run.run_folder import RunFolder
from scalerl.run.train import train

RATES = (1e-5, 1e-6)
STEPS = 8
PLACE_BYTES = 4
WIDTHS = {torch.float32: 4, torch.bfloat16: 2}


class Enough(Exception):
    """Enough steps were measured."""


def main() -> None:
    torch.set_num_threads(2)
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else STEPS
    found = {f"{rate:g}": measured(rate, steps) for rate in RATES}
    if steps == STEPS:
        write_record("weight_change", {"steps": steps, "by learning rate": found})


def measured(rate: float, steps: int) -> list[dict[str, Any]]:
    """What each step changes at a learning rate."""
    scale = yaml.safe_load(files_of("scale")["smollm"].read_text())
    scale.pop("resources")
    scale["optimiser"]["learning_rate"] = rate
    scale["evaluation"] = {"every": 1000.0, "samples": 1}
    scale["tasks"][0]["validation_prompts"] = 8
    scale["length_control"] = {"type": "none"}
    rows: list[dict[str, Any]] = []
    step = TorchLearner.step

    def compared(learner: TorchLearner, *arguments: Any, **more: Any) -> Any:
        before = {name: tensor.clone() for name, tensor in learner.weights().items()}
        update = step(learner, *arguments, **more)
        if update.metrics["skipped"]:
            return update
        after = learner.weights()
        row: dict[str, Any] = {"learning_rate": update.metrics["learning_rate"]}
        for kind, width in WIDTHS.items():
            total = sum(tensor.numel() for tensor in after.values())
            changed = sum(int((before[name].to(kind) != after[name].to(kind)).sum()) for name in after)
            name = str(kind).removeprefix("torch.")
            row[name] = {"changed": changed / total, "bytes": changed * (width + PLACE_BYTES) / (total * width)}
        rows.append(row)
        print(row, flush=True)
        if len(rows) == steps:
            raise Enough
        return update

    with tempfile.TemporaryDirectory() as place, patch.object(TorchLearner, "step", compared):
        run = RunFolder(Path(place) / "run")
        run.create(ResolvedRecipe.model_validate(scale), 0)
        with suppress(Enough):
            train(run.path, budget_gpu_hours=scale["compute_unit_gpu_hours"], warm_starts=Path(place) / "warm")
    return rows


if __name__ == "__main__":
    main()
