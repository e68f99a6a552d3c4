"""Settings of other trainers that `platform check` reads, by the trainer's own names, with their defaults.

Read in TRL 1.16.0 with transformers 5.19.0, in verl 0.9.1, and in prime-rl 559b4477.
"""

import re
from typing import Any

ACTOR, ROLLOUT, LORA = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.model.lora"
STARTED_BY = {
    "trl": re.compile(r"(.*/)?trl"),
    "verl": re.compile(r"verl\.trainer\.main_ppo|verl\.experimental\.\w+\.\w+|recipe\.\w+\.main\w*"),
    "prime-rl": re.compile(r"(.*/)?rl|prime_rl\.entrypoints\.rl"),
}
"""A word of the command that starts each trainer."""
DEFAULTS: dict[str, dict[str, Any]] = {
    "trl": {
        "loss_type": "dapo", "epsilon": 0.2, "epsilon_high": None, "mask_truncated_completions": False,
        "num_iterations": 1, "steps_per_generation": None, "generation_batch_size": None, "num_generations": 8,
        "gradient_accumulation_steps": 1, "num_generations_eval": None, "per_device_eval_batch_size": 8,
        "eval_strategy": "no", "save_strategy": "steps", "save_steps": 500, "resume_from_checkpoint": None,
        "use_peft": False, "lora_dropout": 0.05, "disable_dropout": False, "use_vllm": False, "vllm_mode": "colocate",
        "vllm_importance_sampling_correction": True,
    },
    "verl": {
        f"{ACTOR}.policy_loss.loss_mode": "vanilla", f"{ACTOR}.clip_ratio_low": 0.2, f"{ACTOR}.clip_ratio_high": 0.2,
        f"{LORA}.rank": 0, f"{LORA}.dropout": 0.0, f"{ROLLOUT}.n": 1, f"{ROLLOUT}.full_determinism": False,
    },
    "prime-rl": {"trainer.model.lora.dropout": 0.0},
}  # fmt: skip
