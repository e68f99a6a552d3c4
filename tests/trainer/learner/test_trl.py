"""Losses and advantages against TRL's own GRPOTrainer, on the settings both have.

TRL's trainer is built and asked for its loss and its advantages; only what would run a model (log-probs, generation,
rewards) is given to it. Where TRL means something else by a name, the test says so and converts:

* its standard deviations are those of a sample (n - 1) with 1e-4 added, ours of a population with 1e-6;
* its `batch` scaling divides by the spread of the rewards, means of prompts included, ScaleRL's by that of advantages;
* its KL term is multiplied by the ratio unless `use_bias_correction_kl` is off; DeepSeekMath's and ours is not;
* its `cispo` and `dapo` average over all tokens, its `grpo` over samples: our aggregations `token` and `sample`.
"""

import random
import statistics
import warnings
from typing import Any

import pytest
import torch
from trainer.tiny import token_loss_of, weights_of

from scalerl.objective.advantages import Rewards, advantages
from scalerl.objective.kl import token_kl
from scalerl.objective.running_statistics import RunningStatistics
from scalerl.recipe import RatioMask, Truncate
from scalerl.recipe.axes import Cispo, Dapo, Grpo, Gspo

trl = pytest.importorskip("trl", reason="TRL is a test extra: pip install trl==1.16.0", exc_type=ImportError)

PROMPTS, GENERATIONS, WIDTH = 4, 3, 9
B = PROMPTS * GENERATIONS

PAIRS = {
    "cispo": (Cispo(max_ratio=1.5), {"loss_type": "cispo", "epsilon_high": 1.5}, "token"),
    "cispo at ScaleRL's cap": (Cispo(), {"loss_type": "cispo", "epsilon_high": 5.0}, "token"),
    "dapo": (Dapo(), {"loss_type": "dapo", "epsilon": 0.2, "epsilon_high": 0.26}, "token"),
    "grpo": (Grpo(), {"loss_type": "grpo", "epsilon": 0.2}, "sample"),
    "gspo": (
        Gspo(clip_low=0.03, clip_high=0.05),
        {"loss_type": "grpo", "epsilon": 0.03, "epsilon_high": 0.05, "importance_sampling_level": "sequence"},
        "sample",
    ),
}


@pytest.fixture(scope="module")
def new_trainer(tmp_path_factory):
    """A function from settings to TRL's trainer of a model of a few hundred parameters."""
    from datasets import Dataset
    from tokenizers import Tokenizer, models
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    with warnings.catch_warnings():
        # TRL imports vLLM where it is installed, and warns of its version; nothing here uses it.
        warnings.simplefilter("ignore")
        trainer_type, config_type = trl.GRPOTrainer, trl.GRPOConfig

    words = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, "a": 2}, unk_token="<pad>"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")
    shape: dict[str, Any] = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=3, **shape, pad_token_id=0, eos_token_id=1, bos_token_id=None))
    folder = tmp_path_factory.mktemp("trl")

    def build(**settings):
        with warnings.catch_warnings():
            # TRL 1.16 sets what transformers 5.19 calls deprecated; theirs to mend.
            warnings.simplefilter("ignore", FutureWarning)
            config = config_type(
                output_dir=str(folder), use_cpu=True, bf16=False, report_to="none", num_generations=GENERATIONS,
                per_device_train_batch_size=B, max_completion_length=WIDTH, **settings,
            )  # fmt: skip
        trainer = trainer_type(
            model=model,
            reward_funcs=lambda completions, **_: [0.0] * len(completions),
            args=config,
            train_dataset=Dataset.from_list([{"prompt": "a"}] * B),
            processing_class=tokenizer,
        )
        trainer.current_gradient_accumulation_steps = 1
        return trainer

    return build


def random_batch(seed):
    """Log-probs of trainer, generator and reference, advantages, and a mask with forced tokens and padding in it."""
    rng = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    logprobs = -normal(B, WIDTH).abs()
    behaviour, reference = logprobs + 0.4 * normal(B, WIDTH), logprobs + 0.4 * normal(B, WIDTH)
    length = torch.randint(2, WIDTH + 1, (B, 1), generator=rng)
    inside = torch.arange(WIDTH) < length
    own = inside & (torch.rand(B, WIDTH, generator=rng) > 0.2)
    own[:, 0] = True
    return logprobs, behaviour, reference, normal(B), inside, own


def their_loss(trainer, logprobs, behaviour, advantage_B, inside, own, **more):
    """TRL's loss of these log-probs; forced tokens are what it calls tool tokens."""
    rows = len(logprobs)
    inputs = {
        "prompt_ids": torch.full((rows, 1), 2), "prompt_mask": torch.ones(rows, 1, dtype=torch.long),
        "completion_ids": torch.full((rows, WIDTH), 2), "completion_mask": inside.to(logprobs.dtype),
        "tool_mask": own.to(logprobs.dtype), "advantages": advantage_B, "old_per_token_logps": behaviour,
        "num_items_in_batch": own.sum().double(), **more,
    }  # fmt: skip
    entropy = torch.zeros_like(logprobs)
    trainer._get_per_token_logps_and_entropies = lambda *_, **__: (logprobs, entropy, None)
    return trainer._compute_loss(trainer.model, inputs)


@pytest.mark.parametrize("name", list(PAIRS))
def test_loss_and_gradient_of_every_token_equal_trls(new_trainer, name):
    settings, theirs, aggregation = PAIRS[name]
    logprobs, behaviour, _, advantage_B, inside, own = random_batch(0)
    ours, others = logprobs.clone().requires_grad_(), logprobs.clone().requires_grad_()

    loss, clipped = token_loss_of(settings, ours, behaviour, advantage_B.unsqueeze(1), own)
    groups = torch.arange(PROMPTS).repeat_interleave(GENERATIONS)
    (loss * weights_of(aggregation, own, groups)).sum().backward()
    total = their_loss(new_trainer(**theirs), others, behaviour, advantage_B, inside, own)
    total.backward()

    assert clipped.any() == (name != "cispo at ScaleRL's cap")
    our_total = (loss.detach() * weights_of(aggregation, own, groups)).sum()
    torch.testing.assert_close(our_total, total.detach(), rtol=1e-5, atol=1e-9)
    torch.testing.assert_close(ours.grad, others.grad, rtol=1e-5, atol=1e-9)


def test_the_kl_penalty_in_the_loss_is_trls(new_trainer):
    logprobs, behaviour, reference, advantage_B, inside, own = random_batch(1)
    ours, others = logprobs.clone().requires_grad_(), logprobs.clone().requires_grad_()
    settings, theirs, _ = PAIRS["dapo"]
    trainer = new_trainer(**theirs, use_bias_correction_kl=False)
    trainer.beta = 0.3
    total = their_loss(trainer, others, behaviour, advantage_B, inside, own, ref_per_token_logps=reference)
    total.backward()
    loss = token_loss_of(settings, ours, behaviour, advantage_B.unsqueeze(1), own)[0] + 0.3 * token_kl(
        "k3", ours, reference, own
    )
    our_total = (loss * weights_of("token", own, torch.zeros(B, dtype=torch.long))).sum()
    our_total.backward()
    torch.testing.assert_close(our_total.detach(), total.detach(), rtol=1e-5, atol=1e-9)
    torch.testing.assert_close(ours.grad, others.grad, rtol=1e-5, atol=1e-9)


CORRECTIONS = {
    "token_truncate": Truncate(low=0.7, high=1.2),
    "sequence_truncate": Truncate(of="sequence", low=0.7, high=1.2),
    "token_mask": RatioMask(policy="start", low=0.7, high=1.2),
    "sequence_mask": RatioMask(policy="start", of="sequence", low=0.5, high=3.0),
}
"""Corrections by their names in TRL."""


def their_weights(trainer, start, behaviour, own):
    """The importance weights that TRL makes of these log-probs, [B, T] or [B, 1]; generation and scores are given."""
    trainer.use_vllm = trainer.vllm_importance_sampling_correction = True
    ids = [[2] * WIDTH] * B
    trainer._generate = lambda prompts: (
        [[2]] * B, ids, own.long().tolist(), ["a"] * B, behaviour.tolist(), {}, None, None,
    )  # fmt: skip
    trainer._calculate_rewards = lambda *_: torch.zeros(B, 1)
    trainer._get_per_token_logps_and_entropies = lambda *_, **__: (start, None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        scored = trainer._generate_and_score_completions([{"prompt": "a"}] * B)
    return scored["importance_sampling_ratio"].double()


@pytest.mark.parametrize("mode", list(CORRECTIONS))
@pytest.mark.parametrize(("settings", "name"), [(Dapo(), "dapo"), (Grpo(), "grpo"), (Cispo(max_ratio=1.5), "cispo")])
def test_corrections_are_trls(new_trainer, settings, name, mode):
    # TRL's old log-probs are those of the start of the round, its sampling log-probs those of the generator.
    _, theirs, aggregation = PAIRS[name]
    correction = CORRECTIONS[mode]
    logprobs, start, behaviour, advantage_B, inside, own = random_batch(2)
    ours, others = logprobs.clone().requires_grad_(), logprobs.clone().requires_grad_()
    trainer = new_trainer(
        **theirs,
        vllm_importance_sampling_mode=mode,
        vllm_importance_sampling_clip_min=correction.low,
        vllm_importance_sampling_clip_max=correction.high,
    )
    weight = their_weights(trainer, start, behaviour, own)
    assert (weight == 0).any() == ("mask" in mode)
    more = {"importance_sampling_ratio": weight, "sampling_per_token_logps": behaviour}
    total = their_loss(trainer, others, start, advantage_B, inside, own, **more)
    total.backward()
    loss, _ = token_loss_of(settings, ours, behaviour, advantage_B.unsqueeze(1), own, start, correction)
    groups = torch.arange(PROMPTS).repeat_interleave(GENERATIONS)
    our_total = (loss * weights_of(aggregation, own, groups)).sum()
    our_total.backward()
    torch.testing.assert_close(our_total.detach(), total.detach(), rtol=1e-5, atol=1e-9)
    torch.testing.assert_close(ours.grad, others.grad, rtol=1e-5, atol=1e-9)


def their_advantages(trainer, rewards):
    """Advantages [P, G] TRL makes of these rewards; generation and scoring are given to it."""
    trainer._generate = lambda prompts: (
        [[2]] * len(prompts), [[2, 1]] * len(prompts), None, ["a"] * len(prompts), None, {}, None, None,
    )  # fmt: skip
    trainer._calculate_rewards = lambda *_: torch.tensor(rewards, dtype=torch.float64).view(-1, 1)
    trainer.reward_weights = trainer.reward_weights.double()
    with warnings.catch_warnings():
        # TRL 1.16 asks transformers 5.19 for an attribute under its deprecated name; theirs to mend.
        warnings.simplefilter("ignore", FutureWarning)
        scored = trainer._generate_and_score_completions([{"prompt": "a"}] * B)
    return scored["advantages"].view(PROMPTS, GENERATIONS)


@pytest.mark.parametrize(("ours", "theirs"), [("prompt", "group"), ("batch", "batch"), ("none", "none")])
def test_advantages_equal_trls(new_trainer, ours, theirs):
    rng = random.Random(0)
    rewards = [[rng.choice([1.0, -1.0, 0.37]) for _ in range(GENERATIONS)] for _ in range(PROMPTS)]
    rewards[0], rewards[1] = [1.0, -1.0, -1.0], [1.0, 1.0, 1.0]
    expected = their_advantages(new_trainer(scale_rewards=theirs), rewards)
    result, _ = advantages(Rewards.of(rewards), ours, RunningStatistics())

    everything = [reward for row in rewards for reward in row]
    centred = [reward - statistics.fmean(row) for row in rewards for reward in row]
    for p, row in enumerate(rewards):
        divisors = {
            "none": (1.0, 1.0),
            "prompt": (statistics.pstdev(row) + 1e-6, statistics.stdev(row) + 1e-4),
            "batch": (statistics.pstdev(centred) + 1e-6, statistics.stdev(everything) + 1e-4),
        }
        our_divisor, their_divisor = divisors[ours]
        torch.testing.assert_close(result[p] * our_divisor / their_divisor, expected[p], rtol=1e-5, atol=1e-9)
