"""A training script that knows nothing of the platform but three lines: REINFORCE on a bandit of sixteen contexts.

python bandit.py learning_rate=0.3 baseline=false          # by itself; in a sweep the platform starts it
"""

import json
import sys

import torch

import ablations

CONTEXTS, ARMS, BATCH, EVERY, HELD_OUT = 16, 8, 32, 20, 400

run = ablations.start(budget=12800)
settings = {"learning_rate": 0.1, "baseline": True} | run.settings
settings |= {name: json.loads(value) for name, _, value in (argument.partition("=") for argument in sys.argv[1:])}
right_arm = torch.randint(ARMS, (CONTEXTS,), generator=torch.Generator().manual_seed(7))
generator = torch.Generator().manual_seed(run.seed)

logits = torch.zeros(CONTEXTS, ARMS, requires_grad=True)
optimiser = torch.optim.SGD([logits], lr=settings["learning_rate"] * BATCH)
checkpoint, step = run.folder / "checkpoint.pt", 0
if checkpoint.exists():  # the same command again: go on
    saved = torch.load(checkpoint, weights_only=True)
    step, logits.data = saved["step"], saved["logits"]
    generator.set_state(saved["generator"])


def play(num):
    """Log-probabilities of the arms that the policy takes, and a noisy reward of 0 or 1 for each."""
    contexts = torch.randint(CONTEXTS, (num,), generator=generator)
    policy = torch.log_softmax(logits[contexts], dim=-1)
    arms = torch.multinomial(policy.exp(), 1, generator=generator).squeeze(-1)
    chance = torch.where(arms == right_arm[contexts], 0.9, 0.1)
    rewards = (torch.rand(num, generator=generator) < chance).float()
    return policy.gather(-1, arms[:, None]).squeeze(-1), rewards


while step * BATCH <= run.budget:
    if step % EVERY == 0:
        temporary = checkpoint.with_suffix(".tmp")
        torch.save({"step": step, "logits": logits.data, "generator": generator.get_state()}, temporary)
        temporary.replace(checkpoint)
        with torch.no_grad():
            right = int(play(HELD_OUT)[1].sum())
        run.log(step=step, compute=step * BATCH, right=right, of=HELD_OUT)
    taken, rewards = play(BATCH)
    advantage = rewards - rewards.mean() if settings["baseline"] else rewards
    loss = -(advantage * taken).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    step += 1
