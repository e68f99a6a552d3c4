#!/usr/bin/env bash
# TRL 1.16.0: with sync_ref_model=True the reference model that has moved is in no checkpoint. A resumed run is held to the
# first model again, and says nothing.
#
# Expected: the KL to the reference after a resume is that of the run that was never stopped.
# Seen: every four steps the reference becomes the policy, so KL at step 9 is 0. Resumed from the checkpoint of step 8 it is
# that of the policy to the first model, until the next synchronisation.
# With a mixture below 1 (the default is .6) the reference stays another one for longer.
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

NAMES = ["<pad>", "<eos>", *"abcdefgh"]
words = Tokenizer(models.WordLevel({name: place for place, name in enumerate(NAMES)}, unk_token="<pad>"))
words.pre_tokenizer = pre_tokenizers.Split("", "isolated")
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")
set_seed(0)
shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
model = LlamaForCausalLM(LlamaConfig(vocab_size=len(NAMES), pad_token_id=0, eos_token_id=1, bos_token_id=None, **shape))
model.save_pretrained(f"{sys.argv[1]}/model")


def kl_of_steps(resume=None):
    trainer = GRPOTrainer(
        model=f"{sys.argv[1]}/model",
        reward_funcs=lambda completions, **_: [float(one.count("a")) for one in completions],
        args=GRPOConfig(
            output_dir=f"{sys.argv[1]}/out", per_device_train_batch_size=8, num_generations=4, max_completion_length=3,
            max_steps=9, save_strategy="steps", save_steps=8, logging_steps=1, learning_rate=5e-2, beta=0.05,
            lr_scheduler_type="constant", sync_ref_model=True, ref_model_sync_steps=4, ref_model_mixup_alpha=1.0,
            report_to="none", disable_tqdm=True, use_cpu=True, bf16=False,
        ),
        train_dataset=Dataset.from_list([{"prompt": letter} for letter in "abcdefgh"]), processing_class=tokenizer,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=resume)
    return {row["step"]: row["kl"] for row in trainer.state.log_history if "kl" in row}


whole = kl_of_steps()
resumed = kl_of_steps(f"{sys.argv[1]}/out/checkpoint-8")
print(f"TRL {version('trl')}: KL to the reference by step, never stopped: { {step: round(kl, 4) for step, kl in whole.items()} }")
print(f"KL at step 9 after a resume from step 8: {resumed[9]:.4f}; expected {whole[9]:.4f}")
sys.exit(not (abs(whole[9]) < 1e-3 < 0.1 < resumed[9]))
PYTHON
