"""Forecasts in words: the rows of the command and of the page, and notes for their readers."""

from ablations.answers.crossings import UNTOLD, Crossing
from ablations.answers.forecasts import or_dots
from ablations.answers.interval import Interval
from ablations.findings.sweep_forecast import SweepForecast
from ablations.text import interval_text


def computes_text(interval: Interval | None) -> str:
    """The text `410 [300, 620]`; `…` for a missing end or estimate."""
    if interval is None:
        return "…"
    return f"{or_dots(interval.estimate)} [{or_dots(interval.lo)}, {or_dots(interval.hi)}]"


def budget_rows(found: SweepForecast, index: int) -> list[dict[str, str]]:
    """The cells of each variant by heading, at the budget of this index."""
    rows = []
    for one in found.variants:
        outlook = one.outlooks[index]
        at, less = outlook.prediction, outlook.difference
        rows.append(
            {
                "variant": one.variant,
                "pass rate": interval_text(at.estimate, at.lo, at.hi, ".3f"),
                f"− {found.reference}": interval_text(less.estimate, less.lo, less.hi, "+z.3f") if less else "",
                "P(wins)": f"{outlook.chance.wins:.2f}",
                "compute for +0.01": computes_text(outlook.cost_of_a_point),
            }
        )
    return rows


def curve_rows(found: SweepForecast) -> list[dict[str, str]]:
    """The cells of each variant by heading, as far as they do not depend on the budget."""
    rows = []
    for one in found.variants:
        crosses_at, crosses, leads = crossing_texts(one.crossing)
        reach = {} if found.score is None else {f"reaches {found.score:g} at": computes_text(one.reach)}
        rows.append(
            {
                "variant": one.variant,
                "seeds": f"{one.num_seeds}",
                **reach,
                f"crosses {found.reference} at": crosses_at,
                "P(crosses)": crosses,
                f"then leads {found.reference}": leads,
                "estimates by": "eq. 1" if one.is_by_eq1 else "all families",
                "weight of eq. 1": f"{one.eq1_weight:.2f}",
            }
        )
    return rows


def crossing_texts(crossing: Crossing | None) -> tuple[str, str, str]:
    """The place, the probability, and the leader beyond with its share of the draws; all empty without a crossing."""
    if crossing is None:
        return "", "", ""
    leads = {True: "yes", False: "no", None: "cannot tell"}[crossing.leads]
    at = ""
    if crossing.compute is not None:
        at = computes_text(Interval(estimate=crossing.compute, lo=crossing.lo, hi=crossing.hi))
    return at, f"{crossing.probability:.2f}", f"{leads}, {crossing.leads_after:.2f}"


def forecast_notes(found: SweepForecast) -> list[str]:
    """Notes on model error, the run-to-run difference, and crossings."""
    if not found.variants:
        return []
    weights = sorted(found.weights.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{name} {weight:.2f}" for name, weight in weights)
    rule = found.variants[0].outlooks[0].chance.rule
    worse = [f"{one.variant} ({one.eq1_weight:.2f})" for one in found.variants if not one.is_by_eq1]
    fits_worse = f"; eq. 1 fits worse than others for {', '.join(worse)}, by its weight" if worse else ""
    said = [
        "Within the fitted range every number comes from eq. 1. Beyond it the intervals also cover other families "
        "of curves, with their full weight from twice the range on, weighted by AICc and a prior of 1/2 for eq. 1 "
        f"(mean weights: {listed}). An estimate is that of eq. 1 if the 80 % interval contains it, else the median "
        f"over all families{fits_worse}. A difference is one of levels up to the compute that all runs have "
        "reached, and one of curves of the same family beyond.",
        f"P(wins) is the share of joint draws in which the variant is highest, with {rule}.",
        "A crossing is the last one of two curves between the first evaluation fitted and 100 times the last. The "
        f"leader beyond it counts as unknown between {UNTOLD[0]:g} and {UNTOLD[1]:g} of the draws. `…` stands for a "
        "compute beyond that range, or for a curve that may be flat.",
    ]
    if any(one.num_seeds == 1 for one in found.variants):
        said.append("With one seed, pass rates, crossings and costs describe the run, not its recipe.")
    return said
