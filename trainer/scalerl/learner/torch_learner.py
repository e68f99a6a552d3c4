"""The built-in learner: groups to a batch, advantages, and AdamW on the policy loss, on any engine."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from itertools import compress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from scalerl.durable import Part, part_of_rank, write_part
from scalerl.errors import Cancelled, Diverged
from scalerl.learner.batch import Batch, make_batch
from scalerl.learner.batch_loss import batch_loss, passes, scores_of
from scalerl.learner.critic import ValueLearner
from scalerl.learner.engine import (
    POLICY,
    EngineMaker,
    Scorer,
    Scoring,
    ScoringNetwork,
    moments_in_memory,
    take_kept,
)
from scalerl.learner.learner import Learner, Update, go_on
from scalerl.learner.learning_rate import learning_rate
from scalerl.learner.loss_scale import INITIAL_SCALE, LossScale
from scalerl.learner.saved_pieces import PieceFiles, save_pieces
from scalerl.learner.torch_engine import TorchEngine
from scalerl.model.outline import PolicyParts
from scalerl.model.policy import Policy, frozen_copy
from scalerl.objective.advantages import Rewards, advantages
from scalerl.objective.kl import token_kl
from scalerl.objective.running_statistics import RunningStatistics
from scalerl.objective.trained_groups import trained_groups
from scalerl.objective.turn_credit import credited_rewards, rewards_at_tokens, spread
from scalerl.recipe import ResolvedRecipe
from scalerl.rollout import Group
from scalerl.weights.hugging_face import Weights
from scalerl.weights.store import WeightStore, names_of_rank

MAX_BAD_STEPS = 5
"""Number of consecutive bad steps (loss or gradient not finite) after which the run stops."""
UPDATE_EVERY = 16
"""Steps between two measurements of the size of an update, which costs a pass over all weights."""
DECISIVE = ("loss", "grad_norm", "value_loss", "value_grad_norm")
"""Columns that must be finite for a step to be taken."""


def of_failed_step(measured: dict[str, Any]) -> dict[str, Any]:
    """Columns of a step with a value that is not finite: None for the decisive columns and for every such value."""

    def is_kept(name: str, value: float | None) -> bool:
        return name not in DECISIVE and value is not None and math.isfinite(value)

    return {name: value if is_kept(name, value) else None for name, value in measured.items()}


class TorchLearner(Learner):
    """AdamW on the policy loss; gradients of micro-batches add up to those of the whole batch.

    Frozen copies of the policy exist only if the recipe needs them: `reference`, the policy that the run started from,
    for a KL penalty; `start`, the weights at the start of the round, for truncated importance weights. A round of one
    batch needs no `start`, because the batch is scored before the weights change. A `critic` is trained on the same
    batches and steps whenever the policy does.
    """

    def __init__(
        self,
        policy: Policy,
        recipe: ResolvedRecipe,
        *,
        origin: Policy | None = None,
        engines: EngineMaker = TorchEngine,
        weights: Weights | None = None,
    ) -> None:
        """`origin` is a frozen copy of the run's first policy; by default the learner makes its own.

        By default everything is in this process. With sharded engines, `policy` is an outline, and `weights`
        are its weights under the names in a file.
        """
        self.recipe = recipe
        self.check_stop: Callable[[], None] = go_on
        self._is_first_epoch = True
        """True until the step at hand has changed the weights."""
        self.size = policy.size  # before an engine shards the policy
        self.version = 0
        self.bad_steps = 0
        self.statistics = RunningStatistics()
        self.loss_scale = LossScale(value=INITIAL_SCALE if recipe.parameters == "fp16" else 1.0)
        reference = (origin or policy.start_policy()) if recipe.kl.coefficient > 0 else None
        start = frozen_copy(policy) if recipe.needs_start and recipe.batches_of_a_round > 1 else None
        self.critic = (
            None if recipe.critic.type == "none" else ValueLearner(policy, recipe, recipe.critic, engines, weights)
        )
        source = None if weights is None else PolicyParts(policy, weights, POLICY)
        self.engine = engines(Scorer(policy), recipe.optimiser, source)
        self.ranks, self.trained = self.engine.ranks, ScoringNetwork(self.engine)
        self.device = self.trained.policy.device
        self.reference = None
        if reference is not None:
            given = None if weights is None else PolicyParts(reference, weights, POLICY)
            self.reference = ScoringNetwork(self.engine.frozen(Scorer(reference), given))
        self.start = None if start is None else ScoringNetwork(self.engine.frozen(Scorer(start), source))

    @property
    def policy(self) -> Policy:
        return self.trained.policy

    def weights(self) -> Weights:
        """The policy's weights under the names in its file; ranks publish theirs layer by layer instead."""
        return self.policy.exported_weights()

    def publish(self, store: WeightStore, publication: int) -> None:
        """Publish each rank's layer groups; all ranks gather the weights, layer by layer."""
        ranks, is_gathered = self.ranks, self.engine.moments() is None
        own: dict[str, Tensor] = {}
        for layer in self.trained.exported_layers():
            for name in names_of_rank(layer, ranks.rank, ranks.world):
                own[name] = layer[name].to("cpu", copy=True) if is_gathered else layer[name]
        store.publish(publication, self.version, own, rank=ranks.rank, ranks=ranks.world)

    def save_model(self, folder: Path) -> None:
        self.policy.save_weights(folder)

    def step(self, groups: Sequence[Group], compute_gpu_hours: float | None = None) -> Update:
        """Train on `groups`; the weights stay unchanged without survivors or if a value is not finite.

        Raises Diverged after MAX_BAD_STEPS bad steps in a row. If `check_stop` raises, the step can be taken again.
        """
        recipe, statistics = self.recipe, self.statistics
        compute = None if compute_gpu_hours is None else compute_gpu_hours / recipe.compute_unit_gpu_hours
        rate = learning_rate(recipe.optimiser, step=self.version, compute=compute)
        survivors = list(compress(groups, trained_groups(recipe.zero_variance, groups)))
        metrics = {"loss": 0.0, "grad_norm": 0.0, "learning_rate": rate, "survivors": len(survivors), "skipped": True}
        update = Update(trained_tokens=0, context_tokens=0, metrics=metrics)
        self._start_round()
        if survivors:
            batch = make_batch(survivors, mask_truncated=recipe.truncated == "mask").to(self.device)
            if batch.num_own:
                try:
                    update = self._train(survivors, batch, rate, metrics)
                except Cancelled:
                    self.statistics = statistics
                    raise
        self.version += 1
        return update

    def _train(self, survivors: list[Group], batch: Batch, rate: float, metrics: dict[str, Any]) -> Update:
        """Score the batch, assign advantages to its tokens and optimise; adds its columns to `metrics`."""
        batch, advantage_BT = self.assign_credit(survivors, self.with_scores(batch))
        columns, epochs = self._optimise(batch, advantage_BT, rate)
        networks = 1 if self.critic is None else 2
        copies = (self.reference is not None) + self.recipe.needs_start + networks - 1
        tokens, context = batch.work()
        return Update(
            trained_tokens=networks * epochs * tokens,
            context_tokens=networks * epochs * context,
            scored_tokens=copies * tokens,
            scored_context_tokens=copies * context,
            metrics=metrics | columns,
        )

    def _start_round(self) -> None:
        """At the start of a round, keep the current weights as pi_start; a round is the batches from one frozen
        policy."""
        if self.version % self.recipe.batches_of_a_round:
            return
        if self.start is not None:
            self.start.network.copy_from(self.engine)
        if self.critic is not None:
            self.critic.start_round()

    def with_scores(self, batch: Batch) -> Batch:
        """The batch with log-probabilities under the frozen policies that the recipe needs, and a critic's values."""
        return replace(
            batch,
            reference_BT=None if self.reference is None else self.logprobs(self.reference, batch),
            start_BT=self.logprobs(self.start or self.trained, batch) if self.recipe.needs_start else None,
            values_BT=None if self.critic is None else self.critic.values(batch),
        )

    @torch.no_grad()
    def logprobs(self, policy: Scoring, batch: Batch) -> Tensor:
        """Log-probabilities of the batch's tokens under `policy`, [B, T], computed in the micro-batches of training."""
        result_BT = torch.zeros_like(batch.behaviour_BT)
        for rows, counts, _ in passes(batch, self.recipe, self.ranks):
            self.check_stop()
            part = batch.part(rows)
            part_BT = scores_of(policy, part, self.recipe).logprobs_BT
            if counts:
                result_BT[rows.to(result_BT.device, non_blocking=True), : part.tokens_BT.shape[1]] = part_BT
        return self.ranks.summed(result_BT)

    def assign_credit(self, survivors: list[Group], batch: Batch) -> tuple[Batch, Tensor]:
        """The batch and its advantages, and with a critic its returns; [B, 1], or [B, T] with a critic or credit by
        turn."""
        if self.critic is None:
            return batch, self.advantages(survivors, batch)
        rewards_BT = rewards_at_tokens(survivors, batch.host_mask_BT).to(batch.mask_BT.device, non_blocking=True)
        if self.recipe.kl.where == "reward":
            rewards_BT = rewards_BT - self._penalty(batch)
        return self.critic.assign_credit(batch, rewards_BT)

    def _penalty(self, batch: Batch) -> Tensor:
        """KL penalty in the reward at each token, [B, T] in float64."""
        kl = self.recipe.kl
        assert batch.reference_BT is not None
        kl_BT = token_kl(kl.estimator, batch.behaviour_BT, batch.reference_BT, batch.mask_BT)
        return kl.coefficient * kl_BT.double()

    def advantages(self, survivors: list[Group], batch: Batch) -> Tensor:
        """Advantages, [B, 1], or [B, T] with credit by turn; updates the running statistics.

        A KL penalty in the reward is subtracted first.

        Runs on the host, which waits only for the penalty.
        """
        penalty_BT = self._penalty(batch).cpu() if self.recipe.kl.where == "reward" else None
        given, credited = Rewards.of([group.rewards for group in survivors]), None
        samples_R = torch.tensor([len(one.samples) for group in survivors for one in group.rollouts], device="cpu")
        if any(group.is_credited_by_turn for group in survivors):
            given, credited = credited_rewards(survivors, penalty_BT)
        elif penalty_BT is not None:
            of_rollouts = [one.sum() for one in penalty_BT.sum(dim=1).split(samples_R.tolist())]
            given.rewards_PG[given.mask_PG] -= torch.stack(of_rollouts)
        advantage_PG, statistics = advantages(given, self.recipe.advantage, self.statistics)
        # One NaN would stay in running statistics for ever; this step is skipped for it, the next one need not be.
        if advantage_PG.isfinite().all():
            self.statistics = statistics
        if credited is not None:
            return spread(advantage_PG, credited, batch.host_mask_BT).float()
        return advantage_PG[given.mask_PG].repeat_interleave(samples_R).unsqueeze(1).float()

    def _optimise(self, batch: Batch, advantage_BT: Tensor, rate: float) -> tuple[dict[str, Any], int]:
        """Optimise until an epoch takes no step or all are done; returns the last one's columns and the number done."""
        self._is_first_epoch = True
        epoch, columns = 1, self._optimise_once(batch, advantage_BT, rate)
        while epoch < self.recipe.epochs and not columns["skipped"]:
            self._is_first_epoch = False
            epoch, columns = epoch + 1, self._optimise_once(batch, advantage_BT, rate)
        return columns, epoch

    def _optimise_once(self, batch: Batch, advantage_BT: Tensor, rate: float) -> dict[str, Any]:
        """Pass once over the batch, and take an AdamW step if everything was finite; returns columns of a train row.

        If only the scaled FP16 gradient overflowed, the scale is halved, and the step does not count as bad.
        """
        scale = self.loss_scale
        measured = self._measure_gradients(batch, advantage_BT)
        overflow = not math.isfinite(measured["grad_norm"])
        if self.recipe.parameters == "fp16":
            self.loss_scale = scale.after(overflow=overflow)
            if overflow and math.isfinite(measured["loss"]) and scale.value > 1:
                self._skip()
                return {**measured, "grad_norm": None, "skipped": True}
        if not all(math.isfinite(measured[name]) for name in DECISIVE if name in measured):
            self._skip()
            self._count_bad_step(measured)
            return {**of_failed_step(measured), "skipped": True}
        self.engine.step(rate)
        if self.critic is not None:
            self.critic.step(rate)
        self.bad_steps = 0
        update = self.engine.update_size() if (self.version + 1) % UPDATE_EVERY == 0 else None
        return {**measured, **({} if update is None else {"update": update}), "skipped": False}

    def _skip(self) -> None:
        self.engine.skip()
        if self.critic is not None:
            self.critic.engine.skip()

    def _measure_gradients(self, batch: Batch, advantage_BT: Tensor) -> dict[str, Any]:
        """Compute loss and gradient of one pass, including the critic's; gradients are unscaled and clipped."""
        self.engine.zero_grad()
        measured: dict[str, Any] = dict(self.accumulate(batch, advantage_BT))
        self.loss_scale.unscale(self.engine.gradients())
        measured["grad_norm"] = self.engine.norm(self.recipe.optimiser.max_grad_norm)
        if self.critic is not None:
            measured |= self.critic.accumulate(batch)
            measured["value_grad_norm"] = self.critic.engine.norm(self.recipe.optimiser.max_grad_norm)
        if self.recipe.parameters == "fp16":
            measured["loss_scale"] = self.loss_scale.value
        return measured

    def accumulate(self, batch: Batch, advantage_BT: Tensor) -> dict[str, float]:
        """Add the scaled gradient of the batch; returns the columns of `batch_loss`."""

        def backward(loss: Tensor, last: bool) -> None:
            if self._is_first_epoch:
                self.check_stop()
            self.engine.backward(self.loss_scale.scaled(loss), last=last)

        return batch_loss(
            self.trained,
            batch,
            advantage_BT,
            self.recipe,
            backward=backward,
            ranks=self.ranks,
            version=self.version,
        )

    def _count_bad_step(self, measured: dict[str, Any]) -> None:
        """Count a bad step; raises Diverged after MAX_BAD_STEPS in a row."""
        self.bad_steps += 1
        if self.bad_steps >= MAX_BAD_STEPS:
            found = ", ".join(f"{name} {measured[name]}" for name in DECISIVE if name in measured)
            raise Diverged(f"{found}: {self.bad_steps} bad steps in a row; use a smaller optimiser.learning_rate")

    def state_dict(self) -> dict[str, Any]:
        """Counters, running statistics, weights (including frozen copies), optimiser and critic.

        Only counters and statistics if ranks write their own parts (`write_kept`)."""
        counters = {
            "version": self.version,
            "bad_steps": self.bad_steps,
            "loss_scale": asdict(self.loss_scale),
            "statistics": asdict(self.statistics),
            "critic": None if self.critic is None else self.critic.state_dict(),
        }
        moments = self.engine.moments()
        if moments is None:
            return counters | {"steps": self.engine.steps()}
        frozen = {name: one.policy.exported_weights() for name, one in self._frozen_policies().items()}
        return {"policy": self.weights(), "adam": moments, **counters, **frozen}

    def write_kept(self, folder: Path) -> list[Part]:
        """Write each rank's part to a file; all ranks call this with the same folder."""
        if self.engine.moments() is not None:
            return []
        networks = {"policy": self.engine.kept()}
        networks |= {name: one.network.kept() for name, one in self._frozen_policies().items()}
        networks |= {} if self.critic is None else self.critic.kept()
        name = part_of_rank(self.ranks.rank, self.ranks.world)
        part = write_part(folder, name, ".safetensors", lambda path: save_pieces(path, networks))
        return self.ranks.gathered(part)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly from a `state_dict`, even on another engine or number of ranks.

        `state["kept"]` are the files that ranks wrote for it, if any.
        """
        self.version, self.bad_steps = state["version"], state["bad_steps"]
        self.statistics = RunningStatistics(**state["statistics"])
        self.loss_scale = LossScale(**state["loss_scale"])
        if "kept" not in state:
            self.trained.take(state["policy"])
            self.engine.take_moments(*moments_in_memory(state["adam"], self.engine.network))
            if self.critic is not None:
                self.critic.load_state_dict(state["critic"])
            for name, frozen in self._frozen_policies().items():
                frozen.take(state[name])
            return
        files = PieceFiles([Path(path) for path in state["kept"]])
        take_kept(self.engine, "policy", files, state["steps"])
        if self.critic is not None:
            self.critic.load_state_dict(state["critic"], files)
        for name, frozen in self._frozen_policies().items():
            frozen.network.fill(files.of(name, "weights"))

    def _frozen_policies(self) -> dict[str, ScoringNetwork]:
        """The frozen policies that a checkpoint must hold, by name."""
        # A resumed run reads the reference from the folder of the model that it started from.
        return {} if self.start is None else {"start": self.start}
