"""Peak memory of a run with a pretrained model, forecast and measured, for three sizes.

    python benchmarks/memory_forecast.py

Each model is a Llama of random weights. A process of its own trains it for two steps on the virtual clock, checkpoints
included, and says the most memory that it held. Writes `results/memory_forecast.json`.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from record import write_record

REPOSITORY = Path(__file__).parents[1]
SIZES = {
    "13M": {"hidden_size": 256, "num_hidden_layers": 6, "intermediate_size": 704, "vocab_size": 16_384},
    "63M": {"hidden_size": 512, "num_hidden_layers": 10, "intermediate_size": 1408, "vocab_size": 32_768},
    "138M": {"hidden_size": 768, "num_hidden_layers": 14, "intermediate_size": 2048, "vocab_size": 32_768},
}
STEPS = 2


def main() -> None:
    found: dict[str, Any] = {}
    for name, sizes in SIZES.items():
        found[name] = measured(sizes)
        print(name, json.dumps(found[name], indent=1))
    write_record("memory_forecast", {"steps": STEPS, "sizes": found})


def measured(sizes: dict[str, Any]) -> dict[str, Any]:
    """Forecast and peak of one run, which a new process trains."""
    command = [sys.executable, __file__, "--one", json.dumps(sizes)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def one(sizes: dict[str, Any]) -> dict[str, Any]:
    """Make the model in a process that ends, train it here."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, __file__, "--make", json.dumps(sizes), name], check=True, capture_output=True)
        train_two_steps(folder)
        peak = peak_bytes()
        found = forecast_of(folder)
    total = sum(found.values())
    return {"parts": found, "forecast": total, "measured": peak, "ratio": total / peak}


def make(sizes: dict[str, Any], folder: Path) -> None:
    import torch
    from trainer.tiny_text_model import END, text_tokenizer
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = text_tokenizer()
    heads = sizes["hidden_size"] // 64
    config = LlamaConfig(
        **sizes,
        num_attention_heads=heads,
        num_key_value_heads=heads // 2,
        bos_token_id=None,
        eos_token_id=tokenizer.convert_tokens_to_ids(END),
        pad_token_id=None,
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")


def recipe_of(folder: Path) -> Any:
    from scalerl.recipe import ResolvedRecipe

    task = {"type": "k_smallest", "symbols": 12, "min_length": 3, "max_length": 6}
    return ResolvedRecipe.model_validate(
        {
            "model": {"type": "pretrained", "path": str(folder / "model")},
            "tasks": [task | {"train_prompts": 64, "validation_prompts": 16}],
            "batch": {"prompts": 2, "generations": 4},
            "generation": {"thinking": 40, "answer": 10},
            "optimiser": {"micro_batch_tokens": 512},
            "zero_variance": "keep",
            "cluster": {"generators": 2, "slots": 4, "trainers": 1},
            "evaluation": {"every": 1.0, "samples": 1},
            "checkpoint_every_s": 0,
        }
    )


def train_two_steps(folder: Path) -> None:
    import contextlib

    from scalerl.errors import Cancelled
    from scalerl.run import loop
    from scalerl.run import train as training
    from scalerl.run.run_folder import RunFolder

    run = RunFolder(folder / "run")
    run.create(recipe_of(folder), 0)
    log, steps = loop.Run._log, []

    def logged(self: loop.Run, step: Any) -> None:
        log(self, step)
        steps.append(step)
        if len(steps) == STEPS:
            self.stop_asked.set()

    loop.Run._log = logged
    with contextlib.suppress(Cancelled):
        training.train(run.path, budget_gpu_hours=1e9, warm_starts=folder / "warm_starts")
    assert len(steps) == STEPS


def forecast_of(folder: Path) -> dict[str, int]:
    from scalerl.memory.forecast import PromptLengths, peak_memory
    from scalerl.tasks import all_tasks
    from scalerl.tokens import make_tokenizer

    recipe = recipe_of(folder)
    task = all_tasks(recipe.tasks, (), make_tokenizer(recipe.model)).trained
    (process,) = peak_memory(recipe, PromptLengths.of(recipe, task, [])).processes
    return dict(process.parts)


def peak_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


if __name__ == "__main__":
    sys.path.insert(0, str(REPOSITORY / "tests"))
    if "--make" in sys.argv:
        make(json.loads(sys.argv[2]), Path(sys.argv[3]))
    elif "--one" in sys.argv:
        print(json.dumps(one(json.loads(sys.argv[2]))))
    else:
        main()
