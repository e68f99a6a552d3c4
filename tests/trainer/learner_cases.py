"""Groups for a learner to step on, and how two of its gradients are compared."""

import random

import torch
from trainer.tiny import make_group, random_policy

from scalerl.model.build import new_policy
from scalerl.tokens.symbols import EOS_ID

MOE = {"type": "moe", "hidden": 16, "layers": 1, "heads": 2, "mlp": 16, "experts": 4, "experts_per_token": 2}
DECOUPLED = {"loss": {"type": "grpo"}, "correction": {"type": "truncate"}}
PENALTY = {"coefficient": 0.1, "estimator": "k3"}
STEPS = {
    "cispo": {},
    "sequences packed": {"optimiser": {"packing": "sequences", "micro_batch_tokens": 40}},
    "prompts shared": {"optimiser": {"packing": "prompts", "gradient_checkpointing": True}},
    "decoupled": {**DECOUPLED, "epochs": 2, "aggregation": "token", "advantage": "running"},
    "sequence ratio": {"loss": {"type": "gspo"}, "aggregation": "sample", "entropy_bonus": 0.01},
    "penalty in the loss": {"kl": {**PENALTY, "where": "loss"}, "aggregation": "sum", "advantage": "prompt"},
    "penalty in the reward": {"kl": {**PENALTY, "where": "reward"}, "zero_variance": "keep"},
    "critic": {"critic": {"type": "value_network"}, "epochs": 2, "zero_variance": "keep"},
    "experts": {"model": MOE, "optimiser": {"packing": "sequences"}},
    "half precision": {"parameters": "mixed"},
}
"""What of a recipe each kind of step changes."""


def policy_of(recipe):
    """A policy of the recipe with random weights."""
    if recipe.model.type == "llama":
        return random_policy(recipe)
    policy = new_policy(recipe)
    policy.init_weights(torch.Generator().manual_seed(0))
    return policy


def random_groups(policy, seed=0, num_groups=4, generations=3):
    """Groups of uneven lengths with forced tokens, their behaviour a little away from the policy's own log-probs."""
    rng = random.Random(seed)
    groups = []
    for number in range(num_groups):
        prompt = tuple(rng.randrange(4, 40) for _ in range(rng.randint(3, 6)))
        tokens = [[rng.randrange(4, 40) for _ in range(rng.randint(1, 9))] + [EOS_ID] for _ in range(generations)]
        forced = [[rng.random() < 0.2 for _ in row] for row in tokens]
        logprobs = []
        for row, marks in zip(tokens, forced, strict=True):
            own = policy.score(torch.tensor([[*prompt, *row]]), 1.0).logprobs_BT
            own = own[0, len(prompt) :].tolist()
            logprobs.append([0.0 if mark else x + rng.gauss(0, 0.3) for x, mark in zip(own, marks, strict=True)])
        rewards = [rng.choice([1.0, -1.0]) for _ in range(generations)]
        if number < 2:
            rewards[0], rewards[1] = 1.0, -1.0
        groups.append(make_group(f"p{number}", tokens, logprobs, rewards, forced=forced, tokens_of_prompt=prompt))
    groups[2] = make_group(
        "same", [[5, 1]] * generations, [[-1.0, -1.0]] * generations, [-1.0] * generations, tokens_of_prompt=(6, 4, 2)
    )
    return groups


def gradients(policy):
    return {name: parameter.grad.clone() for name, parameter in policy.named_parameters() if parameter.grad is not None}


def assert_same_gradients(ours, expected):
    """To 1e-5; numbers near 0 to 1e-6 of the largest of their tensor, or to 1e-6 where that is below 1."""
    assert ours.keys() == expected.keys()
    for name, gradient in ours.items():
        floor = 1e-6 * max(1.0, float(expected[name].abs().max()))
        torch.testing.assert_close(gradient, expected[name], rtol=1e-5, atol=floor, msg=lambda m, n=name: f"{n}: {m}")
