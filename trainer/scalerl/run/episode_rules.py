"""Rules about the ends, rewards and time of episodes, in the form of `scalerl.run.health`.

    environment_fails    a twentieth of the episodes is thrown away, as their environment ran out of time or failed
    rules_broken         half of the episodes end because the policy breaks the rules
    episodes_cut         half of them end at the limit of turns or of tokens, and hardly fewer than at the start
    wins_do_not_follow   rewards rise by a tenth, and the share of won episodes stays
    environment_slow     half of the generators' time is spent waiting for environments

This module does not load torch.
"""

from scalerl.run.idle_steps import TrainRows

MANY_FAILED, MANY_ENDS, CUT_STAYS, SLOW = 0.05, 0.5, 0.05, 0.5
EARNED_ROSE, WINS_STAY, NEARLY_ALL_WON = 0.1, 0.02, 0.9
"""Rise of the rewards; change of the share of won episodes that counts as none; share that can hardly rise."""
FIRST_ROWS = 10
"""Rows at the start with which the last ones are compared."""


def _share(rows: TrainRows, *ends: str) -> float | None:
    """Mean share of episodes that ended for one of these reasons; None without episodes."""
    logged = (row.get("ends") for row in rows)  # a program of the user's own may log something else
    found = [sum(one.get(end, 0.0) for end in ends) for one in logged if isinstance(one, dict)]
    return sum(found) / len(found) if found else None


def environment_fails(early: TrainRows, recent: TrainRows) -> str | None:
    """Warn if episodes are lost."""
    late, failed = _share(recent, "timed_out"), _share(recent, "error")
    if late is None or failed is None or late + failed <= MANY_FAILED:
        return None
    return (
        f"{late:.0%} of episodes end by time-out and {failed:.0%} by an error of their environment; none is trained on"
    )


def rules_broken(early: TrainRows, recent: TrainRows) -> str | None:
    """Warn if the policy mostly breaks the rules."""
    share, before = _share(recent, "rules_broken"), _share(early[:FIRST_ROWS], "rules_broken")
    if share is None or share < MANY_ENDS:
        return None
    return f"{share:.0%} of episodes end because the policy breaks the rules, {before or 0.0:.0%} at the start"


def episodes_cut(early: TrainRows, recent: TrainRows) -> str | None:
    """Warn if most episodes end at a limit, and hardly fewer than at the start."""
    limits = {"too_many_turns": "at the limit of turns", "too_long": "for want of room for another turn"}
    share, before = _share(recent, *limits), _share(early[:FIRST_ROWS], *limits)
    if share is None or before is None or share < max(MANY_ENDS, before - CUT_STAYS):
        return None
    parts = [f"{part:.0%} {where}" for end, where in limits.items() if (part := _share(recent, end))]
    return f"episodes end before they are won or lost: {' and '.join(parts)}, {before:.0%} at the start"


def wins_do_not_follow(early: TrainRows, recent: TrainRows) -> str | None:
    """Warn if rewards rise and wins do not."""
    first = early[:FIRST_ROWS]
    won, won_before = _share(recent, "won"), _share(first, "won")
    earned, before = ([row["earned"] for row in rows if "earned" in row] for rows in (recent, first))
    if won is None or won_before is None or not earned or not before or won >= NEARLY_ALL_WON:
        return None
    now, then = sum(earned) / len(earned), sum(before) / len(before)
    if now < then + EARNED_ROSE or abs(won - won_before) > WINS_STAY:
        return None
    return f"an episode earns {now:.2f}, {then:.2f} at the start, and {won:.0%} are won, {won_before:.0%} at the start"


def environment_slow(early: TrainRows, recent: TrainRows) -> str | None:
    """Warn if generators mostly wait for environments."""
    clocks = (
        [row["device_s"].get("generator", {}) for row in (recent[0], recent[-1]) if "device_s" in row] if recent else []
    )
    if len(clocks) < 2:
        return None
    spent = sum(clocks[1].values()) - sum(clocks[0].values())
    waited = clocks[1].get("wait_environment", 0.0) - clocks[0].get("wait_environment", 0.0)
    if spent <= 0 or waited < SLOW * spent:
        return None
    return f"generators wait for environments in {waited / spent:.0%} of their time"
