#!/usr/bin/env bash
# transformers 5.19.0 with schedulefree 1.4.1: the Trainer saves the averaged weights of a schedule-free optimiser only where an
# evaluation came just before.
#
# Such an optimiser holds two sets of weights: those that are trained, and their average, which is the model that its paper
# means and that every evaluation sees. The Trainer changes to the average for an evaluation and back before the next step,
# but does nothing before it saves.
# Expected: the checkpoint of step 10 and the model that `save_model` writes after training are the evaluated ones, with and
# without `eval_strategy`. Or a warning.
# Seen: of two runs whose training is the same, the one that evaluates every 10 steps saves the average at step 10, and the
# trained weights at step 15; the one without evaluations saves the trained weights throughout, and at the end. A variant that
# is evaluated more rarely hands on another kind of model, and a score measured from its checkpoints is none of those logged.
# Exit status 0 if it is as written here, 1 if the library behaves otherwise now.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check transformers==5.19.0 accelerate==1.15.0 datasets==5.2.0 schedulefree==1.4.1
HF_HOME="$folder/hub" HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - "$folder" 2>/dev/null <<'PYTHON'
import sys
from importlib.metadata import version

import torch
from datasets import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, PrinterCallback, Trainer, TrainingArguments, set_seed

draws = torch.Generator().manual_seed(0)
texts = [torch.randint(2, 7, (8,), generator=draws).tolist() for _ in range(64)]
data = Dataset.from_list([{"input_ids": text, "labels": text, "attention_mask": [1] * 8} for text in texts])


def arguments(name, **others):
    return TrainingArguments(output_dir=f"{sys.argv[1]}/{name}", report_to="none", disable_tqdm=True, use_cpu=True, bf16=False, **others)


def loss_of(folder):
    """The loss of a saved model on all texts."""
    trainer = Trainer(model=LlamaForCausalLM.from_pretrained(folder), args=arguments("loss"), eval_dataset=data)
    trainer.remove_callback(PrinterCallback)
    return trainer.evaluate()["eval_loss"]


def saved(name, **evaluation):
    """The logged evaluations of a run, and the losses of what it saves at steps 10, 15 and 20 and after training."""
    set_seed(0)
    shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
    trainer = Trainer(
        model=LlamaForCausalLM(LlamaConfig(vocab_size=7, pad_token_id=0, eos_token_id=1, bos_token_id=None, **shape)),
        args=arguments(
            name, optim="schedule_free_adamw", lr_scheduler_type="constant", learning_rate=0.02, max_steps=20,
            per_device_train_batch_size=8, save_strategy="steps", save_steps=5, logging_steps=5, **evaluation,
        ),
        train_dataset=data, eval_dataset=data,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    trainer.save_model(f"{sys.argv[1]}/{name}/end")
    logged = {row["step"]: row["eval_loss"] for row in trainer.state.log_history if "eval_loss" in row}
    folders = {10: "checkpoint-10", 15: "checkpoint-15", 20: "checkpoint-20", "end": "end"}
    return logged, {step: loss_of(f"{sys.argv[1]}/{name}/{folder}") for step, folder in folders.items()}


logged, evaluated = saved("evaluated", eval_strategy="steps", eval_steps=10)
_, plain = saved("plain")
print(f"transformers {version('transformers')}, schedulefree {version('schedulefree')}: losses of saved models; expected equal rows")
print("logged:", {step: round(loss, 5) for step, loss in logged.items()})
print("saved, with evaluations:", {step: round(loss, 5) for step, loss in evaluated.items()})
print("saved, without:", {step: round(loss, 5) for step, loss in plain.items()})
is_as_described = (
    all(abs(evaluated[step] - logged[step]) < 1e-5 for step in (10, 20))
    and abs(evaluated[15] - plain[15]) < 1e-5
    and all(abs(plain[step] - evaluated[step]) > 1e-4 for step in (10, 20, "end"))
)
sys.exit(not is_as_described)
PYTHON
