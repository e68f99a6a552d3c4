#!/usr/bin/env bash
# TRL 1.16.0 with peft 0.21.2: GRPO with a LoRA adapter that is initialised by PiSSA or OLoRA is held to another model than
# the one it starts from.
#
# With peft_config the reference is the policy with its adapter switched off. PiSSA and OLoRA move a part of each weight into
# the adapter, so what is left without it is the residual, not the model.
# Expected: the KL to the reference before the first update is 0, as with every other initialisation.
# Seen: it is above 0 at a learning rate of 0, and beta pulls the policy towards the residual.
# A comparison of initialisations with beta > 0 therefore compares references too.
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

NAMES = ["<pad>", "<eos>", *"abcdefgh"]
words = Tokenizer(models.WordLevel({name: place for place, name in enumerate(NAMES)}, unk_token="<pad>"))
words.pre_tokenizer = pre_tokenizers.Split("", "isolated")
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")


def first_kl(initialisation):
    set_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 1}
    trainer = GRPOTrainer(
        model=LlamaForCausalLM(LlamaConfig(vocab_size=len(NAMES), pad_token_id=0, eos_token_id=1, bos_token_id=None, **shape)),
        reward_funcs=lambda completions, **_: [float("a" in one) for one in completions],
        args=GRPOConfig(
            output_dir=f"{sys.argv[1]}/out", per_device_train_batch_size=8, num_generations=4, max_completion_length=3,
            max_steps=1, logging_steps=1, learning_rate=0.0, beta=0.05, save_strategy="no", report_to="none",
            disable_tqdm=True, use_cpu=True, bf16=False,
        ),
        train_dataset=Dataset.from_list([{"prompt": letter} for letter in "abcdefgh"]), processing_class=tokenizer,
        peft_config=LoraConfig(
            r=4, target_modules=["q_proj", "v_proj", "o_proj", "up_proj"], init_lora_weights=initialisation,
            task_type="CAUSAL_LM",
        ),
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return next(row["kl"] for row in trainer.state.log_history if "kl" in row)


found = {str(one): first_kl(one) for one in (True, "gaussian", "orthogonal", "pissa", "olora")}
print(f"TRL {version('trl')}, peft {version('peft')}: KL to the reference before any update, by init_lora_weights; expected 0")
print(", ".join(f"{name} {kl:.6f}" for name, kl in found.items()))
moved = {name for name, kl in found.items() if kl > 1e-5}
sys.exit(moved != {"pissa", "olora"})
PYTHON
