#!/usr/bin/env bash
# TRL 1.16.0: GRPOConfig(loss_type="cispo") without epsilon_high takes a fifth of every gradient, and says nothing.
#
# For dapo and grpo `epsilon_high` is the distance from 1 at which a ratio is clipped, and falls back to `epsilon`, .2. For
# cispo it is the cap of the weight itself (epsilon_max of arXiv 2510.13786, where it is 5), with the same fallback.
# Expected: with each batch trained on once all ratios are 1, so CISPO and DAPO have one gradient; or an error, since a cap
# below 1 cuts every weight of an on-policy batch.
# Seen: the gradient norms are .2 of DAPO's to six digits. With epsilon_high=5 they are DAPO's.
# Exit status 0 if it is as written here, 1 if the library behaves otherwise now.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check trl==1.16.0 transformers==5.19.0 accelerate==1.15.0 datasets==5.2.0
HF_HOME="$folder/hub" HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - "$folder" 2>/dev/null <<'PYTHON'
import sys
from importlib.metadata import version

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed
from trl import GRPOConfig, GRPOTrainer

NAMES = ["<pad>", "<eos>", *"abcde"]
words = Tokenizer(models.WordLevel({name: place for place, name in enumerate(NAMES)}, unk_token="<pad>"))
words.pre_tokenizer = pre_tokenizers.Split("", "isolated")
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")


def first_gradient_norm(**settings):
    """The norm that is logged for the first step of a tiny model, whose answers are rewarded for an "a"."""
    set_seed(0)
    shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(NAMES), pad_token_id=0, eos_token_id=1, bos_token_id=None, **shape))
    config = GRPOConfig(
        output_dir=f"{sys.argv[1]}/out", per_device_train_batch_size=16, num_generations=8, max_completion_length=2,
        max_steps=1, logging_steps=1, save_strategy="no", report_to="none", disable_tqdm=True, use_cpu=True, bf16=False,
        **settings,
    )
    trainer = GRPOTrainer(
        model=model, reward_funcs=lambda completions, **_: [float("a" in one) for one in completions], args=config,
        train_dataset=Dataset.from_list([{"prompt": letter} for letter in "abcde"]), processing_class=tokenizer,
    )
    trainer.train()
    return next(row["grad_norm"] for row in trainer.state.log_history if "grad_norm" in row)


dapo = first_gradient_norm(loss_type="dapo")
default = first_gradient_norm(loss_type="cispo")
capped = first_gradient_norm(loss_type="cispo", epsilon_high=5.0)
print(f"TRL {version('trl')}: gradient norm of DAPO {dapo:.6f}, of CISPO by default {default:.6f}, with a cap of 5 {capped:.6f}")
print(f"CISPO by default has {default / dapo:.6f} of DAPO's gradient; expected 1, or a refusal")
sys.exit(not (abs(default / dapo - 0.2) < 1e-5 and abs(capped / dapo - 1) < 1e-5))
PYTHON
