#!/usr/bin/env bash
# TRL 1.16.0, peft 0.21.2: dropout of LoRA makes GRPOTrainer clip ratios of a policy that has not moved.
#
# With several optimiser steps on one generation the old log-probs come from a pass of their own, in which dropout drops other
# units than in the pass of the loss. So ratios scatter around 1, whatever the policy does. `lora_dropout` is .05 wherever
# `use_peft` is set and nothing else said, as in TRL's own examples/scripts/gspo.py, which has --use_peft, eight minibatches in
# steps of two, and clips at 3e-4 and 4e-4.
# Expected: at a learning rate of 1e-12 no ratio leaves the clip; or a word of it.
# Seen: none without dropout, a quarter to two thirds of the sequences with .05. A new adapter, whose B is 0, has no ratio
# outside; it comes as the adapter grows.
# Exit status 0 if it is as written here, 1 if the library behaves otherwise now.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check trl==1.16.0 transformers==5.19.0 accelerate==1.15.0 \
  datasets==5.2.0 peft==0.21.2
HF_HOME="$folder/hub" HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - "$folder" 2>/dev/null <<'PYTHON'
import sys
from importlib.metadata import version

from datasets import Dataset
from peft import LoraConfig
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, PrinterCallback, set_seed
from trl import GRPOConfig, GRPOTrainer

NAMES = ["<pad>", "<eos>", *"abcde"]
words = Tokenizer(models.WordLevel({name: place for place, name in enumerate(NAMES)}, unk_token="<pad>"))
words.pre_tokenizer = pre_tokenizers.Split("", "isolated")
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")


def clipped(dropout, is_new):
    """The share of clipped sequences in eight steps of GSPO, four on each generation."""
    set_seed(0)
    shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(NAMES), pad_token_id=0, eos_token_id=1, bos_token_id=None, **shape))
    config = GRPOConfig(
        output_dir=f"{sys.argv[1]}/out", importance_sampling_level="sequence", loss_type="grpo", epsilon=3e-4,
        epsilon_high=4e-4, steps_per_generation=4, learning_rate=1e-12, per_device_train_batch_size=16, num_generations=8,
        max_completion_length=16, max_steps=8, logging_steps=1, save_strategy="no", report_to="none", disable_tqdm=True,
        use_cpu=True, bf16=False,
    )
    trainer = GRPOTrainer(
        model=model, reward_funcs=lambda completions, **_: [float("a" in one) for one in completions], args=config,
        train_dataset=Dataset.from_list([{"prompt": letter} for letter in "abcde"] * 20), processing_class=tokenizer,
        peft_config=LoraConfig(r=16, lora_alpha=32, lora_dropout=dropout, init_lora_weights=is_new,
                               target_modules=["q_proj", "v_proj"]),
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return [round(row["clip_ratio/region_mean"], 3) for row in trainer.state.log_history if "grad_norm" in row]


print(f"TRL {version('trl')}, peft {version('peft')}: share of sequences clipped at a learning rate of 1e-12, expected 0")
found = {(dropout, is_new): clipped(dropout, is_new) for dropout in (0.0, 0.05) for is_new in (True, False)}
for (dropout, is_new), shares in found.items():
    print(f"lora_dropout {dropout}, {'a new' if is_new else 'a grown'} adapter: {shares}")
still = all(max(shares) == 0 for key, shares in found.items() if key != (0.05, False))
sys.exit(not (still and sum(found[0.05, False]) / 8 > 0.2))
PYTHON
