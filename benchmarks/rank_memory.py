"""Peak memory of each trainer rank while it loads a model from a folder, and while it writes a checkpoint.

    python benchmarks/rank_memory.py [--before CHECKOUT]

A from-scratch Llama of 67 M parameters in FP32 is read by two ranks on the CPU, which take one step and save. What is
counted is what a rank held at most beyond what it held before, libraries loaded and ranks met. `--before` measures the
code of another checkout beside this one. Writes `results/rank_memory.json`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from record import write_record

REPOSITORY = Path(__file__).parents[1]
MODEL = {"hidden": 512, "layers": 16, "heads": 8, "mlp": 2048}
LEARNERS = {
    "ZeRO-2": {"type": "deepspeed", "zero": 2, "ranks": 2},
    "ZeRO-3": {"type": "deepspeed", "zero": 3, "ranks": 2},
    "FSDP2": {"type": "fsdp", "ranks": 2},
}
RANKS = 2


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", type=Path)
    options = parser.parse_args()
    trees = {"before": options.before, "now": REPOSITORY} if options.before else {"now": REPOSITORY}
    found = {when: {name: measured(tree, name) for name in LEARNERS} for when, tree in trees.items()}
    print(json.dumps(found, indent=1))
    write_record("rank_memory", {"model": MODEL, "ranks": RANKS, "peak over model size": found})


def measured(tree: Path, learner: str) -> dict[str, Any]:
    """Of the rank that held most, as multiples of the model's FP32 bytes."""
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(str(tree / name) for name in ("platform", "trainer", "tests"))
    environment["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--rank", learner, folder]
        subprocess.run([sys.executable, __file__, "--make", folder], env=environment, check=True)
        ranks = [
            subprocess.Popen([*command, str(rank)], env=environment, stdout=subprocess.PIPE) for rank in range(RANKS)
        ]
        try:
            said = [json.loads(rank.communicate()[0].splitlines()[-1]) for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
    return {what: max(one[what] for one in said) for what in said[0]}


def make(folder: Path) -> None:
    from trainer.tiny import random_policy, tiny_recipe

    random_policy(tiny_recipe(model=MODEL)).save(folder, eos_token_id=1)


def one_rank(name: str, folder: Path, rank: int) -> None:
    import torch
    from torch.distributed import (
        FileStore,  # pyright: ignore[reportPrivateImportUsage]  torch does not list it
        barrier,
    )
    from trainer.tiny import make_group, tiny_recipe

    from scalerl.learner.make import engine_maker, rank_learner
    from scalerl.learner.ranks import join
    from scalerl.recipe import ResolvedRecipe

    torch.set_num_threads(1)
    settings = tiny_recipe(model=MODEL).model_dump() | {"cluster": {"type": "wall"}, "learner": LEARNERS[name]}
    recipe = ResolvedRecipe.model_validate(settings)
    ranks = join(FileStore(str(folder / "store"), RANKS), rank=rank, world=RANKS)
    engine_maker(recipe.learner, ranks, torch.device("cpu"))  # loads the library
    model = (folder / "model.safetensors").stat().st_size
    held = peak_from_here()
    learner = rank_learner(recipe, folder, ranks)
    loading = peak() - held
    learner.step([make_group("one", [[5, 1], [7, 1]], [[-1.0, -1.0], [-1.0, -1.0]], [1.0, -1.0])])
    held = peak_from_here()
    if hasattr(learner, "write_kept"):
        learner.write_kept(folder)
    else:
        state = learner.state_dict()
        assert state
    saving = peak() - held
    print(json.dumps({"load": round(loading / model, 2), "checkpoint": round(saving / model, 2)}), flush=True)
    barrier()
    os._exit(0)


def peak_from_here() -> int:
    """Forget the peak so far; bytes held at this moment."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> int:
    """The most bytes that this process held."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        make(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["--rank"]:
        one_rank(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
