"""What may stand beside the policy loss, through the learner: KL penalty, entropy bonus, truncated weights, masks."""

import itertools
import math
import random
from dataclasses import replace

import pytest
import torch
from trainer.learner_cases import assert_same_gradients, gradients, random_groups
from trainer.reference_loss import reference
from trainer.tiny import random_policy, tiny_recipe

from scalerl.learner.batch import make_batch
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model.packing import padded_micro_batches
from scalerl.model.policy import frozen_copy

KLS = [
    {"coefficient": 0.3, "estimator": estimator, "where": where}
    for estimator, where in itertools.product(["k1", "k2", "k3"], ["loss", "reward"])
]
GSPO = {"type": "gspo", "clip_low": 0.03, "clip_high": 0.05}
WEIGHTED = [
    {"loss": {"type": "dapo"}, "correction": {"type": "truncate", "high": 1.1}},
    {"loss": {"type": "grpo"}, "correction": {"type": "truncate", "low": 0.8, "high": 1.1}},
    {"loss": GSPO, "correction": {"type": "truncate", "of": "geometric", "high": 1.05}},
    {"loss": {"type": "cispo"}, "correction": {"type": "truncate", "of": "sequence", "high": 1.3}},
    {"loss": {"type": "dapo"}, "correction": {"type": "mask", "policy": "start", "low": 0.8, "high": 1.2}},
    {"loss": GSPO, "correction": {"type": "mask", "policy": "start", "of": "sequence", "high": 1.5}},
]
CORRECTED = [
    {"correction": {"type": "mask", "low": 0.8, "high": 1.2}},
    {"loss": {"type": "dapo"}, "correction": {"type": "mask", "of": "sequence", "low": 0.5, "high": 2.0}},
    {"loss": GSPO, "correction": {"type": "mask", "of": "geometric", "low": 0.9, "high": None}},
    {"loss": {"type": "grpo"}, "correction": {"type": "trust_region", "low": 2e-3, "high": 2e-3}},
    {"correction": {"type": "trust_region", "of": "kl", "low": 1e-4, "high": 1e-4}},
]
ROUNDS = {"off_policy": {"type": "ppo_off_policy", "k": 2}}
"""Rounds of two steps, so that a ratio to the start of the round can move."""

LOSSES = [{"type": "cispo", "min_ratio": 0.3, "max_ratio": 1.5}, {"type": "dapo"}, {"type": "grpo"}, GSPO]
PLAIN = {
    f"{loss['type']} by {aggregation}, {rule}": {"loss": loss, "aggregation": aggregation, "zero_variance": rule}
    for loss, aggregation, rule in itertools.product(LOSSES, ["prompt", "sample", "token"], ["drop", "keep"])
}
CASES = {
    **{f"{kl['estimator']} in the {kl['where']}": {"kl": kl} for kl in KLS},
    **{f"weighted {number}": {**settings, **ROUNDS} for number, settings in enumerate(WEIGHTED)},
    **{f"corrected {number}": settings for number, settings in enumerate(CORRECTED)},
    "sum": {"aggregation": "sum"},
    "leave one out": {"advantage": "leave_one_out"},
    "grpo of two sides": {"loss": {"type": "grpo", "clip": 0.05, "delta": 1.2}},
    "running": {"advantage": "running"},
    "truncated masked": {"truncated": "mask"},
    "all at once": {
        **WEIGHTED[0],
        **ROUNDS,
        "kl": KLS[1],
        "aggregation": "sample",
        "advantage": "running",
        "truncated": "mask",
        "zero_variance": "keep",
    },
}


def nearby(policy, recipe, seed):
    """Another policy, whose log-probs differ by some tenths."""
    other = random_policy(recipe)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.02)
    return other


def case(settings, micro_batch_tokens=10**6):
    """A learner whose frozen policies differ from its own, the groups it keeps, and the batch scored by it."""
    recipe = tiny_recipe(**settings, optimiser={"micro_batch_tokens": micro_batch_tokens})
    policy = random_policy(recipe)
    groups = random_groups(policy)
    rng = random.Random(3)
    groups = [
        group if number == 0 else cut_off(group, {rng.randrange(len(group.rollouts))})
        for number, group in enumerate(groups)
    ]
    learner = TorchLearner(policy, recipe)
    for seed, frozen in enumerate([learner.reference, learner.start]):
        if frozen is not None:
            frozen.policy.load_state_dict(nearby(policy, recipe, seed).state_dict())
    kept = [group for group in groups if recipe.zero_variance == "keep" or len(set(group.rewards)) > 1]
    batch = learner.with_scores(make_batch(kept, mask_truncated=recipe.truncated == "mask"))
    return learner, groups, kept, batch


def cut_off(group, places):
    """The group with the rollouts at `places` marked as truncated."""
    rollouts = tuple(
        replace(rollout, truncated=True) if i in places else rollout for i, rollout in enumerate(group.rollouts)
    )
    return replace(group, rollouts=rollouts)


def answers(policy, groups):
    """Log-probs of each rollout's answer under `policy`, one unpadded sequence at a time."""
    return [
        policy.score(torch.tensor([[*r.prompt.tokens, *r.tokens.tolist()]]), 1.0).logprobs_BT[0, len(r.prompt.tokens) :]
        for group in groups
        for r in group.rollouts
    ]


@pytest.mark.parametrize("name", [*PLAIN, *CASES])
def test_loss_and_parameter_gradients_equal_the_loops(name):
    learner, groups, kept, batch = case((PLAIN | CASES)[name])
    recipe, policy = learner.recipe, learner.policy
    earlier = [0.5, -0.5, 2.0]
    if recipe.advantage == "running":
        learner.statistics = learner.statistics.including(torch.tensor(earlier))
    metrics = learner.accumulate(batch, learner.advantages(kept, batch))
    ours = gradients(policy)

    policy.zero_grad()
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    rows = answers(policy, groups)
    references = answers(learner.reference.policy if learner.reference else policy, groups)
    starts = answers(learner.start.policy if learner.start else policy, groups)
    masked = recipe.truncated == "mask"
    samples = [
        [
            (float(x), float(y), not forced and not (masked and r.truncated), float(z), float(start))
            for x, y, forced, z, start in zip(
                row.detach(), r.logprobs, r.forced, ref_row.detach(), start_row.detach(), strict=True
            )
        ]
        for r, row, ref_row, start_row in zip(rollouts, rows, references, starts, strict=True)
    ]
    # Prompts without variance weigh in the loss, but what is seen of tokens is of those that move something.
    moves = str(recipe.zero_variance) if recipe.kl.coefficient else "drop"
    expected, moving = (
        reference(
            [samples[i : i + 3] for i in range(0, len(samples), 3)],
            [list(group.rewards) for group in groups],
            loss=recipe.loss.type,
            bounds=recipe.loss.model_dump(exclude={"type"}),
            correction=recipe.correction.model_dump(),
            aggregation=str(recipe.aggregation),
            normalisation=str(recipe.advantage),
            zero_variance=rule,
            kl=recipe.kl.model_dump() if recipe.kl.coefficient else None,
            earlier=earlier,
        )
        for rule in (str(recipe.zero_variance), moves)
    )
    slopes = [slope for prompt in expected.gradient for slope in prompt]
    sum((row * torch.tensor(slope)).sum() for row, slope in zip(rows, slopes, strict=True)).backward()

    assert metrics["loss"] == pytest.approx(expected.loss, rel=1e-5, abs=1e-6)
    assert metrics["ratio_clipped"] == pytest.approx(moving.num_clipped / moving.num_tokens, abs=1e-12)
    if recipe.correction.type != "none":
        for side in ("below", "above"):
            expected_share = moving.num_corrected[side] / moving.num_tokens
            assert metrics[f"corrected_{side}"] == pytest.approx(expected_share, abs=1e-12)
    assert_same_gradients(ours, gradients(policy))


def test_the_cases_differ_from_the_plain_objective_and_clip_some_tokens():
    plain, _, kept, batch = case({})
    plain.accumulate(batch, plain.advantages(kept, batch))
    base = gradients(plain.policy)
    for name, settings in CASES.items():
        learner, _, kept, batch = case(settings)
        metrics = learner.accumulate(batch, learner.advantages(kept, batch))
        ours = gradients(learner.policy)
        difference = math.sqrt(sum(float((ours[x] - base[x]).square().sum()) for x in base))
        # The first running batch is the batch itself.
        assert (difference > 1e-3) == (name != "running"), name
        if "correction" in settings:
            assert 0 < metrics["corrected_below"] + metrics["corrected_above"] < 1, name


@pytest.mark.parametrize("name", ["k3 in the loss", "weighted 1", "corrected 2", "all at once", "entropy bonus"])
def test_micro_batches_add_up_to_the_whole_batch(name):
    settings = CASES.get(name, {"entropy_bonus": 0.1})
    results = []
    for micro_batch_tokens in (1, 37, 10**6):
        learner, _, kept, batch = case(settings, micro_batch_tokens)
        metrics = learner.accumulate(batch, learner.advantages(kept, batch))
        results.append(
            (len(padded_micro_batches(batch.length_B, micro_batch_tokens)), metrics, gradients(learner.policy))
        )
    *split, (one, whole_metrics, whole) = results
    assert one == 1
    assert all(num_passes > 1 for num_passes, _, _ in split)
    for _, metrics, gradient in split:
        assert_same_gradients(gradient, whole)
        assert metrics == pytest.approx(whole_metrics, rel=1e-5, abs=1e-6)


SLOPES = ["k1 in the loss", "k2 in the loss", "k3 in the loss", "weighted 0", "weighted 4", "corrected 1"]


@pytest.mark.parametrize("name", SLOPES)
def test_the_loops_gradient_is_the_slope_of_the_loops_loss(name):
    settings = CASES[name]
    rng = random.Random(1)
    logprobs = [-rng.expovariate(1) for _ in range(4)]
    sample = [(x, x + rng.gauss(0, 0.2), True, x + rng.gauss(0, 0.3), x + rng.gauss(0, 0.2)) for x in logprobs]
    other = [(-1.0, -1.0, True, -1.0, -1.0)]
    bounds = {key: x for key, x in settings.get("loss", {"type": "grpo", "clip": 0.2}).items() if key != "type"}
    if settings.get("loss"):
        bounds = {"clip_low": 0.2, "clip_high": 0.26, **bounds}
    rules = {
        "loss": settings.get("loss", {"type": "grpo"})["type"], "bounds": bounds, "kl": settings.get("kl"),
        "aggregation": "prompt", "normalisation": "none", "zero_variance": "drop",
        "correction": tiny_recipe(**settings).correction.model_dump(),
    }  # fmt: skip
    analytic = reference([[sample, other]], [[1.0, -1.0]], **rules).gradient[0][0]
    for t, token in enumerate(sample):
        ends = []
        for step in (1e-6, -1e-6):
            moved = [*sample[:t], (token[0] + step, *token[1:]), *sample[t + 1 :]]
            ends.append(reference([[moved, other]], [[1.0, -1.0]], **rules).loss)
        assert analytic[t] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6, abs=1e-9)


# --- entropy bonus --------------------------------------------------------------------------------------------------


def test_the_entropy_bonus_is_the_mean_entropy_and_its_gradient_follows_the_formula():
    # Without advantages only the bonus is left: -bonus mean H over own tokens, with dH / dlogit_v = -p_v (log p_v + H).
    recipe = tiny_recipe(entropy_bonus=0.25, aggregation="token", zero_variance="keep", generation={"temperature": 0.8})
    policy = random_policy(recipe)
    groups = random_groups(policy)
    batch = make_batch(groups)
    metrics = TorchLearner(policy, recipe).accumulate(batch, torch.zeros(len(batch.length_B), 1))
    ours = gradients(policy)

    policy.zero_grad()
    num_tokens = int(batch.mask_BT.sum())
    bonus, surrogate = 0.0, torch.zeros(())
    for row, mask, length in zip(batch.tokens_BT, batch.mask_BT, batch.length_B.tolist(), strict=True):
        logits = policy.logits(policy.hidden(row[None, :length]))[0]
        for t in range(1, length):
            if not mask[t]:
                continue
            weights = [math.exp(x / 0.8) for x in (logits[t - 1].double() - logits[t - 1].max()).tolist()]
            p = [w / math.fsum(weights) for w in weights]
            h = -math.fsum(x * math.log(x) for x in p if x > 0)
            slope = [-x * (math.log(x) + h) / 0.8 if x > 0 else 0.0 for x in p]
            bonus += h
            surrogate = surrogate - 0.25 / num_tokens * (logits[t - 1] * torch.tensor(slope)).sum()
    surrogate.backward()
    assert metrics["loss"] == pytest.approx(-0.25 * bonus / num_tokens, rel=1e-5)
    assert metrics["entropy"] == pytest.approx(bonus / num_tokens, rel=1e-5)
    assert_same_gradients(ours, gradients(policy))


# --- the frozen policies --------------------------------------------------------------------------------------------


def test_the_reference_stays_what_the_run_started_from_and_the_kl_grows_from_zero():
    recipe = tiny_recipe(kl={"coefficient": 1e-3}, optimiser={"learning_rate": 1e-3, "warmup_steps": 0})
    policy = random_policy(recipe)
    before = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    learner = TorchLearner(policy, recipe)
    groups = random_groups(policy)
    kl = [learner.step(groups).metrics["kl"] for _ in range(3)]
    assert kl[0] == pytest.approx(0, abs=1e-9)
    assert 0 < kl[1] < kl[2]
    assert all(torch.equal(tensor, before[name]) for name, tensor in learner.reference.policy.state_dict().items())


@pytest.mark.parametrize(
    ("off_policy", "starts"),
    [({"type": "ppo_off_policy", "k": 3}, [0, 0, 0, 3, 3]), ({"type": "pipeline", "k": 3}, [0, 1, 2, 3, 4])],
)
def test_the_start_of_the_round_is_taken_with_every_batch_of_prompts_the_generators_were_frozen_for(
    off_policy, starts, monkeypatch
):
    recipe = tiny_recipe(loss={"type": "grpo"}, correction={"type": "truncate"}, off_policy=off_policy, epochs=2)
    policy = random_policy(recipe)
    groups = random_groups(policy)
    learner = TorchLearner(policy, recipe)
    scored, logprobs = [], learner.logprobs
    monkeypatch.setattr(learner, "logprobs", lambda *given: scored.append(logprobs(*given)) or scored[-1])
    before, batch = [], make_batch([group for group in groups if not group.zero_variance])
    for start in starts:
        before.append(frozen_copy(policy))
        learner.step(groups)
        assert torch.equal(scored.pop(), logprobs(before[start], batch))


# --- epochs, masks, work --------------------------------------------------------------------------------------------


def test_epochs_are_as_many_optimiser_steps_on_the_same_batch():
    once, twice = tiny_recipe(optimiser={"warmup_steps": 0}), tiny_recipe(optimiser={"warmup_steps": 0}, epochs=2)
    policy, other = random_policy(once), random_policy(twice)
    groups = random_groups(policy)
    stepped = TorchLearner(policy, once)
    first, second = stepped.step(groups), stepped.step(groups)
    together = TorchLearner(other, twice)
    update = together.step(groups)
    assert all(torch.equal(tensor, other.state_dict()[name]) for name, tensor in policy.state_dict().items())
    assert update.trained_tokens == first.trained_tokens + second.trained_tokens
    assert update.context_tokens == first.context_tokens + second.context_tokens
    lags = {"mismatch_lag_0", "mismatch_lag_1"}  # the second step of the other learner is a version later
    assert {name: update.metrics[name] for name in update.metrics.keys() - lags} == {
        name: second.metrics[name] for name in second.metrics.keys() - lags
    }
    assert (together.version, stepped.version) == (1, 2)


def test_scored_tokens_count_one_forward_pass_for_each_frozen_policy():
    plain = tiny_recipe(loss={"type": "dapo"}, epochs=2)
    both = tiny_recipe(loss={"type": "dapo"}, correction={"type": "truncate"}, kl={"coefficient": 0.1}, epochs=2)
    groups = random_groups(random_policy(plain))
    update = TorchLearner(random_policy(plain), plain).step(groups)
    assert (update.scored_tokens, update.scored_context_tokens) == (0, 0)
    scored = TorchLearner(random_policy(both), both).step(groups)
    assert scored.trained_tokens == update.trained_tokens
    assert (scored.scored_tokens, scored.scored_context_tokens) == (update.trained_tokens, update.context_tokens)


def test_a_batch_of_nothing_but_masked_answers_is_skipped():
    recipe = tiny_recipe(truncated="mask", optimiser={"warmup_steps": 0})
    policy = random_policy(recipe)
    groups = [cut_off(group, {0, 1, 2}) for group in random_groups(policy)]
    before = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    update = TorchLearner(policy, recipe).step(groups)
    assert update.metrics["skipped"]
    assert update.trained_tokens == 0
    assert all(torch.equal(tensor, before[name]) for name, tensor in policy.state_dict().items())


def test_gradients_may_be_left_unclipped():
    recipe = tiny_recipe(optimiser={"max_grad_norm": None, "warmup_steps": 0}, aggregation="sum")
    policy = random_policy(recipe)
    learner = TorchLearner(policy, recipe)
    update = learner.step(random_groups(policy))
    norm = math.sqrt(sum(float(p.grad.double().square().sum()) for p in policy.parameters()))
    assert norm > 1
    assert norm == pytest.approx(update.metrics["grad_norm"], rel=1e-5)


def test_a_learner_with_everything_on_goes_on_exactly_where_its_state_was_taken(tmp_path):
    settings = {**CASES["all at once"], "epochs": 2, "entropy_bonus": 0.01}
    recipe = tiny_recipe(**settings, optimiser={"schedule": {"type": "cosine", "horizon": 6, "unit": "steps"}})
    policy = random_policy(recipe)
    groups = random_groups(policy)
    learner = TorchLearner(policy, recipe)
    for _ in range(3):
        learner.step(groups)
    torch.save(learner.state_dict(), tmp_path / "learner.pt")
    again = TorchLearner(random_policy(recipe, seed=9), recipe, origin=random_policy(recipe))
    again.load_state_dict(torch.load(tmp_path / "learner.pt"))
    for _ in range(2):
        assert learner.step(groups).metrics == again.step(groups).metrics
    assert again.statistics == learner.statistics
    assert all(torch.equal(x, again.policy.state_dict()[name]) for name, x in learner.policy.state_dict().items())
