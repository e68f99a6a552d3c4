#!/usr/bin/env bash
# TRL 1.16.0 with transformers 5.19.0: a GRPO run that is resumed after its first epoch trains on other prompts than one
# that was never stopped.
#
# RepeatSampler draws each epoch's order from one generator, seeded when it is made. A resumed trainer makes a new one and
# does not draw the orders of the epochs before, so its first epoch is the order of epoch 1, whatever epoch it stands in.
# Expected: with eight prompts and a checkpoint in the middle of epoch 2, the rest of epoch 2 brings the four prompts that it
# has not brought yet.  Seen: the last four of epoch 1's order, of which some are trained on twice and others not at all.
# A checkpoint within epoch 1 resumes rightly. Variants of which one was preempted differ by their data.
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


def prompts_of_steps(resume=None):
    """The prompts of each step; two of the eight in each, so an epoch is four steps."""
    seen = []

    def reward(prompts, completions, **_):
        seen.append("".join(dict.fromkeys(prompts)))
        return [float("a" in one) for one in completions]

    set_seed(0)
    shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
    trainer = GRPOTrainer(
        model=LlamaForCausalLM(LlamaConfig(vocab_size=len(NAMES), pad_token_id=0, eos_token_id=1, bos_token_id=None, **shape)),
        reward_funcs=reward,
        args=GRPOConfig(
            output_dir=f"{sys.argv[1]}/out", per_device_train_batch_size=8, num_generations=4, max_completion_length=2,
            max_steps=8, save_strategy="steps", save_steps=2, seed=3, report_to="none", disable_tqdm=True, use_cpu=True,
            bf16=False,
        ),
        train_dataset=Dataset.from_list([{"prompt": letter} for letter in "abcdefgh"]), processing_class=tokenizer,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=resume)
    return seen


whole = prompts_of_steps()
print(f"TRL {version('trl')}, transformers {version('transformers')}: prompts of steps 1 to 8, never stopped: {' '.join(whole)}")
found = {}
for step in (2, 6):
    found[step] = prompts_of_steps(f"{sys.argv[1]}/out/checkpoint-{step}")[: 4 - step % 4]
    due = whole[step : step + len(found[step])]
    print(f"resumed after step {step}: {' '.join(found[step])}; expected {' '.join(due)}")
is_as_described = found[2] == whole[2:4] and found[6] == whole[2:4] != whole[6:8]
sys.exit(not is_as_described)
PYTHON
