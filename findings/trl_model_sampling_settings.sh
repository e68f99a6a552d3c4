#!/usr/bin/env bash
# TRL 1.16.0 with transformers 5.19.0: sampling settings that a model's generation_config brings along reach the rollouts of
# GRPO where GRPOConfig leaves them at None or has no such setting: min_p, suppress_tokens and others.
#
# Log-probs, ratios and entropy are those of the unrestricted policy, so the rollouts come from another distribution than the
# one that is trained, and two models with other files of generation settings are compared under other sampling.
# Expected: rollouts as GRPOConfig says, the same for both models; or a warning.
# Seen: with min_p .99 in the model's settings nearly all rollouts are one text, while the logged entropy is 1.94 nats of at
# most 1.95; with a token in suppress_tokens it never comes. (trl#5783 was about temperature, which TRL now fixes itself.)
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
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, PrinterCallback, set_seed
from trl import GRPOConfig, GRPOTrainer

NAMES = ["<pad>", "<eos>", *"abcde"]
words = Tokenizer(models.WordLevel({name: place for place, name in enumerate(NAMES)}, unk_token="<pad>"))
words.pre_tokenizer = pre_tokenizers.Split("", "isolated")
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")


def rollouts(**generation):
    """The sixteen completions of the first step and its logged entropy, of a model with these generation settings."""
    seen = []

    def reward(completions, **_):
        seen.extend(completions)
        return [float(one.count("a")) for one in completions]

    set_seed(0)
    shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(NAMES), pad_token_id=0, eos_token_id=1, bos_token_id=None, **shape))
    model.generation_config.update(**generation)
    trainer = GRPOTrainer(
        model=model, reward_funcs=reward,
        args=GRPOConfig(
            output_dir=f"{sys.argv[1]}/out", per_device_train_batch_size=16, num_generations=4, max_completion_length=6,
            max_steps=1, logging_steps=1, save_strategy="no", report_to="none", disable_tqdm=True, use_cpu=True, bf16=False,
        ),
        train_dataset=Dataset.from_list([{"prompt": letter} for letter in "abcde"]), processing_class=tokenizer,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return seen, next(row["entropy"] for row in trainer.state.log_history if "entropy" in row)


print(f"TRL {version('trl')}, transformers {version('transformers')}: sixteen rollouts; expected the same in each row")
found = {}
for name, settings in {"nothing": {}, "min_p": {"min_p": 0.99}, "suppress_tokens": {"suppress_tokens": [2]}}.items():
    texts, entropy = rollouts(**settings)
    found[name] = (len(set(texts)), sum("a" in text for text in texts), entropy)
    print(f"{name}: {found[name][0]} different, {found[name][1]} with an a, logged entropy {entropy:.2f}")
is_as_described = (
    found["nothing"][0] > 8 and found["nothing"][1] > 0 and found["min_p"][0] < 5 and found["suppress_tokens"][1] == 0
    and all(abs(entropy - found["nothing"][2]) < 0.02 for _, _, entropy in found.values())
)
sys.exit(not is_as_described)
PYTHON
