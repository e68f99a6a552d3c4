"""Forecasts in words: the lines that the command and the page show, and what a reader must know to read them."""

from typing import TYPE_CHECKING

from ablations.forecast.forecasts import or_dots
from ablations.text import interval_text
from ablations.verdict.interval import Interval

if TYPE_CHECKING:
    from ablations.forecast.forecasts import Crossing
    from ablations.forecast.of_sweep import SweepForecast


def computes_text(interval: Interval | None) -> str:
    """`410 [300, 620]`; `…` for an end without a number, and for an estimate without one."""
    if interval is None:
        return "…"
    return f"{or_dots(interval.estimate)} [{or_dots(interval.lo)}, {or_dots(interval.hi)}]"


def budget_lines(found: "SweepForecast", index: int) -> list[dict[str, str]]:
    """One line a variant at the budget of this index, by column."""
    lines = []
    for one in found.variants:
        at, cost = one.outlooks[index].prediction, one.outlooks[index].cost_of_a_point
        less = one.outlooks[index].difference
        lines.append(
            {
                "variant": one.variant,
                "pass rate": interval_text(at.estimate, at.lo, at.hi, ".3f"),
                f"less {found.reference}'s": interval_text(less.estimate, less.lo, less.hi, "+.3f") if less else "",
                "P(wins)": f"{one.outlooks[index].chance.wins:.2f}",
                "0.01 more costs": computes_text(cost),
            }
        )
    return lines


def variant_lines(found: "SweepForecast") -> list[dict[str, str]]:
    """One line a variant with what does not depend on the budget, by column."""
    reference, lines = found.reference, []
    for one in found.variants:
        reach = {} if found.score is None else {f"reaches {found.score:g} at": computes_text(one.reach)}
        crossing = dict(zip(("at", "probability", "leads"), crossing_texts(one.crossing), strict=True))
        lines.append(
            {
                "variant": one.variant,
                "seeds": f"{one.num_seeds}",
                **reach,
                f"crosses {reference} at": crossing["at"],
                "P(crosses)": crossing["probability"],
                f"then leads {reference}": crossing["leads"],
                "estimates by": "eq. 1" if one.is_by_eq1 else "all families",
                "weight of eq. 1": f"{one.eq1_weight:.2f}",
            }
        )
    return lines


def crossing_texts(crossing: "Crossing | None") -> tuple[str, str, str]:
    """Where, how likely at all, and who leads afterwards with its share of the draws; all empty for no crossing."""
    if crossing is None:
        return "", "", ""
    leads = {True: "yes", False: "no", None: "cannot tell"}[crossing.leads]
    share = f"{leads}, {crossing.leads_after:.2f}"
    if crossing.compute is None:
        return "", f"{crossing.probability:.2f}", share
    at = computes_text(Interval(estimate=crossing.compute, lo=crossing.lo, hi=crossing.hi))
    return at, f"{crossing.probability:.2f}", share


def notes(found: "SweepForecast") -> list[str]:
    """Model error, the run-to-run difference, and what a crossing is."""
    from ablations.forecast.forecasts import UNTOLD

    if not found.variants:
        return []
    weights = sorted(found.weights.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{name} {weight:.2f}" for name, weight in weights)
    chances = [one.outlooks[0].chance for one in found.variants]
    rules = " or ".join(dict.fromkeys(chance.rule for chance in chances))
    said = [
        "In the fitted range everything is by eq. 1. Beyond it intervals hold other families, fully from twice the "
        f"range on, weighed by AICc and a prior of 1/2 for eq. 1 (mean weights): {listed}. Estimates are by eq. 1 "
        f"as long as the 80 % interval holds them, else the median over all families{_worse(found)}. A difference is "
        "taken under one law, by eq. 1 where both are.",
        f"P(wins): share of joint draws, with {rules}.",
        "Crossings, the last of two curves, are looked for from the first reading fitted to 100 times the last; who "
        f"leads then cannot be told between {UNTOLD[0]:g} and {UNTOLD[1]:g} of the draws. `…` is beyond that, or a "
        "curve that may be flat.",
    ]
    if any(chance.is_assumed for chance in chances):
        said.append("Pass rates, crossings and costs of one or two seeds are about these runs, not their recipe.")
    return said


def _worse(found: "SweepForecast") -> str:
    worse = [f"{one.variant} ({one.eq1_weight:.2f})" for one in found.variants if not one.is_by_eq1]
    return f"; eq. 1 fits worse than others, by its weight, for {', '.join(worse)}" if worse else ""
