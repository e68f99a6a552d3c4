"""Size of a checkpoint, and time to write and to read it, of a run at scale `laptop` under PipelineRL-8.

    python benchmarks/checkpoint_speed.py

The run has taken some steps after a short warm start, so that weights and rollouts are under way, and has a frozen copy
for a KL penalty. The folder with parts takes turns with one pickle of the same state, as it was up to commit 5b233c1;
medians of the wall-clock time, sync included. Writes `results/checkpoint_speed.json`.
"""

import io
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from record import write_record

from ablations.study.resolve import load_resolved
from scalerl.recipe import ResolvedRecipe
from scalerl.run.assemble import assemble
from scalerl.run.checkpoint import read_checkpoint, write_checkpoint
from scalerl.run.run_folder import write_atomically
from scalerl.run.run_log import EMPTY_LOG
from scalerl.schedules import SCHEDULES

STEPS = 6
ROUNDS = 15


def main() -> None:
    torch.set_num_threads(1)
    recipe = recipe_of_run()
    with tempfile.TemporaryDirectory() as folder:
        cluster = assemble(recipe, 0, Path(folder) / "warm_starts").cluster
        for _ in range(STEPS):
            SCHEDULES["pipeline"](cluster)
        pickle, parts = Path(folder) / "checkpoint.pt", Path(folder) / "checkpoint"
        ways: dict[str, Callable[[], Any]] = {
            "one pickle, write": lambda: write_pickle(pickle, cluster.state_dict()),
            "parts, write": lambda: write_checkpoint(parts, cluster.state_dict(), EMPTY_LOG),
            "one pickle, read": lambda: torch.load(pickle, weights_only=False),
            "parts, read": lambda: read_checkpoint(parts, Path(folder) / "metrics.jsonl", cluster.task.train),
        }
        rounds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, act in ways.items():
                begin = time.perf_counter()
                act()
                rounds[name].append(time.perf_counter() - begin)
        size = {"one pickle": pickle.stat().st_size, "parts": sum(path.stat().st_size for path in parts.iterdir())}
        keys_and_values = cluster.state_dict()["generator"]["kv"].nbytes
        of_parts = {path.name.split("-")[0]: path.stat().st_size for path in parts.iterdir()}
    seconds = {name: statistics.median(each) for name, each in rounds.items()}
    found = {
        "recipe": recipe.model_dump(mode="json"),
        "bytes": size,
        "bytes_of_parts": of_parts,
        "bytes_of_keys_and_values": keys_and_values,
        "seconds": seconds,
        "ratios": {
            "bytes": size["parts"] / size["one pickle"],
            "write": seconds["parts, write"] / seconds["one pickle, write"],
            "read": seconds["parts, read"] / seconds["one pickle, read"],
        },
    }
    print({name: found[name] for name in ("bytes", "bytes_of_parts", "bytes_of_keys_and_values", "seconds", "ratios")})
    write_record("checkpoint_speed", found, torch=torch.__version__)


def recipe_of_run() -> ResolvedRecipe:
    """Scale `laptop`, with little to do before the first step."""
    recipe = load_resolved("scalerl", "laptop", ["kl.coefficient=0.01"])
    return recipe.model_copy(update={"warm_start": recipe.warm_start.model_copy(update={"steps": 20})})


def write_pickle(path: Path, state: dict[str, Any]) -> None:
    """As up to commit 5b233c1: serialised in memory, then written."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_atomically(path, buffer.getvalue())


if __name__ == "__main__":
    main()
