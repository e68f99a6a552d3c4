"""TRL's GRPOTrainer as a program of a study: a tiny Llama, made here from scratch, learns to answer with one letter.

python train.py --loss_type grpo          # by itself; in a sweep the platform starts it (docs/commands_study.md)
"""

import argparse
import random
import warnings
from pathlib import Path

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, TrainerCallback, set_seed

import ablations

LETTERS = "abcdefgh"
PROMPTS, GENERATIONS, LENGTH, HELD_OUT = 8, 8, 3, 200
parser = argparse.ArgumentParser()
parser.add_argument("--loss_type", default="grpo")
parser.add_argument("--epsilon_high", type=float, default=0.2, help="ratio less 1 that is cut; for cispo the ratio")
parser.add_argument("--learning_rate", type=float, default=1e-2)
parser.add_argument("--every", type=int, default=4)
options = parser.parse_args()
if options.loss_type == "cispo" and options.epsilon_high < 1:
    parser.error(
        f"--epsilon_high {options.epsilon_high:g} cuts every weight of cispo, as tokens begin at 1; ScaleRL has 5"
    )
run = ablations.start(budget=60)
set_seed(run.seed)


def rewards(prompts, completions, **_):
    """1 for an answer whose first letter follows the prompt's, else 0."""
    following = dict(zip(LETTERS, LETTERS[1:] + LETTERS[0], strict=True))
    return [float(answer.strip()[:1] == following[prompt]) for prompt, answer in zip(prompts, completions, strict=True)]


class Log(TrainerCallback):
    """Evaluates, logs, and saves after every few steps; compute counts optimiser steps."""

    def on_train_begin(self, args, state, control, **kwargs):
        if state.global_step == 0:
            self.measure(0, kwargs["model"])

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step % options.every == 0:
            control.should_save = True

    def on_save(self, args, state, control, **kwargs):  # the checkpoint first: a row never runs ahead of it
        self.measure(state.global_step, kwargs["model"])

    def measure(self, step, model):
        generator = random.Random(step)
        prompts = [generator.choice(LETTERS) for _ in range(HELD_OUT)]
        tokens = torch.tensor([[vocabulary[prompt]] for prompt in prompts])
        with torch.no_grad():
            chances = torch.softmax(model(input_ids=tokens).logits[:, -1].float(), dim=-1)
        draws = torch.multinomial(chances, 1, generator=torch.Generator().manual_seed(step))[:, 0].tolist()
        right = int(sum(rewards(prompts, tokenizer.batch_decode([[draw] for draw in draws]))))
        run.log(step=step, compute=step, right=right, of=HELD_OUT)


vocabulary = {name: place for place, name in enumerate(["<pad>", "<eos>", *LETTERS])}
words = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
words.pre_tokenizer = pre_tokenizers.Split("", "isolated")
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")
shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
model = LlamaForCausalLM(
    LlamaConfig(vocab_size=len(vocabulary), **shape, pad_token_id=0, eos_token_id=1, bos_token_id=None)
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from trl import GRPOConfig, GRPOTrainer

    config = GRPOConfig(
        output_dir=str(Path(run.folder, "trl")),
        loss_type=options.loss_type,
        epsilon_high=options.epsilon_high,
        learning_rate=options.learning_rate,
        lr_scheduler_type="constant",
        max_steps=int(run.budget),
        per_device_train_batch_size=PROMPTS * GENERATIONS,
        num_generations=GENERATIONS,
        max_completion_length=LENGTH,
        save_strategy="no",
        save_total_limit=2,
        seed=run.seed,
        use_cpu=True,
        bf16=False,
        report_to="none",
        disable_tqdm=True,
    )
trainer = GRPOTrainer(
    model=model,
    reward_funcs=rewards,
    args=config,
    train_dataset=Dataset.from_list([{"prompt": letter} for letter in LETTERS] * 64),
    processing_class=tokenizer,
    callbacks=[Log()],
)
# The state is written last, so a checkpoint that a kill has cut short has none.
whole = sorted(Path(config.output_dir).glob("checkpoint-*/trainer_state.json"), key=lambda state: state.stat().st_mtime)
trainer.train(resume_from_checkpoint=str(whole[-1].parent) if whole else None)
