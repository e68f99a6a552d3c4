"""SmolLM2-135M on every engine of a CPU: the same steps with vLLM, DeepSpeed and FSDP2 as with the built-in parts.

    python benchmarks/real_model_engines.py            # needs `make smollm` and `make engines`; some twenty minutes

Each way trains the reference of sweeps/smollm.yaml for a few steps on 4 prompts x 4 rollouts, from the same seed. A row
has, by step, the loss, the gradient's norm and the mean gap |log pi_train - log pi_gen|; by lag, how far apart trainer
and generator are; and how rollouts end. The reward pays for length, since none of so few answers may be right. Writes
results/real_model_engines.json.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import yaml
from record import write_record

from ablations.files.lookup import files_of
from scalerl.recipe import ResolvedRecipe
from scalerl.run.assemble import assemble
from scalerl.schedules import SCHEDULES

STEPS = 4
VLLM = {"type": "vllm"}
WAYS: dict[str, dict[str, Any]] = {
    "built-in": {},
    "vLLM": {"generator": VLLM},
    "vLLM, BF16 products": {"generator": VLLM, "parameters": "mixed"},
    "built-in, BF16 products": {"parameters": "mixed"},
    "FSDP2, 2 ranks": {"learner": {"type": "fsdp", "ranks": 2}},
    "DeepSpeed ZeRO-2, 2 ranks": {"learner": {"type": "deepspeed", "ranks": 2, "zero": 2}},
    "DeepSpeed ZeRO-3, 2 ranks": {"learner": {"type": "deepspeed", "ranks": 2, "zero": 3}},
}


def main() -> None:
    """Measure all ways, each in a process of its own: an engine keeps its memory until its process ends."""
    if len(sys.argv) > 1:
        with tempfile.TemporaryDirectory() as folder:
            Path(sys.argv[2]).write_text(json.dumps(measured(Path(folder), WAYS[sys.argv[1]])))
        return
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for place, name in enumerate(WAYS):
            made = Path(folder) / f"{place}.json"
            subprocess.run([sys.executable, __file__, name, str(made)], check=True)
            rows[name] = json.loads(made.read_text())
            print(name, rows[name], flush=True)
    write_record("real_model_engines", {"steps": STEPS, "rows": rows})


def measured(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Steps of one way."""
    scale = yaml.safe_load(files_of("scale")["smollm"].read_text())
    scale.pop("resources")
    small = {
        "batch": {"prompts": 4, "generations": 4},
        "off_policy": {"type": "pipeline", "k": 2},
        "length_control": {"type": "none"},
        "cluster": {"generators": 1, "trainers": settings.get("learner", {}).get("ranks", 1), "slots": 32},
        "reward": {"type": "custom", "function": "planted:pays_length", "folder": str(Path(__file__).parent)},
        "threads": 1 if "learner" in settings else 2,
    }
    recipe = ResolvedRecipe.model_validate(scale | small | settings)
    torch.set_num_threads(recipe.threads)
    cluster = assemble(recipe, 0, folder).cluster
    steps, ends = [], []
    try:
        cluster.start()
        eos = set()
        while len(steps) < STEPS:
            step = SCHEDULES["pipeline"](cluster)
            metrics = step.update.metrics
            rollouts = [rollout for group in step.groups for rollout in group.rollouts]
            lags = [step.version - int(version) for rollout in rollouts for version in rollout.versions]
            ends += [rollout.truncated for rollout in rollouts]
            eos |= {int(rollout.tokens[-1]) for rollout in rollouts if not rollout.truncated}
            steps.append(
                {
                    "loss": metrics["loss"],
                    "grad_norm": metrics["grad_norm"],
                    "mismatch": metrics.get("mismatch"),
                    "mean_lag": sum(lags) / len(lags),
                    "right": sum(reward > 0 for group in step.groups for reward in group.rewards),
                }
            )
    finally:
        cluster.close()
    return {"steps": steps, "truncated": sum(ends) / len(ends), "ended_with": sorted(eos)}


if __name__ == "__main__":
    main()
