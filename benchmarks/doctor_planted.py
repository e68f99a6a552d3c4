"""What `platform doctor` says of runs with a planted cause, and of healthy ones.

    python benchmarks/doctor_planted.py            # about fifteen minutes on two free cores
    python benchmarks/doctor_planted.py FOLDER     # keeps the runs, and trains none twice

Every planted run is one of scale `smoke` with the settings in PLANTED; what is planted is the cause, never a number of
the log. The healthy runs are HEALTHY, three seeds each. Writes results/doctor_planted.json: of every run the rules that
the doctor names, in its order.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import yaml
from record import write_record

from ablations.diagnosis.diagnose import Diagnosis, diagnose
from ablations.diagnosis.history import History
from ablations.files.lookup import files_of
from scalerl.recipe import ResolvedRecipe
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import read_rows
from scalerl.run.train import train

HERE = Path(__file__).parent


def own(function: str) -> dict[str, str]:
    """A function of planted.py as a setting."""
    return {"type": "custom", "function": f"planted:{function}", "folder": str(HERE)}


TASK = {"type": "k_smallest", "symbols": 12, "min_length": 3, "max_length": 6, "validation_prompts": 200}
PPO = {"type": "ppo_off_policy", "k": 8}
Planted = Mapping[str, tuple[str, dict[str, Any]]]
"""The rule that is to be found, and the settings that plant the cause, by name."""
Diagnosed = Callable[[Path, str, dict[str, Any], int], Sequence[Diagnosis]]
"""The findings of a run, by folder of all runs, name, settings and seed."""
PLANTED: dict[str, tuple[str, dict[str, Any]]] = {
    "learning rate x 100": ("learning rate too high", {"optimiser": {"learning_rate": 5e-2}}),
    "learning rate / 10,000": ("learning rate too low", {"optimiser": {"learning_rate": 5e-8}}),
    "entropy bonus of 1": ("entropy explodes", {"entropy_bonus": 1.0}),
    "a loss without the advantage": ("entropy gone", {"loss": own("imitates_itself"), "zero_variance": "keep"}),
    "a reward that pays length": (
        "reward pays something else",
        {"reward": own("pays_length"), "length_control": {"type": "none"}, "generation": {"answer": 12}},
    ),
    "a reward that pays thinking": (
        "reward pays something else",
        {"reward": own("pays_length_too"), "generation": {"thinking": 24}},
    ),
    "a reward that pays short answers": ("reward pays something else", {"reward": own("pays_short")}),
    "a reward that pays nonsense": ("reward pays something else", {"reward": own("pays_nonsense")}),
    "weights 64 steps old": (
        "mismatch grows",
        {"off_policy": {"type": "ppo_off_policy", "k": 64}, "optimiser": {"learning_rate": 2e-3}},
    ),
    "prompts too hard": (
        "no signal",
        {"tasks": [{**TASK, "symbols": 24, "min_length": 11, "max_length": 12}], "warm_start": {"steps": 5}},
    ),
    "prompts too easy": (
        "no signal",
        {
            "tasks": [{**TASK, "max_length": 3, "symbols": 8, "validation_prompts": 40, "train_prompts": 200}],
            "warm_start": {"steps": 800},
            "curriculum": {"type": "uniform"},
        },
    ),
    "24 training prompts": ("learned by heart", {"tasks": [{**TASK, "train_prompts": 24}]}),
    "60 easy training prompts": (
        "prompts run out",
        {"tasks": [{**TASK, "max_length": 3, "symbols": 8, "validation_prompts": 40, "train_prompts": 60}]},
    ),
    "12 training prompts, for ever": (
        "learned by heart",
        {
            "tasks": [{**TASK, "train_prompts": 12}],
            "curriculum": {"type": "uniform"},
            "optimiser": {"learning_rate": 3e-3},
        },
    ),
    "one generator": ("starved", {"cluster": {"generators": 1}}),
    "one prompt for ever": (
        "one answer for everything",
        {"curriculum": own("first_only"), "zero_variance": "keep", "optimiser": {"learning_rate": 3e-3}},
    ),
    "12 held-out prompts": (
        "noisy evaluation",
        {"tasks": [{**TASK, "validation_prompts": 12}], "evaluation": {"samples": 1}},
    ),
}
HEALTHY: dict[str, dict[str, Any]] = {
    "scalerl": {},
    "in turns": {"off_policy": PPO},
    "dapo": {"loss": {"type": "dapo"}},
    "gspo": {"loss": {"type": "gspo", "clip_low": 0.1, "clip_high": 0.1}},
    "token average": {"aggregation": "token"},
    "no advantage scale": {"advantage": "none"},
    "keep": {"zero_variance": "keep"},
    "penalty": {"length_control": {"type": "penalty"}},
    "kl": {"kl": {"coefficient": 0.01}},
    "uniform": {"curriculum": {"type": "uniform"}},
}


def recipe_with(settings: dict[str, Any]) -> ResolvedRecipe:
    """Scale `smoke` with ScaleRL's recipe and these settings; blocks are merged key by key."""
    scale = yaml.safe_load(files_of("scale")["smoke"].read_text())
    scale.pop("resources")
    for name, value in settings.items():
        scale[name] = {**scale[name], **value} if isinstance(value, dict) and name in scale else value
    return ResolvedRecipe.model_validate(scale)


def trained(folder: Path, recipe: ResolvedRecipe, seed: int) -> History:
    """The log of a run of one unit of compute."""
    run = RunFolder(folder / f"{recipe.identity(seed)}")
    if not run.path.exists():
        run.create(recipe, seed)
        try:
            train(run.path, budget_gpu_hours=recipe.compute_unit_gpu_hours, warm_starts=folder / "warm")
        except Exception as error:  # a run that diverges has a log too
            print(f"  ended: {error}")
    rows = list(read_rows(run.metrics))
    return History(
        name=run.path.name,
        steps=[row for row in rows if row["kind"] == "train"],
        evaluations=[row for row in rows if row["kind"] == "eval"],
        rollouts=list(read_rows(run.rollouts)),
        message=run.read_status().message or "",
    )


def examined(
    planted: Planted,
    healthy: Mapping[str, dict[str, Any]],
    seeds: tuple[Sequence[int], Sequence[int]],
    diagnosed: Diagnosed,
    record: str,
) -> None:
    """Print and keep what is found in runs with a planted cause, and in healthy ones, with the seeds of either; names
    on the command line choose some of the first, of which nothing is kept."""
    wanted = sys.argv[2:]
    causes, well = {}, {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else place)
        (folder / "warm").mkdir(parents=True, exist_ok=True)
        for name, (expected, settings) in planted.items():
            if wanted and name not in wanted:
                continue
            for seed in seeds[0]:
                found = diagnosed(folder, name, settings, seed)
                causes[f"{name}, seed {seed}"] = {"planted": expected, "found": [one.rule for one in found]}
                print(f"{name}, seed {seed}: {expected}")
                for one in found:
                    print(f"    {one.rule} ({one.how_sure}, since {one.since_step}): {one.text}", flush=True)
        for name, settings in {} if wanted else healthy.items():
            for seed in seeds[1]:
                found = diagnosed(folder, name, settings, seed)
                well[f"{name}, seed {seed}"] = [one.rule for one in found]
                print(f"healthy {name} {seed}: {[(one.rule, one.text) for one in found]}", flush=True)
    first_two = sum(row["planted"] in row["found"][:2] for row in causes.values())
    print(f"{first_two} of {len(causes)} planted causes are the first or second finding")
    print(f"{sum(map(bool, well.values()))} of {len(well)} healthy runs have a finding")
    if not wanted:
        write_record(record, {"planted": causes, "healthy": well, "first_two": first_two})


def main() -> None:
    torch.set_num_threads(1)
    examined(
        PLANTED,
        HEALTHY,
        ((0,), range(3)),
        lambda folder, _, settings, seed: diagnose(trained(folder, recipe_with(settings), seed)),
        "doctor_planted",
    )


if __name__ == "__main__":
    main()
