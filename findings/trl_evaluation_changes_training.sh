#!/usr/bin/env bash
# TRL 1.16.0 with transformers 5.19.0, GRPO without vLLM: an evaluation changes the training that follows it.
#
# Answers of an evaluation are drawn from the same random state as rollouts. With equal seeds a run that evaluates every two
# steps has, from its first evaluation on, other rollouts than one that does not evaluate, and so other weights.
# Expected: the rollouts of six steps of training are the same whether or not the model is evaluated meanwhile.
# Seen: those of steps 1 and 2 are the same, all later ones differ; with two evaluations of other sizes they differ too. Runs
# that were paired by their seeds are no pairs if `eval_steps`, `num_generations_eval` or the evaluation set differ.
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
prompts = Dataset.from_list([{"prompt": letter} for letter in "abcde"])


def rollouts(**evaluation):
    """The sixteen completions of each of six steps of training, with these settings of the evaluation."""
    seen = []

    def reward(completions, trainer_state=None, **_):
        if trainer.model.training:
            seen.append([*completions])
        return [float(one.count("a")) for one in completions]

    set_seed(0)
    shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
    trainer = GRPOTrainer(
        model=LlamaForCausalLM(LlamaConfig(vocab_size=len(NAMES), pad_token_id=0, eos_token_id=1, bos_token_id=None, **shape)),
        reward_funcs=reward,
        args=GRPOConfig(
            output_dir=f"{sys.argv[1]}/out", per_device_train_batch_size=16, num_generations=4, max_completion_length=6,
            max_steps=6, learning_rate=0.01, save_strategy="no", report_to="none", disable_tqdm=True, use_cpu=True, bf16=False,
            **evaluation,
        ),
        train_dataset=prompts, eval_dataset=prompts, processing_class=tokenizer,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return seen


def equal(one, other):
    """For each step, whether the rollouts of two runs are the same."""
    return [first == second for first, second in zip(one, other, strict=True)]


two_steps = {"eval_strategy": "steps", "eval_steps": 2, "per_device_eval_batch_size": 8}
without, again, four, eight = rollouts(), rollouts(), rollouts(**two_steps), rollouts(**two_steps, num_generations_eval=8)
print(f"TRL {version('trl')}, transformers {version('transformers')}: same rollouts at steps 1 to 6; expected True throughout")
print("two runs without an evaluation:", *equal(without, again))
print("without, and with one every two steps:", *equal(without, four))
print("four answers per prompt of an evaluation, and eight:", *equal(four, eight))
changed = [True, True, False, False, False, False]
sys.exit(not (all(equal(without, again)) and equal(without, four) == equal(four, eight) == changed))
PYTHON
