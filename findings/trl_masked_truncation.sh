#!/usr/bin/env bash
# TRL 1.16.0: mask_truncated_completions makes the gradient larger under dapo, cispo and bnpo, the more answers are cut.
#
# These losses are divided by the tokens that are left after masking, so the answers that end in time share the weight of the
# whole batch. TRL's documentation of DAPO sets loss_type="dapo" with mask_truncated_completions=True.
# Expected: answers that are masked out weigh nothing, and the others as much as before, as under grpo and dr_grpo.
# Seen: of sixteen answers nine are cut. The gradient norm rises from 1.39 to 2.60 under dapo, cispo and bnpo; it falls from
# 1.41 to 1.12 under grpo, and from 1.30 to .97 under dr_grpo. A longer answer in one arm of a comparison changes its steps.
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


def first_step(**settings):
    """The gradient norm and the share of cut answers that are logged for the first step of a tiny model."""
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
        train_dataset=Dataset.from_list([{"prompt": letter} for letter in "abcde"] * 20), processing_class=tokenizer,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    row = next(row for row in trainer.state.log_history if "grad_norm" in row)
    return row["grad_norm"], row["completions/clipped_ratio"]


print(f"TRL {version('trl')}: gradient norm without and with mask_truncated_completions")
times = {}
for loss in ("dapo", "cispo", "bnpo", "grpo", "dr_grpo"):
    more = {"epsilon_high": 5.0} if loss == "cispo" else {}
    (whole, cut), (masked, _) = (first_step(loss_type=loss, mask_truncated_completions=on, **more) for on in (False, True))
    times[loss] = masked / whole
    print(f"{loss}: {whole:.3f}, {masked:.3f}; {cut:.1%} of the answers are cut")
sys.exit(not all((times[loss] > 1) == (loss in ("dapo", "cispo", "bnpo")) for loss in times))
PYTHON
