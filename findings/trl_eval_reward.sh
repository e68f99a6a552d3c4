#!/usr/bin/env bash
# TRL 1.16.0: eval_reward of GRPOTrainer is no mean over the evaluation prompts if the last batch is smaller.
#
# Five prompts, one of them solved, in batches of 2, 2 and 1: the reading is the mean of the means of the batches.
# Expected: the mean over prompts, .2.  Seen: .1667 where the solved prompt stands in a whole batch; alone in the last one it
# would be .3333. A reading is then no count of right answers, and a binomial error of it is wrong.
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
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

NAMES = ["<pad>", "<eos>", *"abcde"]
words = Tokenizer(models.WordLevel({name: place for place, name in enumerate(NAMES)}, unk_token="<pad>"))
words.pre_tokenizer = pre_tokenizers.Split("", "isolated")
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")
shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
prompts = Dataset.from_list([{"prompt": letter} for letter in "abcde"])


def reading(solved):
    """eval_reward if this prompt, and no other, is solved, whatever is answered."""
    trainer = GRPOTrainer(
        model=LlamaForCausalLM(
            LlamaConfig(vocab_size=len(NAMES), pad_token_id=0, eos_token_id=1, bos_token_id=None, **shape)
        ),
        reward_funcs=lambda prompts, **_: [float(prompt == solved) for prompt in prompts],
        args=GRPOConfig(
            output_dir=f"{sys.argv[1]}/out", per_device_train_batch_size=2, per_device_eval_batch_size=2,
            num_generations=2, num_generations_eval=1, max_completion_length=2, report_to="none", disable_tqdm=True,
            use_cpu=True, bf16=False,
        ),
        train_dataset=prompts, eval_dataset=prompts, processing_class=tokenizer,
    )
    return round(trainer.evaluate()["eval_reward"], 4)


found = {letter: reading(letter) for letter in "abcde"}
print(f"TRL {version('trl')}: eval_reward if one prompt of five is solved, by prompt: {found}; expected .2 each time")
sys.exit(sorted(found.values()) != [0.1667, 0.1667, 0.1667, 0.1667, 0.3333])
PYTHON
