"""Loss and gradient of episodes against a loop over floats with a mask written by hand: only sampled tokens count."""

import itertools
import math
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from trainer.learner_cases import assert_same_gradients, gradients, random_groups
from trainer.reference_loss import reference
from trainer.tiny import make_prompt, random_policy, tiny_recipe

from scalerl.evaluation.drift import generator_drift, policy_drift
from scalerl.learner.batch import make_batch
from scalerl.learner.batch_loss import batch_loss
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model.policy import Scores
from scalerl.objective.trained_groups import trained_groups
from scalerl.objective.turn_credit import rewards_at_tokens
from scalerl.rollout import Episode, Group, Rollout, Turn
from scalerl.run.train_row import rollout_columns

GSPO = {"type": "gspo", "clip_low": 0.03, "clip_high": 0.05}
LOSSES = [{"type": "cispo", "min_ratio": 0.3, "max_ratio": 1.5}, {"type": "dapo"}, {"type": "grpo"}, GSPO]
AGGREGATIONS = ["prompt", "sample", "token", "constant", "sum"]
ROUNDS = {"off_policy": {"type": "ppo_off_policy", "k": 2}}
CORRECTIONS = [
    {"type": "truncate", "low": 0.8, "high": 1.1},
    {"type": "truncate", "of": "sequence", "high": 1.3},
    {"type": "mask", "policy": "start", "of": "geometric", "low": 0.9, "high": 1.2},
    {"type": "mask", "low": 0.8, "high": 1.2},
    {"type": "trust_region", "low": 2e-3, "high": 2e-3},
    {"type": "trust_region", "of": "kl", "low": 1e-4, "high": 1e-4},
]
KLS = [
    {"coefficient": 0.3, "estimator": estimator, "where": where}
    for estimator, where in itertools.product(["k1", "k2", "k3"], ["loss", "reward"])
]
CASES = {
    **{
        f"{loss['type']} by {aggregation}": {"loss": loss, "aggregation": aggregation}
        for loss, aggregation in itertools.product(LOSSES, AGGREGATIONS)
    },
    **{
        f"{loss['type']} with correction {number}": {"loss": loss, "correction": correction, **ROUNDS}
        for (number, correction), loss in itertools.product(enumerate(CORRECTIONS), LOSSES)
    },
    **{f"{kl['estimator']} in the {kl['where']}": {"kl": kl} for kl in KLS},
    **{f"advantage {name}": {"advantage": name} for name in ("prompt", "none", "leave_one_out", "running")},
    "truncated masked": {"truncated": "mask"},
    "all groups": {"zero_variance": "keep"},
    "entropy bonus": {"entropy_bonus": 0.1},
    "all at once": {
        **ROUNDS, "loss": {"type": "dapo"}, "correction": CORRECTIONS[0], "kl": KLS[1], "aggregation": "sample",
        "truncated": "mask", "zero_variance": "keep", "entropy_bonus": 0.02,
    },
}  # fmt: skip
PACKINGS = ["none", "sequences", "prompts"]
EARLIER = [0.5, -0.5, 2.0]
DISCOUNT = 0.8


class Played:
    """A rollout, and beside it what was written down while it was made."""

    def __init__(self, rng, prompt, *, by_turn, flat):
        self.own, self.turn_of, turns, forced, tokens, logprobs = [], [], [], [], [], []
        for number in range(rng.randint(1, 4)):
            start = len(tokens)
            thought, phrase, answer = rng.randint(1, 3), rng.choice([0, 0, 2]), rng.randint(1, 3)
            said = rng.randint(1, 4)
            for who, count in (("own", thought), ("forced", phrase), ("own", answer), ("said", said)):
                tokens += [rng.randrange(4, 40) for _ in range(count)]
                self.own += [who == "own"] * count
                forced += [who == "forced"] * count
                self.turn_of += [number] * count
                # What stands at tokens that are not the policy's is never read.
                logprobs += [-rng.expovariate(1.0) if who == "own" else math.nan for _ in range(count)]
            turns.append(Turn(start=start, stop=len(tokens) - said, reward=flat or rng.choice([0.0, 0.25, -0.5, 1.0])))
        kept = turns[-1].stop  # nothing is said to the last turn
        self.turn_rewards = [turn.reward for turn in turns]
        self.own, self.turn_of = self.own[:kept], self.turn_of[:kept]
        discount = DISCOUNT if by_turn else 1.0
        beside = 0.0 if flat else rng.choice([0.0, -0.125])  # such as a length penalty
        self.reward = sum(discount**n * reward for n, reward in enumerate(self.turn_rewards)) + beside
        self.turn_rewards[-1] += beside
        self.rollout = Rollout(
            prompt=prompt,
            tokens=np.array(tokens[:kept], dtype=np.int64),
            logprobs=np.array(logprobs[:kept], dtype=np.float32),
            versions=np.zeros(kept, dtype=np.int32),
            forced=np.array(forced[:kept], dtype=np.bool_),
            truncated=rng.random() < 0.3,
            episode=Episode(turns=tuple(turns), end="lost", discount=discount, by_turn=by_turn),
        )


def played_groups(*, by_turn, seed=0, num_groups=4, generations=3):
    """Groups of episodes, one of them with equal rewards, and what was written down of each rollout."""
    rng = random.Random(seed)
    groups, notes = [], []
    for number in range(num_groups):
        prompt = make_prompt(f"p{number}", tuple(rng.randrange(4, 40) for _ in range(rng.randint(3, 6))))
        flat = 0.5 if number == 2 else 0.0
        played = [Played(rng, prompt, by_turn=by_turn, flat=flat) for _ in range(generations)]
        if flat:  # equal in every turn that two of them have
            played = played[:1] * generations
        rewards = tuple(one.reward for one in played)
        rollouts = tuple(one.rollout for one in played)
        groups.append(Group(prompt=prompt, rollouts=rollouts, rewards=rewards, outcomes=("wrong",) * generations))
        notes.append(played)
    return groups, notes


class Table:
    """Log-probabilities and entropies of a batch's tokens in float64, as a policy that is asked for its rows."""

    def __init__(self, batch, seed=0):
        draws = torch.Generator().manual_seed(seed)
        self.tokens = batch.tokens_BT
        noise = torch.randn(batch.tokens_BT.shape, generator=draws, dtype=torch.float64)
        drawn = -torch.rand(batch.tokens_BT.shape, generator=draws, dtype=torch.float64) * 2
        near = batch.behaviour_BT.double() + 0.2 * noise
        self.logprobs = torch.where(batch.host_mask_BT, near.clamp(max=-1e-3), drawn).requires_grad_()
        self.entropy = torch.rand(batch.tokens_BT.shape, generator=draws, dtype=torch.float64).requires_grad_()

    def near(self, seed):
        draws = torch.Generator().manual_seed(seed)
        noise = torch.randn(self.logprobs.shape, generator=draws, dtype=torch.float64)
        return (self.logprobs.detach() + 0.3 * noise).clamp(max=-1e-3)

    def score(self, tokens_BT, temperature, *, length_B, packing, entropy_gradient):
        width = tokens_BT.shape[1]
        rows = [int((self.tokens[:, :width] == row).all(dim=1).nonzero()[0]) for row in tokens_BT]
        return Scores(logprobs_BT=self.logprobs[rows, :width], entropy_BT=self.entropy[rows, :width])


def settings_of(recipe):
    """Arguments of the reference that are not tokens."""
    return {
        "loss": recipe.loss.type,
        "bounds": recipe.loss.model_dump(exclude={"type"}),
        "correction": recipe.correction.model_dump(),
        "aggregation": str(recipe.aggregation),
        "normalisation": str(recipe.advantage),
        "zero_variance": str(recipe.zero_variance),
        "kl": recipe.kl.model_dump() if recipe.kl.coefficient else None,
        "earlier": EARLIER,
        "token_limit": recipe.most_written,
    }


def prepared(name, *, by_turn, packing, micro_batch_tokens):
    recipe = tiny_recipe(**CASES[name], optimiser={"micro_batch_tokens": micro_batch_tokens, "packing": packing})
    learner = TorchLearner(random_policy(recipe), recipe)
    if recipe.advantage == "running":
        learner.statistics = learner.statistics.including(torch.tensor(EARLIER))
    groups, notes = played_groups(by_turn=by_turn)
    survive = trained_groups(recipe.zero_variance, groups)
    assert survive == [recipe.zero_variance == "keep" or number != 2 for number in range(len(groups))]
    return recipe, learner, groups, notes, survive


def by_turns(notes):
    return {
        "turns": [[one.turn_of for one in played] for played in notes],
        "turn_rewards": [[one.turn_rewards for one in played] for played in notes],
        "discount": DISCOUNT,
    }


@pytest.mark.parametrize("by_turn", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradient_of_episodes_equal_the_loops_to_1e_6(name, by_turn):
    for packing, micro_batch_tokens in (("none", 10**6), ("none", 20), ("sequences", 60), ("prompts", 60)):
        recipe, learner, groups, notes, survive = prepared(
            name, by_turn=by_turn, packing=packing, micro_batch_tokens=micro_batch_tokens
        )
        kept = [group for group, survives in zip(groups, survive, strict=True) if survives]
        masked = recipe.truncated == "mask"
        batch, whole = (make_batch(some, mask_truncated=masked) for some in (kept, groups))
        table: Any = Table(whole)
        starts, references = table.near(1), table.near(2)
        chosen = [i for i, survives in enumerate(survive) for _ in range(3) if survives]
        rows = [3 * group + i % 3 for i, group in enumerate(chosen)]
        width = batch.tokens_BT.shape[1]
        batch = replace(
            batch,
            start_BT=starts[rows, :width] if recipe.needs_start else None,
            reference_BT=references[rows, :width] if recipe.kl.coefficient else None,
        )
        loss = batch_loss(
            table,
            batch,
            learner.advantages(kept, batch),
            recipe,
            backward=lambda part, _: part.backward(),
        )["loss"]

        samples, entropies = [], []
        for number, one in enumerate(itertools.chain.from_iterable(notes)):
            first, rollout = len(one.rollout.prompt.tokens), one.rollout
            columns = [
                tensor[number, first : first + len(one.own)].tolist()
                for tensor in (table.logprobs.detach(), references, starts, table.entropy.detach())
            ]
            is_seen = not (masked and rollout.truncated)
            samples.append([
                (x, float(y), mine and is_seen, ref, start)
                for x, y, mine, ref, start in zip(
                    columns[0], rollout.logprobs, one.own, columns[1], columns[2], strict=True
                )
            ])  # fmt: skip
            entropies.append(columns[3])
        expected = reference(
            [samples[i : i + 3] for i in range(0, len(samples), 3)],
            [list(group.rewards) for group in groups],
            **settings_of(recipe),
            **(by_turns(notes) if by_turn else {}),
            entropy=(recipe.entropy_bonus, [entropies[i : i + 3] for i in range(0, len(entropies), 3)]),
        )
        slopes = list(itertools.chain.from_iterable(expected.gradient))
        wanted = torch.zeros_like(table.logprobs)
        for number, (one, slope) in enumerate(zip(itertools.chain.from_iterable(notes), slopes, strict=True)):
            first = len(one.rollout.prompt.tokens)
            wanted[number, first : first + len(slope)] = torch.tensor(slope, dtype=torch.float64)
        assert loss == pytest.approx(expected.loss, rel=1e-6, abs=1e-6)
        torch.testing.assert_close(table.logprobs.grad, wanted, rtol=1e-6, atol=1e-6)
        assert wanted.abs().max() > 1e-3


def single_turn_notes(group):
    """What the loops are told of a group without turns."""
    return [
        SimpleNamespace(
            rollout=rollout, own=(~rollout.forced).tolist(), turn_of=[0] * len(rollout.tokens), turn_rewards=[reward]
        )
        for rollout, reward in zip(group.rollouts, group.rewards, strict=True)
    ]


@pytest.mark.parametrize("by_turn", [False, True])
@pytest.mark.parametrize("packing", ["none", "sequences", "prompts"])
@pytest.mark.parametrize("name", ["cispo by prompt", "gspo by token", "k3 in the loss", "all groups"])
def test_parameters_get_the_gradient_of_unpacked_episodes_beside_tasks_of_one_turn(name, packing, by_turn):
    recipe, learner, groups, notes, _ = prepared(name, by_turn=by_turn, packing=packing, micro_batch_tokens=60)
    policy = learner.policy
    single = random_groups(policy, seed=5, num_groups=3)
    groups, notes = [*groups, *single], [*notes, *map(single_turn_notes, single)]
    survive = trained_groups(recipe.zero_variance, groups)
    kept = [group for group, survives in zip(groups, survive, strict=True) if survives]
    batch = learner.with_scores(make_batch(kept))
    metrics = learner.accumulate(batch, learner.advantages(kept, batch))
    ours = gradients(policy)

    policy.zero_grad()
    rows, samples = [], []
    for one in itertools.chain.from_iterable(notes):
        rollout, first = one.rollout, len(one.rollout.prompt.tokens)
        tokens = torch.tensor([[*rollout.prompt.tokens, *rollout.tokens.tolist()]])
        rows.append(policy.score(tokens, 1.0).logprobs_BT[0, first:])
        its = rows[-1].tolist()  # of a new reference, which is the policy
        samples.append([(x, float(y), own, x) for x, y, own in zip(its, rollout.logprobs, one.own, strict=True)])
    expected = reference(
        [samples[i : i + 3] for i in range(0, len(samples), 3)],
        [list(group.rewards) for group in groups],
        **settings_of(recipe),
        **(by_turns(notes) if by_turn else {}),
    )
    slopes = itertools.chain.from_iterable(expected.gradient)
    sum((row * torch.tensor(slope)).sum() for row, slope in zip(rows, slopes, strict=True)).backward()
    assert metrics["loss"] == pytest.approx(expected.loss, rel=1e-5, abs=1e-6)
    assert_same_gradients(ours, gradients(policy))


@pytest.mark.parametrize("by_turn", [False, True])
@pytest.mark.parametrize("where", ["none", "reward"])
def test_a_critic_skips_what_is_said_and_gets_rewards_where_they_are_due(by_turn, where):
    kl = {"kl": {"coefficient": 0.3, "estimator": "k1", "where": "reward"}} if where == "reward" else {}
    critic = {"type": "value_network", "gae_lambda": 0.9, "gamma": 0.95, "value_clip": None}
    recipe = tiny_recipe(
        critic=critic, advantage="none", loss={"type": "grpo"}, aggregation="token", zero_variance="keep", **kl
    )
    learner = TorchLearner(random_policy(recipe), recipe)
    with torch.no_grad():
        head = learner.critic.network.head
        head.copy_(torch.randn(head.shape, generator=torch.Generator().manual_seed(3)) * 0.3)
    groups, notes = played_groups(by_turn=by_turn, seed=7)
    batch = learner.with_scores(make_batch(groups))
    batch, advantage_BT = learner.assign_credit(groups, batch)
    expected, returns = torch.zeros(advantage_BT.shape, dtype=torch.float64), torch.zeros_like(advantage_BT)
    for row, one in enumerate(itertools.chain.from_iterable(notes)):
        first = len(one.rollout.prompt.tokens)
        own = [t for t, mine in enumerate(one.own) if mine]
        rewards = dict.fromkeys(own, 0.0)
        for number, reward in enumerate(one.turn_rewards if by_turn else [one.reward]):
            rewards[max(t for t in own if one.turn_of[t] == number or not by_turn)] += reward
        if where == "reward":
            for t in own:
                reference_logprob = batch.reference_BT[row, first + t].item()
                rewards[t] -= 0.3 * (float(one.rollout.logprobs[t]) - reference_logprob)
        values = {t: batch.values_BT[row, first + t].item() for t in own}
        later_value = later_advantage = 0.0
        for t in reversed(own):
            delta = rewards[t] + 0.95 * later_value - values[t]
            later_advantage = delta + 0.95 * 0.9 * later_advantage
            later_value = values[t]
            expected[row, first + t] = later_advantage
            returns[row, first + t] = later_advantage + values[t]
    torch.testing.assert_close(advantage_BT.double(), expected, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(batch.returns_BT, returns, rtol=1e-6, atol=1e-6)
    # The value loss, and its gradient, are means over these tokens alone.
    columns = learner.critic.accumulate(batch)
    count = sum(sum(one.own) for one in itertools.chain.from_iterable(notes))
    mask = torch.zeros_like(returns, dtype=torch.bool)
    for row, one in enumerate(itertools.chain.from_iterable(notes)):
        first = len(one.rollout.prompt.tokens)
        mask[row, first : first + len(one.own)] = torch.tensor(one.own)
    by_hand = sum((v - r) ** 2 / 2 for v, r in zip(batch.values_BT[mask].tolist(), returns[mask].tolist(), strict=True))
    assert columns["value_loss"] == pytest.approx(by_hand / count, rel=1e-5)


def test_a_turn_without_a_sampled_token_gives_its_reward_to_the_turn_before():
    prompt = make_prompt("p")
    turns = (Turn(start=0, stop=2, reward=0.5), Turn(start=3, stop=5, reward=1.0), Turn(start=6, stop=7, reward=-1.0))
    rollout = Rollout(
        prompt=prompt,
        tokens=np.arange(5, 12),
        logprobs=np.zeros(7, dtype=np.float32),
        versions=np.zeros(7, dtype=np.int32),
        forced=np.array([False, True, False, True, True, False, False]),
        truncated=False,
        episode=Episode(turns=turns, end="lost", by_turn=True),
    )
    group = Group(prompt=prompt, rollouts=(rollout,) * 2, rewards=(0.25, 0.5), outcomes=("wrong",) * 2)
    found = rewards_at_tokens([group], make_batch([group]).mask_BT)
    assert found[:, 5:].tolist() == [[1.5, 0, 0, 0, 0, 0, -1.25], [1.5, 0, 0, 0, 0, 0, -1.0]]
    assert found[:, :5].abs().max() == 0
    truncated = replace(group, rollouts=(replace(rollout, truncated=True),) * 2)
    batch = make_batch([truncated], mask_truncated=True)
    assert batch.num_own == 0
    assert rewards_at_tokens([truncated], batch.mask_BT).abs().max() == 0
    whole = replace(
        group, rollouts=(replace(rollout, episode=replace(cast(Episode, rollout.episode), by_turn=False)),) * 2
    )
    assert rewards_at_tokens([whole], make_batch([whole]).mask_BT)[:, 5:].tolist() == [
        [0] * 6 + [0.25],
        [0] * 6 + [0.5],
    ]


def test_neither_the_drift_nor_the_columns_of_a_row_know_what_was_said():
    recipe = tiny_recipe()
    policy = random_policy(recipe)
    groups, notes = played_groups(by_turn=False)
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    total = count = 0
    for one in itertools.chain.from_iterable(notes):
        first = len(one.rollout.prompt.tokens)
        tokens = torch.tensor([[*one.rollout.prompt.tokens, *one.rollout.tokens.tolist()]])
        scores = policy.score(tokens, 1.0).logprobs_BT[0, first:].tolist()
        for score, behaviour, own in zip(scores, one.rollout.logprobs, one.own, strict=True):
            if own:
                gap = score - float(behaviour)
                total, count = total + math.exp(gap) - 1 - gap, count + 1
    assert policy_drift(rollouts, recipe, start=policy) == pytest.approx(total / count, rel=1e-5)
    generator: Any = SimpleNamespace(
        set_weights=lambda *_: None,
        score=lambda tokens: policy.score(torch.tensor([tokens]), 1.0).logprobs_BT[0, 1:].detach().numpy(),
    )
    its = generator_drift(rollouts, recipe, generator=generator, start=dict)
    assert its == pytest.approx(total / count, rel=1e-5)
    columns = rollout_columns(groups, version=2)
    played = list(itertools.chain.from_iterable(notes))
    written = sum(int(turn.stop - turn.start) for one in played for turn in one.rollout.episode.turns)
    assert columns["mean_tokens"] == written / len(played)
    assert columns["staleness"] == {"2": written}
    assert columns["interrupted"] == sum(bool(one.rollout.forced.any()) for one in played) / len(played)
