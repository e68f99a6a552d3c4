"""The typed recipe and scale: every choice of a run, with the paper's values as defaults.

A *recipe* holds the algorithm's choices (ScaleRL table of section 2 and 3.2); a *scale* holds model, tasks, sizes,
lengths, optimiser, cluster, evaluation and compute unit. `ResolvedRecipe` is both in one namespace: it is what a run
trains, what is stored beside it, and what its identity is the hash of.

    >>> ResolvedRecipe.model_validate({**recipe, **scale}).identity(seed=0)
    '3f0c9a1b2d4e'

Nothing here imports torch: the command line loads this file.
"""

import hashlib
import json
import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scalerl.frozen import Frozen

Fraction = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


# --- the axes of a recipe -------------------------------------------------------------------------------------------


class Pipeline(Frozen):
    """PipelineRL-k (Piche et al. 2025; ScaleRL §3.1): generators never stop, new weights arrive mid-sequence."""

    type: Literal["pipeline"] = "pipeline"
    k: Count = 8
    """The trainer waits when it is this many optimiser steps ahead of the oldest rollout not yet trained on."""


class PpoOffPolicy(Frozen):
    """PPO-off-policy-k (ScaleRL §2): generate k batches with one frozen policy, then take k optimiser steps on them."""

    type: Literal["ppo_off_policy"] = "ppo_off_policy"
    k: Count = 8
    """Optimiser steps taken on what one frozen policy generated."""


class Cispo(Frozen):
    """Truncated importance-sampling REINFORCE (MiniMax-M1, arXiv 2506.13585)."""

    type: Literal["cispo"] = "cispo"
    min_ratio: Annotated[float, Field(ge=0)] = 0.0
    """Importance weights below this are raised to it; an absolute ratio, not 1 - epsilon."""
    max_ratio: Positive = 5.0
    """Importance weights above this are truncated, their gradient is kept; an absolute ratio, not 1 + epsilon."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_ratio >= self.max_ratio:
            raise ValueError(f"min_ratio {self.min_ratio} must lie below max_ratio {self.max_ratio}")
        return self


class Grpo(Frozen):
    """Symmetric PPO clipping (DeepSeekMath, arXiv 2402.03300)."""

    type: Literal["grpo"] = "grpo"
    clip: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """The token ratio is clipped to [1 - clip, 1 + clip]."""
    max_weight: Positive | None = None
    """Cap of the truncated importance weight pi_start / pi_gen of each token (3 in TRL). The clipped ratio is then
    pi_train / pi_start; null leaves it pi_train / pi_gen and there is no weight. pi_start are the weights at the start
    of the round: those that generated the batch under ppo_off_policy, else those before its first step."""


class Dapo(Frozen):
    """Asymmetric PPO clipping (DAPO, arXiv 2503.14476)."""

    type: Literal["dapo"] = "dapo"
    clip_low: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """The token ratio is clipped from below at 1 - clip_low."""
    clip_high: Positive = 0.26
    """The token ratio is clipped from above at 1 + clip_high."""
    max_weight: Positive | None = None
    """Cap of the truncated importance weight pi_start / pi_gen of each token, as in `grpo`; null for none."""


class Gspo(Frozen):
    """Clipping of the length-normalised sequence ratio (arXiv 2507.18071)."""

    type: Literal["gspo"] = "gspo"
    clip_low: Annotated[float, Field(gt=0, lt=1)] = 4e-3
    """The sequence ratio is clipped from below at 1 - clip_low."""
    clip_high: Positive = 5e-3
    """The sequence ratio is clipped from above at 1 + clip_high."""
    max_weight: Positive | None = None
    """Cap of the truncated importance weight, as in `grpo`, here the geometric mean over the sequence like the ratio
    itself; null for none."""


class NoPositiveResampling(Frozen):
    """A prompt the policy has mastered is left out of all later epochs (ScaleRL §3.2)."""

    type: Literal["no_positive_resampling"] = "no_positive_resampling"
    threshold: Annotated[float, Field(gt=0, le=1)] = 0.9
    """A prompt whose mean pass rate so far reaches this is retired."""
    min_groups: Count = 1
    """Groups of a prompt that must be seen before it can be retired."""


class Uniform(Frozen):
    """Every prompt once per epoch, in a fresh random order."""

    type: Literal["uniform"] = "uniform"


class Interruption(Frozen):
    """Thinking is cut by a forced end-of-thinking phrase, then the model answers (ScaleRL A.10)."""

    type: Literal["interruption"] = "interruption"
    earliest: Annotated[float, Field(gt=0, le=1)] = 10 / 12
    """The cut is drawn uniformly from [earliest, 1] of the thinking budget."""


class LengthPenalty(Frozen):
    """DAPO's soft length penalty on right answers: clip((L_max - |y|) / L_cache - 1, -1, 0) (arXiv 2503.14476)."""

    type: Literal["penalty"] = "penalty"
    cache: Annotated[float, Field(gt=0, le=1)] = 1 / 7
    """L_cache as a share of L_max, the most tokens a rollout may have; the paper's 2k of 14k."""


class NoLengthControl(Frozen):
    """Answers that reach the token limit are truncated and nothing else happens."""

    type: Literal["none"] = "none"


class Kl(Frozen):
    """KL penalty that holds the policy to a frozen copy of what the run started from (PPO-RLHF, DeepSeekMath).

    With r = pi_ref / pi of a sampled token (Schulman 2020, joschu.net/blog/kl-approx): k1 = -log r, k2 = (log r)^2 / 2,
    k3 = r - 1 - log r.
    """

    coefficient: Annotated[float, Field(ge=0)] = 0.0
    """Weight of the penalty; 0 is off, and then no reference model is held. DeepSeekMath has 0.04, ScaleRL none."""
    estimator: Literal["k1", "k2", "k3"] = "k3"
    """Estimate of KL(pi || pi_ref) from the sampled token. In the loss, on-policy, the gradient of k1 is only noise
    around 0, that of k2 is the KL's, that of k3 is the gradient of KL(pi_ref || pi) (arXiv 2506.09477)."""
    where: Literal["loss", "reward"] = "loss"
    """loss: added token by token and averaged like the policy loss, pi the trained policy (DeepSeekMath, arXiv
    2402.03300). reward: its sum over the answer is taken off the reward, pi the generator (arXiv 2203.02155); which
    prompts have variance is decided on the rewards before."""

    @model_validator(mode="after")
    def _in_effect(self) -> Self:
        for name in ("estimator", "where"):
            value, default = getattr(self, name), type(self).model_fields[name].default
            if self.coefficient == 0 and value != default:
                raise ValueError(
                    f"{name} {value!r} has no effect while coefficient is 0; give a coefficient above 0 or "
                    f"leave {name} out"
                )
        return self


OffPolicy = Annotated[Pipeline | PpoOffPolicy, Field(discriminator="type")]
Loss = Annotated[Cispo | Grpo | Dapo | Gspo, Field(discriminator="type")]
Curriculum = Annotated[NoPositiveResampling | Uniform, Field(discriminator="type")]
LengthControl = Annotated[Interruption | LengthPenalty | NoLengthControl, Field(discriminator="type")]


class Recipe(Frozen):
    """The algorithm's choices; the defaults are ScaleRL's (§3, §4)."""

    off_policy: OffPolicy = Pipeline()
    """How far generators may lag behind the trainer, and how weights reach them."""
    loss: Loss = Cispo()
    """Per-token policy objective."""
    aggregation: Literal["prompt", "sample", "token", "sum"] = "prompt"
    """How per-token losses become one number: mean of prompt means, mean of sample means, mean over all tokens, or
    their sum, whose gradient norm grows with the tokens of the batch."""
    advantage: Literal["batch", "prompt", "none", "running"] = "batch"
    """Whose standard deviation divides the centred rewards: the batch's advantages, the prompt's rewards, none, or all
    advantages since the run began."""
    logits: Literal["fp32", "bf16"] = "fp32"
    """Precision of the language-model head, in generator and trainer alike."""
    zero_variance: Literal["drop", "keep", "resample"] = "drop"
    """What becomes of prompts whose generations all got one reward: drop takes them out of the loss and its averages,
    keep leaves them in, resample throws them away as soon as they are generated and draws others until the batch is
    full (DAPO, arXiv 2503.14476), at most ten batches for one."""
    curriculum: Curriculum = NoPositiveResampling()
    """Which training prompts are drawn."""
    length_control: LengthControl = Interruption()
    """What keeps answers inside the token limit."""
    truncated: Literal["keep", "mask"] = "keep"
    """Whether answers cut off at the token limit carry loss; mask is DAPO's overlong filtering (arXiv 2503.14476).
    Their rewards stay in the mean and the standard deviation of their group either way."""
    kl: Kl = Kl()
    """Penalty on leaving the policy the run started from."""
    entropy_bonus: Annotated[float, Field(ge=0)] = 0.0
    """Weight of the policy's entropy in nats, taken off the loss token by token and averaged like it; 0 in ScaleRL,
    0.01 in PPO (arXiv 1707.06347)."""
    epochs: Count = 1
    """Optimiser steps taken on each batch, every one over all of it; 1 in ScaleRL, 2 to 8 usual in PPO. Ratios stay
    against the log-probs of generation, or of the start of the round where the loss has a `max_weight`."""


# --- the parts of a scale -------------------------------------------------------------------------------------------


class Model(Frozen):
    """A Llama-architecture decoder made from scratch."""

    hidden: Annotated[int, Field(ge=8, multiple_of=8)] = 64
    """Width of the residual stream."""
    layers: Count = 4
    """Decoder blocks."""
    heads: Count = 4
    """Attention heads; hidden must be divisible by it into an even head size."""
    mlp: Annotated[int, Field(ge=8)] = 192
    """Width of the gated feed-forward layer."""

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        if self.hidden % (2 * self.heads):
            raise ValueError(f"hidden {self.hidden} must divide into {self.heads} heads of even size")
        return self


class KSmallest(Frozen):
    """Write the k smallest symbols of a list in order, after a draft (`scalerl.tasks.k_smallest`)."""

    type: Literal["k_smallest"] = "k_smallest"
    symbols: Annotated[int, Field(ge=8, le=36)] = 36
    """Size of the alphabet the lists are drawn from."""
    min_length: Annotated[int, Field(ge=2)] = 5
    """Shortest list."""
    max_length: Annotated[int, Field(ge=2)] = 12
    """Longest list; also the largest difficulty."""
    train_prompts: Count = 4096
    """Distinct training prompts."""
    validation_prompts: Count = 256
    """Distinct held-out prompts; none is a training prompt."""

    @model_validator(mode="after")
    def _lengths_ordered(self) -> Self:
        if not self.min_length <= self.max_length < self.symbols:
            raise ValueError(
                f"lengths must satisfy min_length <= max_length < symbols, "
                f"found {self.min_length}, {self.max_length}, {self.symbols}"
            )
        most = sum(n * math.perm(self.symbols, n) for n in range(self.min_length, self.max_length + 1))
        # One prompt in eight is held out; drawing the last few of those there are would take for ever.
        if self.train_prompts > 0.9 * most * 7 / 8 or self.validation_prompts > 0.9 * most / 8:
            raise ValueError(
                f"symbols and lengths give too few distinct prompts: {most} for {self.train_prompts} to train on and "
                f"{self.validation_prompts} held out; raise symbols or max_length"
            )
        return self


class WarmStart(Frozen):
    """Supervised steps on written demonstrations before RL; trained once per scale and seed, then shared."""

    steps: Annotated[int, Field(ge=0)] = 300
    """Optimiser steps."""
    batch: Count = 128
    """Demonstrations per step."""
    learning_rate: Positive = 2.5e-3
    """Peak AdamW learning rate, decayed linearly to a tenth."""
    noise: Fraction = 0.1
    """Chance that a symbol of a demonstrated thought is replaced by another."""


class BatchSize(Frozen):
    """Rollouts per optimiser step = prompts x generations (ScaleRL §2: 48 x 16)."""

    prompts: Count = 48
    """Groups in one optimiser step."""
    generations: Annotated[int, Field(ge=2)] = 16
    """Rollouts of one prompt."""


class Generation(Frozen):
    """Token limits and sampling (ScaleRL §2: 12k thinking + 2k answer)."""

    thinking: Count = 12288
    """Thinking budget in tokens, end-of-thinking phrase not counted."""
    answer: Count = 2048
    """Answer budget in tokens, end of sequence included; what follows the thinking part is truncated there."""
    temperature: Positive = 1.0
    """Sampling temperature; behaviour log-probs are those of the tempered distribution."""

    @property
    def max_tokens(self) -> int:
        """Most tokens one rollout may have: thinking, the end-of-thinking token, and the answer."""
        return self.thinking + 1 + self.answer


class Constant(Frozen):
    """The learning rate stays where warm-up left it (ScaleRL A.3)."""

    type: Literal["constant"] = "constant"


class Decay(Frozen):
    """What every falling schedule has to say."""

    horizon: Positive = 1.0
    """Where the decay ends. Part of what a run is: another horizon is another run, not the same one extended."""
    unit: Literal["compute", "steps"] = "compute"
    """What `horizon` counts: compute in the scale's unit, as a sweep's budget does, or steps, one for each batch."""
    final: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the peak that is left at the horizon and after."""


class Cosine(Decay):
    """Half a cosine from the peak to its final share (SGDR, arXiv 1608.03983), then flat."""

    type: Literal["cosine"] = "cosine"


class Linear(Decay):
    """A straight line from the peak to its final share, then flat."""

    type: Literal["linear"] = "linear"


Schedule = Annotated[Constant | Cosine | Linear, Field(discriminator="type")]


class Optimiser(Frozen):
    """AdamW with warm-up and a learning-rate schedule (ScaleRL A.3: constant)."""

    learning_rate: Positive = 5e-7
    """Peak, reached after warm-up."""
    warmup_steps: Annotated[int, Field(ge=0)] = 100
    """Steps of linear warm-up; it multiplies the schedule."""
    schedule: Schedule = Constant()
    """How the learning rate falls from its peak."""
    beta1: Annotated[float, Field(ge=0, lt=1)] = 0.9
    """First-moment decay."""
    beta2: Annotated[float, Field(ge=0, lt=1)] = 0.95
    """Second-moment decay."""
    eps: Positive = 1e-15
    """Added to the root of the second moment."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    """Decoupled weight decay."""
    max_grad_norm: Positive | None = 1.0
    """Gradients are scaled down to this norm; null leaves them as they are."""
    micro_batch_tokens: Count = 2048
    """Padded tokens in one forward and backward pass; gradients accumulate to those of the whole batch."""

    @model_validator(mode="after")
    def _decays_after_warm_up(self) -> Self:
        schedule = self.schedule
        if schedule.type != "constant" and schedule.unit == "steps" and schedule.horizon <= self.warmup_steps:
            raise ValueError(
                f"schedule.horizon {schedule.horizon:g} steps must lie after warm-up, which takes {self.warmup_steps}"
            )
        return self


class Device(Frozen):
    """The accelerator the virtual clock models; the defaults are one NVIDIA H100 SXM."""

    name: str = "H100 SXM"
    """Shown beside every modelled figure."""
    memory_gb_per_s: Positive = 3350.0
    """Memory bandwidth: a decode step reads the weights once."""
    tflops: Positive = 989.0
    """Peak BF16 rate, dense."""
    utilisation: Annotated[float, Field(gt=0, le=1)] = 0.4
    """Share of the peak rate that prefill and training reach."""
    link_gb_per_s: Positive = 50.0
    """Bandwidth of a weight push from trainers to generators."""


class Cluster(Frozen):
    """What the virtual clock plays: generators and trainers 4 to 1 (ScaleRL §2: 64 and 16 of 80 GPUs)."""

    generators: Count = 64
    """Devices that decode."""
    trainers: Count = 16
    """Devices that train."""
    slots: Count = 12
    """Sequences one generator decodes at a time."""
    device: Device = Device()
    """The modelled accelerator."""
    parameters_stand_for: Annotated[float, Field(ge=1)] = 1.0
    """Each model parameter is charged as this many, so that a tiny model plays a large one."""
    tokens_stand_for: Annotated[float, Field(ge=1)] = 1.0
    """Each token is charged as this many, so that a short answer plays a long one."""


class Evaluation(Frozen):
    """Held-out pass rate at a fixed compute interval (ScaleRL A.5: 1,000 prompts x 16, every 100 steps)."""

    every: Positive = 0.025
    """Interval in compute units; step 0 is always evaluated."""
    samples: Count = 16
    """Generations per held-out prompt."""


class Scale(Frozen):
    """Model, tasks, sizes, lengths, optimiser, cluster, evaluation and compute unit."""

    model: Model = Model()
    """The policy."""
    tasks: Annotated[tuple[KSmallest, ...], Field(min_length=1, max_length=1)] = (KSmallest(),)
    """What is trained on and evaluated."""
    warm_start: WarmStart = WarmStart()
    """The supervised start."""
    batch: BatchSize = BatchSize()
    """Rollouts per optimiser step."""
    generation: Generation = Generation()
    """Token limits and sampling."""
    optimiser: Optimiser = Optimiser()
    """AdamW settings."""
    cluster: Cluster = Cluster()
    """The modelled machine."""
    evaluation: Evaluation = Evaluation()
    """When and how the pass rate is measured."""
    compute_unit_gpu_hours: Positive = 16000.0
    """One unit of compute of a sweep's budget, in modelled GPU-hours."""
    threads: Count = 1
    """CPU threads of one run; results are bit-exact for one thread count on one kind of processor."""


class ResolvedRecipe(Recipe, Scale):
    """A recipe and a scale in one namespace: all that decides what a run computes, apart from its seed."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        in_flight = self.cluster.generators * self.cluster.slots
        k = self.off_policy.k
        if in_flight > (k + 1) * self.batch.prompts * self.batch.generations and self.off_policy.type == "pipeline":
            raise ValueError(
                f"cluster: {in_flight} decoding slots hold more than k + 1 = {k + 1} batches of "
                f"{self.batch.prompts} x {self.batch.generations} rollouts, so most slots could never be filled; "
                f"use at most {(k + 1) * self.batch.prompts * self.batch.generations}"
            )
        return self

    @model_validator(mode="after")
    def _loss_can_clip(self) -> Self:
        if self.loss.type == "cispo" or self.loss.max_weight is None or self.steps_of_a_round > 1:
            return self
        raise ValueError(
            f"loss.max_weight {self.loss.max_weight:g}: {self.loss.type} then clips pi_train / pi_start, which is 1 "
            f"when a round has one optimiser step, so its clip has no effect; give epochs of 2 or more, use "
            f"ppo_off_policy with k of 2 or more, or use loss cispo, whose gradient this would be"
        )

    @property
    def steps_of_a_round(self) -> int:
        """Optimiser steps from one choice of pi_start to the next; see `Grpo.max_weight`."""
        return self.epochs * (self.off_policy.k if self.off_policy.type == "ppo_off_policy" else 1)

    def canonical_json(self) -> str:
        """Every setting, defaults included, in one canonical line."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    def identity(self, seed: int) -> str:
        """12 hex digits that name the run: the hash of the resolved recipe and the seed."""
        return hashlib.sha256(f"{self.canonical_json()}#{seed}".encode()).hexdigest()[:12]
