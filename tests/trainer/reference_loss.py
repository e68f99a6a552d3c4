"""The policy losses in plain Python floats, token by token, as the papers write them; nothing of `scalerl` is used.

A batch is prompts of samples of tokens; each token is `(log pi_train, log pi_gen, own)`, and only `own` tokens are the
policy's; `(log pi_ref, log pi_start)` may follow where a KL penalty or truncated weights need them. The gradient is
that with respect to log pi_train of each token, with what the papers call stop-gradient held constant. Formulas:
ScaleRL (arXiv 2510.13786) sections 2 and 3.2; GRPO 2402.03300; DAPO 2503.14476; GSPO 2507.18071; CISPO 2506.13585; KL
estimators Schulman 2020; truncated weights of a ratio that starts elsewhere 2505.24298;
trust region 2602.04879. The small constant of the
standard deviations is 1e-6.
"""

import math
from dataclasses import dataclass

Token = tuple
Sample = list[Token]

EPS = 1e-6


@dataclass
class Reference:
    loss: float
    gradient: list[list[list[float]]]
    """Of each token of each sample of each prompt; 0 for tokens that are not the policy's own."""
    num_clipped: int
    num_tokens: int
    num_corrected: dict[str, int]
    """Tokens on which a bound of the correction is active, `below` and `above`."""


def population_std(values: list[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))


def advantages(
    rewards: list[list[float]],
    normalisation: str,
    zero_variance: str,
    penalties: list[list[float]] | None = None,
    earlier: list[float] | None = None,
) -> tuple[list[list[float]], list[int]]:
    """A of every sample, and the prompts that stay in the loss; `earlier` are the centred rewards of past batches."""
    kept = [p for p, row in enumerate(rewards) if zero_variance == "keep" or any(r != row[0] for r in row)]
    if penalties is not None:
        rewards = [[r - x for r, x in zip(*rows, strict=True)] for rows in zip(rewards, penalties, strict=True)]
    centred = {p: [r - math.fsum(rewards[p]) / len(rewards[p]) for r in rewards[p]] for p in kept}
    result = [[0.0] * len(row) for row in rewards]
    for p in kept:
        if normalisation in ("none", "leave_one_out"):
            divisor = 1.0
        elif normalisation == "prompt":
            divisor = population_std(rewards[p]) + EPS
        elif normalisation == "running":
            divisor = population_std([*(earlier or []), *(a for q in kept for a in centred[q])]) + EPS
        else:
            divisor = population_std([a for q in kept for a in centred[q]]) + EPS
        result[p] = [a / divisor for a in centred[p]]
        if normalisation == "leave_one_out":
            total, others = math.fsum(rewards[p]), len(rewards[p]) - 1
            result[p] = [r - (total - r) / others if others else 0.0 for r in rewards[p]]
    return result, kept


def clipped_objective(
    ratio: float, advantage: float, low: float, high: float, delta: float | None = None
) -> tuple[float, float, bool]:
    """min(rho A, clip(rho, 1 - low, 1 + high) A), its derivative by rho, and whether the clip decided; a wrong answer's
    rho is at most delta."""
    if delta is not None and advantage < 0 and ratio > delta:
        return delta * advantage, 0.0, True
    clipped_ratio = min(max(ratio, 1 - low), 1 + high)
    if clipped_ratio * advantage < ratio * advantage:
        return clipped_ratio * advantage, 0.0, True
    return ratio * advantage, advantage, False


def advantages_of_turns(
    rewards: list[list[list[float]]],
    discount: float,
    normalisation: str,
    zero_variance: str,
    penalties: list[list[list[float]]] | None = None,
    earlier: list[float] | None = None,
) -> tuple[list[list[list[float]]], list[int]]:
    """A of every turn of every sample, and the prompts that stay in the loss. A turn's return, the discounted sum of
    the rewards from it on, is compared with the same turn of the prompt's other samples that reached it."""

    def returns(rewards: list[float]) -> list[float]:
        turns = range(len(rewards))
        return [math.fsum(discount ** (m - n) * rewards[m] for m in turns if m >= n) for n in turns]

    def same_turns(of_prompt: list[list[float]]) -> list[list[float]]:
        most = max(len(sample) for sample in of_prompt)
        return [[sample[n] for sample in of_prompt if len(sample) > n] for n in range(most)]

    plain = [same_turns([returns(sample) for sample in of_prompt]) for of_prompt in rewards]
    kept = [
        p
        for p, rows in enumerate(plain)
        if zero_variance == "keep" or any(abs(one - row[0]) > 1e-12 for row in rows for one in row)
    ]
    if penalties is not None:
        rewards = [
            [[r - x for r, x in zip(*sample, strict=True)] for sample in zip(*of_prompt, strict=True)]
            for of_prompt in zip(rewards, penalties, strict=True)
        ]
    rows = [row for p in kept for row in same_turns([returns(sample) for sample in rewards[p]])]
    found = iter(advantages(rows, normalisation, "keep", earlier=earlier)[0])
    result = [[[0.0] * len(sample) for sample in of_prompt] for of_prompt in rewards]
    for p in kept:
        for n in range(max(len(sample) for sample in rewards[p])):
            reached = [i for i, sample in enumerate(rewards[p]) if len(sample) > n]
            for i, advantage in zip(reached, next(found), strict=True):
                result[p][i][n] = advantage
    return result, kept


def sample_losses(sample: Sample, advantages: list[float], name: str, bounds: dict[str, float]) -> list[tuple]:
    """(loss, clipped, {token index: derivative}) of each own token of one sample, in order, with its index; every token
    has an advantage."""
    own = [t for t, token in enumerate(sample) if token[2]]
    rows = []
    if name == "gspo":
        mean = math.fsum(sample[t][0] - sample[t][1] for t in own) / len(own) if own else 0.0
        ratio = math.exp(mean)
        for t in own:
            value, slope, clipped = clipped_objective(ratio, advantages[t], bounds["clip_low"], bounds["clip_high"])
            rows.append((t, -value, clipped, {u: -slope * ratio / len(own) for u in own}))
        return rows
    for t in own:
        advantage = advantages[t]
        logprob, behaviour, _ = sample[t][:3]
        ratio = math.exp(logprob - behaviour)
        if name == "cispo":
            weight = min(max(ratio, bounds["min_ratio"]), bounds["max_ratio"])
            rows.append((t, -weight * advantage * logprob, weight != ratio, {t: -weight * advantage}))
            continue
        low, high = (bounds["clip"],) * 2 if name == "grpo" else (bounds["clip_low"], bounds["clip_high"])
        value, slope, clipped = clipped_objective(ratio, advantage, low, high, bounds.get("delta"))
        rows.append((t, -value, clipped, {t: -slope * ratio}))
    return rows


def corrected_losses(
    sample: Sample, advantages: list[float], name: str, bounds: dict[str, float], correction: dict
) -> list[tuple]:
    """`sample_losses` times the factor of each token, with the side on which a bound is active, or ""."""
    kind = correction["type"]
    if kind == "none":
        return [(*row, "") for row in sample_losses(sample, advantages, name, bounds)]
    by_start = kind == "truncate" or (kind == "mask" and correction["policy"] == "start")
    own = [t for t, token in enumerate(sample) if token[2]]
    gaps = {t: sample[t][4 if by_start else 0] - sample[t][1] for t in own}
    factor, side = {}, {}
    for t in own:
        if kind == "trust_region":
            p, q = math.exp(sample[t][0]), math.exp(sample[t][1])
            distance = abs(p - q)
            if correction["of"] == "kl":
                distance = q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p))
            low = advantages[t] < 0 and p < q and distance > correction["low"]
            high = advantages[t] > 0 and p > q and distance > correction["high"]
            factor[t], side[t] = 0.0 if low or high else 1.0, "below" if low else "above" if high else ""
            continue
        if correction["of"] == "token":
            ratio = math.exp(gaps[t])
        else:
            total = math.fsum(gaps.values())
            ratio = math.exp(total if correction["of"] == "sequence" else total / len(own))
        low, high = correction["low"], math.inf if correction["high"] is None else correction["high"]
        side[t] = "below" if ratio < low else "above" if ratio > high else ""
        if kind == "truncate":
            factor[t] = max(low, min(ratio, high))
        else:
            factor[t] = 0.0 if side[t] else ratio if by_start else 1.0
    if by_start:
        sample = [(token[0], token[4], token[2]) if token[2] else token for token in sample]
    return [
        (t, factor[t] * x, clipped, {u: factor[t] * d for u, d in ds.items()}, side[t])
        for t, x, clipped, ds in sample_losses(sample, advantages, name, bounds)
    ]


def kl_estimate(estimator: str, log_pi: float, log_ref: float) -> tuple[float, float]:
    """The estimate of KL(pi || ref) from one token, and its derivative by log pi; r = ref / pi."""
    r = math.exp(log_ref - log_pi)
    if estimator == "k1":
        return -math.log(r), 1.0
    if estimator == "k2":
        return math.log(r) ** 2 / 2, -math.log(r)
    return r - 1 - math.log(r), 1 - r


def reference(
    prompts: list[list[Sample]],
    rewards: list[list[float]],
    *,
    loss: str,
    bounds: dict[str, float],
    aggregation: str,
    normalisation: str,
    zero_variance: str,
    kl: dict | None = None,
    earlier: list[float] | None = None,
    correction: dict | None = None,
    token_limit: int = 10,
    turns: list[list[list[int]]] | None = None,
    turn_rewards: list[list[list[float]]] | None = None,
    discount: float = 1.0,
    entropy: tuple[float, list[list[list[float]]]] | None = None,
) -> Reference:
    """Loss and gradient of one batch; `kl` has the keys coefficient, estimator and where.

    With `turns`, the number of each token's turn, and `turn_rewards` in place of `rewards`, credit is by turn.
    `entropy` is the bonus and each token's entropy, whose gradient is not in the result.
    """
    penalties = None
    if kl is not None and kl["where"] == "reward":
        penalties = [
            [
                kl["coefficient"] * math.fsum(kl_estimate(kl["estimator"], y[1], y[3])[0] for y in sample if y[2])
                for sample in prompt
            ]
            for prompt in prompts
        ]
    if turns is None or turn_rewards is None:
        of_samples, kept = advantages(rewards, normalisation, zero_variance, penalties, earlier)
        advantage = [
            [[one] * len(sample) for one, sample in zip(*of_prompt, strict=True)]
            for of_prompt in zip(of_samples, prompts, strict=True)
        ]
    else:
        of_turns = None
        if kl is not None and kl["where"] == "reward":
            of_turns = [[[0.0] * len(sample) for sample in of_prompt] for of_prompt in turn_rewards]
            for p, prompt in enumerate(prompts):
                for i, sample in enumerate(prompt):
                    for y, n in zip(sample, turns[p][i], strict=True):
                        if y[2]:
                            of_turns[p][i][n] += kl["coefficient"] * kl_estimate(kl["estimator"], y[1], y[3])[0]
        found, kept = advantages_of_turns(turn_rewards, discount, normalisation, zero_variance, of_turns, earlier)
        advantage = [
            [[found[p][i][n] for n in turns[p][i]] for i in range(len(prompt))] for p, prompt in enumerate(prompts)
        ]
    own = {(p, i): sum(token[2] for token in prompts[p][i]) for p in kept for i in range(len(prompts[p]))}
    total_tokens = sum(own.values())
    num_samples = sum(count > 0 for count in own.values())
    tokens_of = {p: sum(own[p, i] for i in range(len(prompts[p]))) for p in kept}
    num_prompts = sum(count > 0 for count in tokens_of.values())

    result = Reference(
        loss=0.0,
        gradient=[[[0.0] * len(sample) for sample in prompt] for prompt in prompts],
        num_clipped=0,
        num_tokens=total_tokens,
        num_corrected={"": 0, "below": 0, "above": 0},
    )
    for p in kept:
        for i, sample in enumerate(prompts[p]):
            rows = corrected_losses(sample, advantage[p][i], loss, bounds, correction or {"type": "none"})
            for place, value, clipped, slopes, side in rows:
                if kl is not None and kl["where"] == "loss":
                    estimate, slope = kl_estimate(kl["estimator"], sample[place][0], sample[place][3])
                    value += kl["coefficient"] * estimate
                    slopes[place] = slopes.get(place, 0.0) + kl["coefficient"] * slope
                if entropy is not None:
                    value -= entropy[0] * entropy[1][p][i][place]
                if aggregation == "sum":
                    share = 1.0
                elif aggregation == "token":
                    share = 1 / total_tokens
                elif aggregation == "constant":
                    share = 1 / num_samples / token_limit
                elif aggregation == "sample":
                    share = 1 / num_samples / own[p, i]
                else:
                    share = 1 / num_prompts / tokens_of[p]
                result.loss += share * value
                result.num_clipped += clipped
                result.num_corrected[side] += 1
                for t, slope in slopes.items():
                    result.gradient[p][i][t] += share * slope
    return result
