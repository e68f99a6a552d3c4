"""Planted side effects of trainers' settings are named once, with file, key and remedy; sound studies have none.

Studies are as users write them: a configuration for `trl grpo`, a script of one's own, verl's arguments in the command
or in a shell script. The sound ones follow the documentation: TRL's paper index, verl's folder `examples`, prime-rl's
reverse-text.
"""

import ast
import json
import textwrap
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from places import REPOSITORY
from typer.testing import CliRunner

from ablations.cli import app
from ablations.files.source import shown_path
from ablations.logs.trainer_defaults import DEFAULTS
from ablations.study.expand import expand
from ablations.study.side_effects import side_effects

TRL = {"command": ["env", "trl", "grpo", "--config", "{config}", "--seed", "{seed}"], "code": ["rewards.py"]}
SCRIPT = {"command": ["{python}", "train.py", "{overrides}"], "code": ["train.py"], "overrides_as": "flags"}
VERL = ["env", "python3", "-m", "verl.trainer.main_ppo", "algorithm.adv_estimator=grpo", "data.seed={seed}"]
VERL_RUN = "trainer.default_local_dir={folder}/checkpoints"
SERVER = ["--use_vllm", "--vllm_mode", "server", "--generation_kwargs", '{{"seed": {seed}}}']
GSPO = ["env", "accelerate", "launch", "--config_file", "zero3.yaml", "gspo.py", "--use_peft", "--loss_type", "grpo"]
BASE = {
    "model_name_or_path": "Qwen/Qwen2.5-0.5B-Instruct",
    "dataset_name": "trl-lib/DeepMath-103K",
    "learning_rate": 1e-6,
}
IMPORTS = """
import os, sys, yaml
import ablations
from datasets import load_dataset
from peft import LoraConfig
from transformers.trainer_utils import get_last_checkpoint
from trl import GRPOConfig, GRPOTrainer

run = ablations.start()
settings = run.settings
"""
TRAIN = """
trainer = GRPOTrainer(model="Qwen/Qwen2-0.5B-Instruct", reward_funcs=reward, args=args, train_dataset=data)
"""
RESUME = "trainer.train(resume_from_checkpoint=get_last_checkpoint(args.output_dir))\n"
SETTINGS_OF_TRL = "args = GRPOConfig(output_dir=str(run.folder), seed=run.seed, **settings)\n"


def found(folder, trainer, *, reference=None, files=(), variants=None, seeds=(0, 1)):
    """Check, text, remedy and variants of what is found in a study of these files."""
    for name, text in {"rewards.py": "def reward(): ...\n", **dict(files)}.items():
        (folder / name).write_text(textwrap.dedent(text))
    sweep = {
        "name": "study",
        "trainer": {"type": "command", "evaluation": {"every": 10}, **trainer},
        "reference": "none" if reference is None else "settings.yaml",
        "variants": variants or {"faster": {"+learning_rate" if reference is None else "learning_rate": 2e-6}},
        "seeds": list(seeds),
        "budget": {"compute": 1000},
    }
    if reference is not None:
        (folder / "settings.yaml").write_text(yaml.safe_dump(reference))
    (folder / "study.yaml").write_text(yaml.safe_dump(sweep, sort_keys=False))
    findings = side_effects(expand(folder / "study.yaml"))
    assert {one.level for one in findings} <= {"warning"}
    return [(one.check, one.found, one.remedy, one.variants) for one in findings]


def script(config, *, before="", after=RESUME):
    return {"files": {"train.py": IMPORTS + before + config + TRAIN + after}}


def rows(*values):
    return "".join(json.dumps({"prompt": f"What is {i}?", "answer": one}) + "\n" for i, one in enumerate(values))


def verl(*arguments):
    return {"trainer": {"command": [*VERL, *arguments, VERL_RUN, "{overrides}"], "code": ["rewards.py"]}}


PLANTED = {
    "three iterations, a checkpoint every 100 steps": (
        "window",
        {"trainer": TRL, "reference": BASE | {"num_iterations": 3, "save_steps": 100, "resume_from_checkpoint": True}},
    ),
    "four minibatches of a generation, in a script": (
        "window",
        {"trainer": SCRIPT, "reference": BASE | {"steps_per_generation": 8, "gradient_accumulation_steps": 2}}
        | script("args = GRPOConfig(output_dir=str(run.folder), save_steps=50, **settings)\n"),
    ),
    "everything in the script": (
        "window",
        {"trainer": SCRIPT}
        | script(
            'args = GRPOConfig(f"{run.folder}/out", num_iterations=4, save_strategy="steps", save_steps=30)\n',
            after="newest = max(run.folder.glob('out/checkpoint-*'), default=None)\n"
            "trainer.train(resume_from_checkpoint=newest and str(newest))\n",
        ),
    ),
    "dropout of LoRA in a script": (
        "dropout",
        {"trainer": SCRIPT, "reference": BASE | {"num_iterations": 2}}
        | script(SETTINGS_OF_TRL, before="peft = LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05)\n"),
    ),
    "dropout of LoRA by default": (
        "dropout",
        {"trainer": TRL, "reference": BASE | {"use_peft": True, "lora_r": 32, "steps_per_generation": 4}},
    ),
    "dropout of LoRA with vLLM": (
        "dropout",
        {"trainer": TRL, "reference": BASE | {"use_peft": True, "lora_dropout": 0.1, "use_vllm": True}},
    ),
    "dropout of LoRA in TRL's example of GSPO": (
        "dropout",
        {
            "trainer": {
                "command": [*GSPO, "--gradient_accumulation_steps", "2", "--steps_per_generation", "8", "{overrides}"],
                "code": ["gspo.py"],
                "overrides_as": "flags",
            },
            "files": {
                "gspo.py": """\
                    \"\"\"
                    accelerate launch gspo.py --num_iterations 1 --use_vllm --lora_dropout 0
                    \"\"\"
                    from trl import GRPOConfig, GRPOTrainer, ModelConfig, ScriptArguments, TrlParser, get_peft_config

                    # no disable_dropout here
                    parser = TrlParser((ScriptArguments, GRPOConfig, ModelConfig))
                    script_args, training_args, model_args = parser.parse_args_and_config()
                    trainer = GRPOTrainer(args=training_args, peft_config=get_peft_config(model_args))
                    """
            },
        },
    ),
    "dropout of LoRA, with names of the user's own": (
        "dropout",
        {"trainer": SCRIPT, "reference": {"learning_rate": 1e-6, "lora": {"r": 16, "drop": 0.05}, "grpo": {"mu": 4}}}
        | script(
            'args = GRPOConfig(output_dir=str(run.folder), num_iterations=settings["grpo"]["mu"])\n',
            before='peft = LoraConfig(r=settings["lora"]["r"], lora_dropout=settings["lora"]["drop"])\n',
        ),
    ),
    "a generation of eight batches on some processes": (
        "dropout",
        {
            "trainer": TRL,
            "reference": BASE | {"use_peft": True, "generation_batch_size": 512, "per_device_train_batch_size": 64},
        },
    ),
    "DAPO as TRL documents it": (
        "masking",
        {"trainer": SCRIPT}
        | script(
            "args = GRPOConfig(\n    mask_truncated_completions=True,\n    loss_type='dapo',\n    epsilon_high=0.28,\n"
            "    epsilon=0.2,\n    num_generations=16,\n    max_completion_length=20480,\n    beta=0.0,\n)\n"
        ),
    ),
    "masking with the loss by default": (
        "masking",
        {"trainer": TRL, "reference": BASE | {"mask_truncated_completions": True}},
    ),
    "masking of one variant": (
        "masking",
        {
            "trainer": TRL,
            "reference": BASE | {"mask_truncated_completions": True, "loss_type": "grpo"},
            "variants": {"token": {"loss_type": "bnpo"}, "constant": {"loss_type": "dr_grpo"}},
        },
    ),
    "a hundred held-out prompts in batches of sixteen": (
        "evaluation",
        {
            "trainer": TRL,
            "reference": BASE
            | {
                "test_split_size": 100,
                "eval_strategy": "steps",
                "per_device_eval_batch_size": 16,
                "num_generations_eval": 1,
            },
        },
    ),
    "fifty held-out prompts by a slice": (
        "evaluation",
        {"trainer": SCRIPT, "reference": {"learning_rate": 1e-6, "eval_split": "test[:50]"}}
        | script(
            "args = GRPOConfig(str(run.folder), eval_strategy='steps', eval_steps=20, num_generations_eval=2)\n",
            before='held_out = load_dataset("openai/gsm8k", "main", split=settings["eval_split"])\n',
        ),
    ),
    "CISPO without a cap": (
        "cap",
        {"trainer": TRL, "reference": BASE | {"loss_type": "dapo"}, "variants": {"cispo": {"loss_type": "cispo"}}},
    ),
    "CISPO with the clip of DAPO": (
        "cap",
        {"trainer": TRL, "reference": BASE | {"loss_type": "cispo", "epsilon_high": 0.28}},
    ),
    "a seed for vLLM in the trainer": (
        "request seed",
        {"trainer": TRL, "reference": BASE | {"use_vllm": True, "generation_kwargs": {"seed": 42, "min_tokens": 8}}},
    ),
    "a seed for vLLM by a flag": (
        "request seed",
        {
            "trainer": {
                "command": ["env", "accelerate", "launch", "--num_processes", "4", "train.py", *SERVER, "{overrides}"],
                "code": ["train.py"],
                "overrides_as": "flags",
            },
            "files": {"train.py": "from trl import GRPOConfig, TrlParser\nargs, = TrlParser(GRPOConfig).parse()\n"},
        },
    ),
    "the seed of the run for vLLM in an evaluation": (
        "request seed",
        {"trainer": SCRIPT}
        | script(
            "args = GRPOConfig(output_dir=str(run.folder))\n",
            before="sampling = vllm.SamplingParams(n=4, temperature=1.0, max_tokens=512, seed=run.seed)\n",
        ),
    ),
    "DeepSpeed's own schedule": (
        "warm-up",
        {"trainer": TRL, "reference": BASE | {"deepspeed": "zero2.json"}}
        | {
            "files": {
                "zero2.json": json.dumps(
                    {
                        "zero_optimization": {"stage": 2},
                        "scheduler": {
                            "type": "WarmupDecayLR",
                            "params": {"warmup_min_lr": "auto", "warmup_num_steps": "auto"},
                        },
                    }
                )
            }
        },
    ),
    "answers of two types in a file of TRL's": (
        "data",
        {
            "trainer": TRL,
            "reference": {"datasets": [{"path": "json", "data_files": "train.jsonl"}], "learning_rate": 1e-6},
            "files": {"train.jsonl": rows("1.50", 7, "x")},
        },
    ),
    "verl: CISPO with the clips of PPO": (
        "cap",
        verl("actor_rollout_ref.actor.policy_loss.loss_mode=cispo", "actor_rollout_ref.actor.clip_ratio_high=4"),
    ),
    "verl: dropout of LoRA as its example proposes, in a shell script": (
        "dropout",
        {
            "trainer": {"command": ["env", "bash", "run.sh", "{overrides}"], "code": ["run.sh"]},
            "files": {
                "run.sh": """\
                    set -xeuo pipefail
                    rank=32
                    MODEL=(
                        actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct
                        actor_rollout_ref.model.lora.rank=$rank
                        # Add dropout to LoRA layers
                        actor_rollout_ref.model.lora.dropout=0.05
                    )
                    python3 -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer \\
                        data.train_batch_size=$((128 * 2)) \\
                        "${MODEL[@]}" data.seed=$ABLATIONS_SEED $@
                    """
            },
        },
    ),
    "verl: full determinism": (
        "request seed",
        verl("actor_rollout_ref.rollout.n=8", "actor_rollout_ref.rollout.full_determinism=True"),
    ),
    "verl: answers of two types": (
        "data",
        verl("data.train_files=[train.jsonl]", "data.val_files=test.parquet")
        | {"files": {"train.jsonl": rows("007", "x + 1", 3, "null")}},
    ),
}
MISSED = ("dropout of LoRA, with names of the user's own", "a generation of eight batches on some processes")
"""Only the script knows which setting it is; only the launcher knows how many processes share the batch."""

SOUND = {
    "TRL: quick start": {"trainer": SCRIPT} | script("args = GRPOConfig(output_dir=str(run.folder))\n"),
    "TRL: settings of DeepSeek-R1": {"trainer": SCRIPT}
    | script(
        "args = GRPOConfig(loss_type='grpo', beta=0.001, epsilon=10.0, num_generations=16,\n"
        "    max_completion_length=32_768, steps_per_generation=16, per_device_train_batch_size=4,\n"
        "    gradient_accumulation_steps=128, save_steps=25)\n"
    ),
    "TRL: GSPO, four minibatches, the usual checkpoints": {"trainer": SCRIPT}
    | script(
        "args = GRPOConfig(importance_sampling_level='sequence', loss_type='grpo', beta=0.0, epsilon=3e-4,\n"
        "    epsilon_high=4e-4, gradient_accumulation_steps=1, steps_per_generation=4)\n"
    ),
    "TRL: LoRA, one step on each generation": {
        "trainer": TRL,
        "reference": BASE
        | {"use_peft": True, "lora_target_modules": ["q_proj", "v_proj"], "gradient_accumulation_steps": 8},
    },
    "TRL: LoRA and vLLM without dropout, several iterations": {
        "trainer": TRL,
        "reference": BASE
        | {
            "use_peft": True,
            "lora_dropout": 0.0,
            "use_vllm": True,
            "num_iterations": 2,
            "save_steps": 100,
            "beta": 0.04,
        }
        | {"resume_from_checkpoint": True, "generation_kwargs": {"min_tokens": 8}},
    },
    "TRL: Dr. GRPO with masked truncation, evaluated on whole batches": {
        "trainer": TRL,
        "reference": BASE
        | {"loss_type": "dr_grpo", "mask_truncated_completions": True, "num_generations": 8}
        | {"eval_strategy": "steps", "test_split_size": 128, "per_device_eval_batch_size": 32},
    },
    "TRL: CISPO of ScaleRL beside DAPO, three iterations without resuming": {
        "trainer": TRL,
        "reference": BASE | {"loss_type": "dapo", "epsilon_high": 0.28, "num_iterations": 3},
        "variants": {"cispo": {"loss_type": "cispo", "epsilon_high": 5.0}},
    },
    "TRL: SFT": {
        "trainer": {"command": ["env", "trl", "sft", "--config", "{config}"], "code": ["rewards.py"]},
        "reference": BASE | {"use_peft": True, "lora_dropout": 0.05, "eval_strategy": "steps", "eval_size": 100},
    },
    "TRL: RLOO with LoRA": {
        "trainer": SCRIPT,
        "reference": BASE | {"num_generations": 4, "num_iterations": 3, "use_peft": True},
        "files": {"train.py": "from trl import ModelConfig, RLOOConfig, RLOOTrainer  # as for GRPOTrainer\n"},
    },
    "verl: GRPO on GSM8K": verl(
        "data.train_files=$HOME/data/gsm8k/train.parquet",
        "data.val_files=$HOME/data/gsm8k/test.parquet",
        "data.train_batch_size=1024",
        "actor_rollout_ref.actor.ppo_mini_batch_size=256",
        "actor_rollout_ref.rollout.n=5",
        "trainer.save_freq=20",
        "trainer.test_freq=5",
    ),
    "verl: its example of CISPO": {
        "trainer": {"command": ["env", "bash", "run_cispo.sh", "{overrides}"], "code": ["run_cispo.sh"]},
        "files": {
            "run_cispo.sh": """\
                set -x
                gsm8k_train_path=$HOME/data/gsm8k/train.parquet
                train_files="['$gsm8k_train_path']"
                python3 -m verl.trainer.main_ppo \\
                    algorithm.adv_estimator=grpo \\
                    actor_rollout_ref.actor.policy_loss.loss_mode=cispo \\
                    actor_rollout_ref.actor.clip_ratio_low=10 \\
                    actor_rollout_ref.actor.clip_ratio_high=0.2 \\
                    data.train_files="$train_files" \\
                    data.truncation='error' \\
                    trainer.logger='["console","wandb"]' \\
                    trainer.total_epochs=3 $@
                """
        },
    },
    "verl: LoRA": verl("actor_rollout_ref.model.lora_rank=64", "actor_rollout_ref.model.lora_alpha=32"),
    "verl: answers of one type": verl("data.train_files=train.jsonl")
    | {"files": {"train.jsonl": rows("007", "x + 1", "null")}},
    "prime-rl: reverse-text": {
        "trainer": {"command": ["env", "uv", "run", "rl", "@", "rl.toml", "{overrides}"], "code": ["rl.toml"]}
        | {"overrides_as": "flags"},
        "files": {"rl.toml": "max_steps = 20\n[orchestrator]\nbatch_size = 128\n[trainer.model.lora]\nrank = 8\n"},
    },
    "a program of which nothing is known": {
        "trainer": {"command": ["{python}", "train.py", "{overrides}"], "code": ["train.py"]},
        "reference": BASE | {"loss_type": "cispo", "lora_dropout": 0.1, "num_iterations": 4},
        "files": {"train.py": "import torch\n"},
    },
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_effect_is_named_and_nothing_else(name, tmp_path):
    check, study = PLANTED[name]
    assert [one[0] for one in found(tmp_path, **study)] == ([] if name in MISSED else [check])


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_study_has_no_warning(name, tmp_path):
    assert found(tmp_path, **SOUND[name]) == []


def test_nine_of_ten_planted_studies_are_named():
    assert len(PLANTED) >= 20
    assert len(SOUND) >= 10
    assert len(MISSED) <= len(PLANTED) / 10


CISPO_OF_VERL = "actor_rollout_ref.actor.policy_loss.loss_mode=cispo"
UNKNOWN = {
    "a Hydra configuration of the user's own": verl(CISPO_OF_VERL, "--config-path=conf", "--config-name=mine"),
    "a Hydra defaults list with a file of the user's own": {
        "trainer": {"command": [*VERL[:4], "--config-path", "{config}", CISPO_OF_VERL], "code": ["rewards.py"]},
        "reference": {"defaults": ["ppo_trainer", "clips", "_self_"], "data": {"seed": 1}},
        "variants": {"other": {"data.seed": 2}},
    },
    "a configuration that is not there": {
        "trainer": {
            "command": ["env", "trl", "grpo", "--config", "gone.yaml", "--loss_type", "cispo", "{overrides}"],
            "code": ["rewards.py"],
            "overrides_as": "flags",
        }
    },
}
ODD = {
    "a name like a date": {"trainer": {**TRL, "command": [*TRL["command"], "--run_name", "2025-13-40"]}},
    "a text like a mapping with a date": {"reference": BASE | {"note": "{day: 2025-13-40}"}},
    "a text like a mapping without end": {"reference": BASE | {"note": "{" + "a: {" * 3000}},
    "a file that names itself": {
        "reference": BASE | {"deepspeed": "ds.yaml"},
        "files": {"ds.yaml": "deepspeed: ds.yaml\n"},
    },
    "an alias in itself": {"reference": BASE | {"deepspeed": "ds.yaml"}, "files": {"ds.yaml": "a: &a {b: *a}\n"}},
    "a value that no Python has": {"trainer": SCRIPT} | script("args = GRPOConfig(str(run.folder), x={[]: 1})\n"),
    "rows without end": {"reference": BASE | {"data_files": "d.jsonl"}, "files": {"d.jsonl": "[" * 100_000}},
    "a number without end": {
        "reference": BASE | {"save_steps": 10**350, "num_iterations": 3, "resume_from_checkpoint": True}
    },
    "fewer steps than one": {
        "reference": BASE | {"save_steps": 100, "num_iterations": -3, "resume_from_checkpoint": True}
    },
    "no seed for vLLM": {"reference": BASE | {"use_vllm": True, "generation_kwargs": {"seed": None}}},
    "lists instead of values": {
        "reference": BASE | {"loss_type": ["cispo"], "lora_dropout": [0.1], "use_peft": True, "num_iterations": 3}
    },
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_defaults_are_not_taken_for_what_another_file_may_set(name, tmp_path):
    assert found(tmp_path, **UNKNOWN[name]) == []


@pytest.mark.parametrize("name", ODD)
def test_odd_settings_have_no_warning(name, tmp_path):
    study = {"trainer": TRL, **ODD[name]}
    assert found(tmp_path, reference=study.pop("reference", BASE), **study) == []


@pytest.mark.parametrize(
    "study",
    [
        {"trainer": TRL, "reference": BASE | {"deepspeed": "ds.json"}},
        {"trainer": SCRIPT} | script("args = GRPOConfig(output_dir=str(run.folder), deepspeed='ds.json')\n"),
    ],
)
def test_a_file_indented_by_tabs_is_read_in_the_folder_of_the_program(tmp_path, study):
    content = json.dumps({"scheduler": {"type": "WarmupLR", "params": {}}}, indent="\t")
    study = study | {"files": {**study.get("files", {}), "ds.json": content}}
    assert [one[0] for one in found(tmp_path, **study)] == ["warm-up"]


def test_variants_read_a_script_and_its_data_once(tmp_path, monkeypatch):
    parsed = []
    monkeypatch.setattr(ast, "parse", lambda text, parse=ast.parse: parsed.append(text) or parse(text))
    variants = {f"v{number}": {"learning_rate": number * 1e-6} for number in range(2, 22)}
    own = script(f"args = GRPOConfig(output_dir=str(run.folder), loss_type='cispo')  # {tmp_path}\n")
    assert [one[0] for one in found(tmp_path, SCRIPT, reference=BASE, variants=variants, **own)] == ["cap"]
    assert len([text for text in parsed if "GRPOConfig" in text]) <= 4


@pytest.mark.parametrize("sweep", ["sweeps/command/bandit.yaml", "sweeps/trl/losses.yaml"])
def test_a_shipped_study_has_no_warning(sweep):
    assert side_effects(expand(REPOSITORY / sweep)) == []


def test_a_warning_names_setting_file_effect_and_remedy(tmp_path):
    reference = BASE | {"num_iterations": 3, "save_steps": 100, "resume_from_checkpoint": True}
    assert found(tmp_path, TRL, reference=reference) == [
        (
            "window",
            "save_steps 100 (settings.yaml) is not a multiple of the 3 steps on one generation, by num_iterations 3 "
            "(settings.yaml): a run that resumes from a checkpoint in between generates anew, so each later generation "
            "comes at another step",
            "set save_steps to a multiple of 3, such as 102",
            (),
        )
    ]


def test_an_effect_of_some_variants_names_them_and_their_file(tmp_path):
    reference = BASE | {"loss_type": "dapo", "epsilon_high": 0.28}
    variants = {"cispo": {"loss_type": "cispo"}, "capped": {"loss_type": "cispo", "epsilon_high": 5}, "low": {}}
    variants["low"] = {"loss_type": "cispo", "learning_rate": 1e-7}
    ((check, text, remedy, names),) = found(tmp_path, TRL, reference=reference, variants=variants)
    assert (check, names) == ("cap", ("cispo", "low"))
    assert f"loss_type cispo ({shown_path(tmp_path / 'study.yaml')}) takes epsilon_high 0.28 (settings.yaml)" in text
    assert remedy == "set epsilon_high to the cap, 5 in ScaleRL"


def test_variants_that_are_evaluated_otherwise_are_named_with_the_reason(tmp_path):
    reference = BASE | {"eval_strategy": "steps", "eval_steps": 20, "max_eval_samples": 64}
    variants = {
        "often": {"eval_steps": 5},
        "also": {"eval_steps": 5, "learning_rate": 1e-7},
        "same": {"eval_steps": 20, "learning_rate": 1e-7},
    }
    ((check, text, remedy, names),) = found(tmp_path, TRL, reference=reference, variants=variants)
    assert (check, names) == ("unequal evaluations", ("often", "also"))
    assert text.startswith(
        f"eval_steps 5 ({shown_path(tmp_path / 'study.yaml')}), unlike settings: an evaluation draws"
    )
    assert remedy == "give all variants the same eval_steps"
    assert found(tmp_path, TRL, reference=reference | {"use_vllm": True}, variants=variants) == []


def test_what_a_script_passes_itself_counts_before_the_configuration_and_has_its_line(tmp_path):
    config = "args = GRPOConfig(output_dir=str(run.folder), loss_type='cispo',\n    epsilon_high=0.4)\n"
    reference = BASE | {"loss_type": "grpo", "epsilon_high": 5.0}
    ((_, text, _, _),) = found(tmp_path, SCRIPT, reference=reference, **script(config))
    assert "loss_type cispo (train.py:11)" in text
    assert "epsilon_high 0.4 (train.py:12)" in text


def test_a_value_that_the_script_computes_is_not_guessed(tmp_path):
    config = "args = GRPOConfig(output_dir=str(run.folder), loss_type='cispo', epsilon_high=float(os.environ['CAP']))\n"
    assert found(tmp_path, SCRIPT, **script(config)) == []


def test_seeds_that_lie_apart_share_no_completions(tmp_path):
    before = "sampling = vllm.SamplingParams(n=4, seed=run.seed)\n"
    own = script("args = GRPOConfig(output_dir=str(run.folder))\n", before=before)
    assert [one[0] for one in found(tmp_path, SCRIPT, **own)] == ["request seed"]
    assert found(tmp_path, SCRIPT, **own, seeds=(0, 1000)) == []


def test_check_shows_each_warning_once(tmp_path):
    variants = {f"v{number}": {"learning_rate": number * 1e-6} for number in range(2, 6)}
    found(tmp_path, TRL, reference=BASE | {"loss_type": "cispo"}, variants=variants, seeds=range(4))
    shown = CliRunner().invoke(app, ["check", str(tmp_path / "study.yaml"), "--json"], catch_exceptions=False)
    (warning,) = json.loads(shown.stdout)["checks"]
    assert (shown.exit_code, warning["level"], warning["check"]) == (0, "warning", "cap")
    dry = CliRunner().invoke(
        app, ["sweep", str(tmp_path / "study.yaml"), "--dry-run", "--home", str(tmp_path / "home")]
    )
    assert dry.output.count("as the cap of its weights") == 1


def test_the_defaults_of_trl_are_those_of_the_installed_version():
    """Read from the source, because an import of TRL takes a while."""
    assert version("trl").startswith("1.16.")
    defaults = {}
    for package, *path in (
        ("transformers", "training_args.py"),
        ("trl", "trainer", "model_config.py"),
        ("trl", "trainer", "grpo_config.py"),
    ):
        file = Path(str(find_spec(package).origin)).parent.joinpath(*path)
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Call):
                given = [one.value for one in node.value.keywords if one.arg == "default"]
                defaults |= {ast.unparse(node.target): one.value for one in given if isinstance(one, ast.Constant)}
    assert {name: defaults[name] for name in DEFAULTS["trl"]} == DEFAULTS["trl"]
