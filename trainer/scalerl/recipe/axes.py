"""The axes of a recipe: every choice of the algorithm, with ScaleRL's values as defaults (ScaleRL §2, §3.2)."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scalerl.frozen import Count, Frozen, Positive, Unit


class Pipeline(Frozen):
    """PipelineRL-k (Piche et al. 2025; ScaleRL §3.1): generators never stop, new weights arrive mid-sequence."""

    type: Literal["pipeline"] = "pipeline"
    k: Annotated[Count, Unit("optimiser steps")] = 8
    """The trainer waits when it is this many optimiser steps ahead of the oldest rollout not yet trained on."""


class PpoOffPolicy(Frozen):
    """PPO-off-policy-k (ScaleRL §2): generate k batches with one frozen policy, then take k optimiser steps on them."""

    type: Literal["ppo_off_policy"] = "ppo_off_policy"
    k: Annotated[Count, Unit("optimiser steps")] = 8
    """Optimiser steps taken on what one frozen policy generated."""


class Cispo(Frozen):
    """Truncated importance-sampling REINFORCE (MiniMax-M1, arXiv 2506.13585)."""

    type: Literal["cispo"] = "cispo"
    min_ratio: Annotated[float, Field(ge=0), Unit("ratio")] = 0.0
    """Importance weights below this are raised to it; an absolute ratio, not 1 - epsilon."""
    max_ratio: Annotated[Positive, Unit("ratio")] = 5.0
    """Importance weights above this are truncated, their gradient is kept; an absolute ratio, not 1 + epsilon."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_ratio >= self.max_ratio:
            raise ValueError(f"min_ratio {self.min_ratio} must lie below max_ratio {self.max_ratio}")
        return self


class Grpo(Frozen):
    """Symmetric PPO clipping (DeepSeekMath, arXiv 2402.03300)."""

    type: Literal["grpo"] = "grpo"
    clip: Annotated[float, Field(gt=0, lt=1), Unit("ratio")] = 0.2
    """The token ratio is clipped to [1 - clip, 1 + clip]."""
    max_weight: Annotated[Positive, Unit("ratio")] | None = None
    """Cap of the truncated importance weight pi_start / pi_gen of each token (3 in TRL). The clipped ratio is then
    pi_train / pi_start; with null it is pi_train / pi_gen, and no weight is applied. pi_start is the policy at the
    start of the round: under ppo_off_policy the one that generated the batch, otherwise the one before the first step
    on it."""


class Dapo(Frozen):
    """Asymmetric PPO clipping (DAPO, arXiv 2503.14476)."""

    type: Literal["dapo"] = "dapo"
    clip_low: Annotated[float, Field(gt=0, lt=1), Unit("ratio")] = 0.2
    """The token ratio is clipped from below at 1 - clip_low."""
    clip_high: Annotated[Positive, Unit("ratio")] = 0.26
    """The token ratio is clipped from above at 1 + clip_high."""
    max_weight: Annotated[Positive, Unit("ratio")] | None = None
    """Cap of the truncated importance weight pi_start / pi_gen of each token, as in `grpo`; null for none."""


class Gspo(Frozen):
    """Clipping of the length-normalised sequence ratio (arXiv 2507.18071)."""

    type: Literal["gspo"] = "gspo"
    clip_low: Annotated[float, Field(gt=0, lt=1), Unit("ratio")] = 4e-3
    """The sequence ratio is clipped from below at 1 - clip_low."""
    clip_high: Annotated[Positive, Unit("ratio")] = 5e-3
    """The sequence ratio is clipped from above at 1 + clip_high."""
    max_weight: Annotated[Positive, Unit("ratio")] | None = None
    """Cap of the truncated importance weight, as in `grpo`, here the geometric mean over the sequence like the ratio
    itself; null for none."""


class NoPositiveResampling(Frozen):
    """A prompt the policy has mastered is left out of all later epochs (ScaleRL §3.2)."""

    type: Literal["no_positive_resampling"] = "no_positive_resampling"
    threshold: Annotated[float, Field(gt=0, le=1), Unit("pass rate")] = 0.9
    """A prompt whose mean pass rate so far reaches this is retired."""
    min_groups: Annotated[Count, Unit("groups")] = 1
    """Groups of a prompt that must be seen before it can be retired."""
    when_exhausted: Literal["stop", "restart"] = "stop"
    """What happens when every training prompt is retired: stop ends the run with this reason, because the paper
    excludes prompts for good; restart forgets all pass rates, and every prompt comes back. In a mix, a task without
    prompts is drawn from no more, and the others go on."""


class Uniform(Frozen):
    """Every prompt once per epoch, in a fresh random order."""

    type: Literal["uniform"] = "uniform"


class Ordered(Frozen):
    """Easy prompts first: draws come from the easiest share of the prompts, and the share grows until it includes
    all."""

    type: Literal["ordered"] = "ordered"
    by: Literal["difficulty", "length"] = "difficulty"
    """What makes a prompt easy: a low difficulty, as its task states it, or few tokens."""
    pace: Literal["linear", "exponential"] = "linear"
    """How the share grows with the draws: start + (1 - start) t (arXiv 1903.09848), or start^(1 - t)."""
    start: Annotated[float, Field(gt=0, lt=1), Unit("share of prompts")] = 0.2
    """Share of the prompts that the first draws come from."""
    epochs: Annotated[Positive, Unit("epochs")] = 1.0
    """All prompts are included after this many draws per prompt."""


class Interruption(Frozen):
    """Thinking is cut by a forced end-of-thinking phrase, then the model answers (ScaleRL A.10)."""

    type: Literal["interruption"] = "interruption"
    earliest: Annotated[float, Field(gt=0, le=1), Unit("share of thinking")] = 10 / 12
    """The cut is drawn uniformly from [earliest, 1] of the thinking budget."""
    phrase: str | None = None
    """Text that is forced at the cut; it must end in `</think>`. null takes the tokenizer's own: "Okay, time is up. Let
    me stop thinking and formulate a final answer now. </think>" for text, `</think>` alone for symbols. Its tokens do
    not count towards the budget."""

    @model_validator(mode="after")
    def _ends_thinking(self) -> Self:
        if self.phrase is not None and not self.phrase.endswith("</think>"):
            raise ValueError(f"phrase {self.phrase!r} must end in '</think>', or the model would keep thinking")
        if self.phrase is not None and self.phrase.count("</think>") > 1:
            raise ValueError(f"phrase {self.phrase!r} has '</think>' twice; the answer begins after the first one")
        return self


class LengthPenalty(Frozen):
    """DAPO's soft length penalty on right answers: clip((L_max - |y|) / L_cache - 1, -1, 0) (arXiv 2503.14476)."""

    type: Literal["penalty"] = "penalty"
    cache: Annotated[float, Field(gt=0, le=1), Unit("share of the token limit")] = 1 / 7
    """L_cache as a share of L_max, the most tokens a rollout may have; the paper's 2k of 14k."""


class NoLengthControl(Frozen):
    """Answers that reach the token limit are truncated and nothing else happens."""

    type: Literal["none"] = "none"


class Kl(Frozen):
    """KL penalty towards a frozen copy of the policy that the run started from (PPO-RLHF, DeepSeekMath).

    With r = pi_ref / pi of a sampled token (Schulman 2020, joschu.net/blog/kl-approx): k1 = -log r, k2 = (log r)^2 / 2,
    k3 = r - 1 - log r.
    """

    coefficient: Annotated[float, Field(ge=0), Unit("reward or loss per nat")] = 0.0
    """Weight of the penalty; 0 switches it off, and no reference model is kept. DeepSeekMath uses 0.04, ScaleRL
    none."""
    estimator: Literal["k1", "k2", "k3"] = "k3"
    """Estimate of KL(pi || pi_ref) from the sampled token. In the loss and on-policy, the gradient of k1 is only noise
    around 0, the gradient of k2 is that of KL(pi || pi_ref), and the gradient of k3 is that of KL(pi_ref || pi) (arXiv
    2506.09477)."""
    where: Literal["loss", "reward"] = "loss"
    """loss: the penalty of each token is added to the policy loss and averaged with it; pi is the trained policy
    (DeepSeekMath, arXiv 2402.03300). reward: the sum over the answer is subtracted from the reward; pi is the generator
    (arXiv 2203.02155). Whether a prompt has variance is decided before the subtraction."""

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


class ValueNetwork(Frozen):
    """PPO's value network (arXiv 1707.06347) instead of the mean of a group: a copy of the policy's body with a scalar
    head, trained on the same batches with its own AdamW.

    Its loss has no coefficient: it shares no weights with the policy, and a constant factor does not change AdamW's
    steps.
    """

    type: Literal["value_network"] = "value_network"
    gamma: Annotated[float, Field(gt=0, le=1), Unit("per token")] = 1.0
    """Discount from one of the policy's own tokens to the next."""
    gae_lambda: Annotated[float, Field(ge=0, le=1)] = 0.95
    """Lambda of GAE (arXiv 1506.02438): 0 trusts the next value, 1 only the reward at the end; 0.95 in PPO."""
    value_clip: Annotated[Positive, Unit("reward")] | None = 0.5
    """How far a value may move from that at the start of the round before the loss stops rewarding the move; null for
    no clip. In units of reward: right and wrong differ by 2."""
    learning_rate: Positive | None = None
    """Peak learning rate of the value network, under the policy's warm-up and schedule; null takes the policy's."""
    parameters: Literal["fp32", "bf16"] = "fp32"
    """Precision of the value network: its weights, activations and gradients, and the moments of its AdamW."""


class NoCritic(Frozen):
    """Each reward is centred on the mean of its prompt's rollouts, and all tokens of a rollout share one advantage."""

    type: Literal["none"] = "none"


OffPolicy = Annotated[Pipeline | PpoOffPolicy, Field(discriminator="type")]
Loss = Annotated[Cispo | Grpo | Dapo | Gspo, Field(discriminator="type")]
Critic = Annotated[ValueNetwork | NoCritic, Field(discriminator="type")]
Curriculum = Annotated[NoPositiveResampling | Uniform | Ordered, Field(discriminator="type")]
LengthControl = Annotated[Interruption | LengthPenalty | NoLengthControl, Field(discriminator="type")]


class Recipe(Frozen):
    """The algorithm's choices; the defaults are ScaleRL's (§3, §4)."""

    off_policy: OffPolicy = Pipeline()
    """How far generators may lag behind the trainer, and how weights reach them."""
    kv: Literal["keep", "recompute"] = "keep"
    """What becomes of the keys and values of unfinished rollouts when new weights arrive: keep leaves them as the old
    weights wrote them (PipelineRL), recompute has the new weights read all tokens so far again, which takes time."""
    loss: Loss = Cispo()
    """Per-token policy objective."""
    aggregation: Literal["prompt", "sample", "token", "sum"] = "prompt"
    """How per-token losses become one number: mean of prompt means, mean of sample means, mean over all tokens, or
    their sum, whose gradient norm grows with the tokens of the batch."""
    critic: Critic = NoCritic()
    """Baseline of an answer's reward: the mean over its prompt's rollouts, or a value network."""
    advantage: Literal["batch", "prompt", "none", "running"] = "batch"
    """Which standard deviation divides the centred rewards: that of the batch's advantages, that of the prompt's
    rewards, none, or that of all advantages since the run began. With a critic, batch centres and divides the
    advantages of all tokens, none leaves them unchanged, and prompt and running are refused."""
    logits: Literal["fp32", "bf16"] = "fp32"
    """Precision of the language-model head, in generator and trainer alike."""
    parameters: Literal["fp32", "mixed", "bf16", "fp16"] = "fp32"
    """Precision of everything but the head, in generator and trainer alike; norms, softmax and residual stream are
    always FP32. mixed: matrix products in BF16, weights and optimiser in FP32. bf16: products, weights, gradients and
    moments in BF16, with no FP32 copy. fp16: as mixed, but with products in FP16 and dynamic loss scaling."""
    zero_variance: Literal["drop", "keep", "resample"] = "drop"
    """What happens to prompts whose generations all got the same reward: drop removes them from the loss and its
    averages, keep leaves them in, resample discards them as soon as they are generated and draws others until the batch
    is full (DAPO, arXiv 2503.14476), at most ten batches' worth of prompts per batch."""
    curriculum: Curriculum = NoPositiveResampling()
    """Which training prompts are drawn."""
    length_control: LengthControl = Interruption()
    """What keeps answers inside the token limit."""
    truncated: Literal["keep", "mask"] = "keep"
    """Whether answers cut off at the token limit count in the loss; mask is DAPO's overlong filtering (arXiv
    2503.14476). Either way their rewards count in the mean and the standard deviation of their group."""
    kl: Kl = Kl()
    """Penalty on moving away from the policy that the run started from."""
    entropy_bonus: Annotated[float, Field(ge=0), Unit("loss per nat")] = 0.0
    """Weight of the policy's entropy in nats, which is subtracted from the loss of each token; 0 in ScaleRL, 0.01 in
    PPO (arXiv 1707.06347)."""
    epochs: Annotated[Count, Unit("steps per batch")] = 1
    """Optimiser steps per batch, each over the whole batch; 1 in ScaleRL, usually 2 to 8 in PPO. Ratios are always
    taken against the log-probs of generation, or against those at the start of the round if the loss has a
    `max_weight`."""

    @model_validator(mode="after")
    def _normalises_what_there_is(self) -> Self:
        if self.critic.type != "none" and self.advantage in ("prompt", "running"):
            raise ValueError(
                f"advantage {self.advantage!r} centres rewards on their prompt's mean, which a critic replaces; with a "
                f"critic use 'batch' or 'none', or use critic type 'none'"
            )
        return self
