"""A run of TRL's own GRPOTrainer is compared by the state that it saves."""

import json
import warnings
from typing import Any

import pytest
from imported import study_of_logs

from ablations.logs.meaning import LogMeaning

trl = pytest.importorskip("trl", reason="TRL is a test extra: pip install trl==1.16.0", exc_type=ImportError)


@pytest.mark.slow
def test_a_run_of_trl_has_the_compute_of_its_steps_and_the_scores_of_its_evaluations(tmp_path, monkeypatch):
    monkeypatch.delenv("LOCAL_RANK", raising=False)  # a DeepSpeed engine made in this process leaves it set
    from datasets import Dataset
    from tokenizers import Tokenizer, models
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, "a": 2}, unk_token="<pad>"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")
    shape: dict[str, Any] = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=3, **shape, pad_token_id=0, eos_token_id=1, bos_token_id=None))
    prompts = Dataset.from_list([{"prompt": "a"}] * 12)
    folder = tmp_path / "grpo-s3"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of TRL, transformers, torch; none is of the log
        config = trl.GRPOConfig(
            output_dir=str(folder), use_cpu=True, bf16=False, report_to="none", num_generations=3,
            per_device_train_batch_size=3, per_device_eval_batch_size=3, max_completion_length=4, max_steps=6,
            logging_steps=2, eval_strategy="steps", eval_steps=2, save_steps=3,
        )  # fmt: skip
        trl.GRPOTrainer(
            model=model,
            reward_funcs=lambda completions, **_: [0.5] * len(completions),
            args=config,
            train_dataset=prompts,
            eval_dataset=prompts.select(range(3)),
            processing_class=tokenizer,
        ).train()
    (run,) = study_of_logs([folder], LogMeaning(trainer="trl", gpus=3600.0)).runs
    logged = json.loads((folder / "checkpoint-6" / "trainer_state.json").read_text())["log_history"]
    seconds = [2 * row["step_time"] for row in logged if "step_time" in row]  # the mean of two steps each
    assert (run.variant, run.seed) == ("grpo", 3)
    assert run.curve.step.tolist() == [2, 4, 6]
    assert run.curve.compute.tolist() == pytest.approx([sum(seconds[:rows]) for rows in (1, 2, 3)])
    assert run.curve.score.tolist() == [0.5, 0.5, 0.5]
    assert run.warnings == ()
