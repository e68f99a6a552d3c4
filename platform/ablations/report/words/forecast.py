"""Forecasts in words: the lines of the command and of the page, and notes for their readers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ablations.answers.forecasts import or_dots
from ablations.answers.interval import Interval
from ablations.report.words.comparison import unkept_results_note
from ablations.text import interval_text

if TYPE_CHECKING:
    from ablations.answers.forecasts import Crossing
    from ablations.findings.results import Results
    from ablations.findings.sweep_forecast import Outlook, SweepForecast, VariantForecast


def computes_text(interval: Interval | None) -> str:
    """The text `410 [300, 620]`; `…` for a missing end or estimate."""
    if interval is None:
        return "…"
    return f"{or_dots(interval.estimate)} [{or_dots(interval.lo)}, {or_dots(interval.hi)}]"


@dataclass(frozen=True, kw_only=True)
class BudgetLine:
    """A variant at one budget as text.

    BudgetLine(variant="loo-loss", pass_rate="0.540 [0.531, 0.549]", difference="-0.068 [-0.092, -0.044]", wins="0.00",
               cost_of_a_point="9,210 [6,110, …]")
    """

    variant: str
    pass_rate: str
    difference: str
    wins: str
    cost_of_a_point: str


@dataclass(frozen=True, kw_only=True)
class CurveLine:
    """The text of a forecast that does not depend on the budget.

    CurveLine(variant="loo-loss", seeds="1", reach="812.1 [700.2, 950.3]", crosses_at="", crosses="0.00",
              leads="no, 0.00", estimates_by="eq. 1", eq1_weight="0.62")
    """

    variant: str
    seeds: str
    reach: str
    crosses_at: str
    crosses: str
    leads: str
    estimates_by: str
    eq1_weight: str


def budget_lines(found: "SweepForecast", index: int) -> list[BudgetLine]:
    """One line per variant at the budget of this index."""
    return [_budget_line(one.variant, one.outlooks[index]) for one in found.variants]


def _budget_line(variant: str, outlook: "Outlook") -> BudgetLine:
    at, less = outlook.prediction, outlook.difference
    return BudgetLine(
        variant=variant,
        pass_rate=interval_text(at.estimate, at.lo, at.hi, ".3f"),
        difference=interval_text(less.estimate, less.lo, less.hi, "+.3f") if less else "",
        wins=f"{outlook.chance.wins:.2f}",
        cost_of_a_point=computes_text(outlook.cost_of_a_point),
    )


def curve_lines(found: "SweepForecast") -> list[CurveLine]:
    """One line per variant."""
    return [_curve_line(one) for one in found.variants]


def _curve_line(one: "VariantForecast") -> CurveLine:
    crosses_at, crosses, leads = crossing_texts(one.crossing)
    return CurveLine(
        variant=one.variant,
        seeds=f"{one.num_seeds}",
        reach=computes_text(one.reach),
        crosses_at=crosses_at,
        crosses=crosses,
        leads=leads,
        estimates_by="eq. 1" if one.is_by_eq1 else "all families",
        eq1_weight=f"{one.eq1_weight:.2f}",
    )


def crossing_texts(crossing: "Crossing | None") -> tuple[str, str, str]:
    """The place, the probability, and the leader beyond with its share of the draws; all empty without a crossing."""
    if crossing is None:
        return "", "", ""
    leads = {True: "yes", False: "no", None: "cannot tell"}[crossing.leads]
    share = f"{leads}, {crossing.leads_after:.2f}"
    if crossing.compute is None:
        return "", f"{crossing.probability:.2f}", share
    at = computes_text(Interval(estimate=crossing.compute, lo=crossing.lo, hi=crossing.hi))
    return at, f"{crossing.probability:.2f}", share


def forecast_notes(found: "SweepForecast") -> list[str]:
    """Notes on model error, the run-to-run difference, and crossings."""
    from ablations.answers.forecasts import UNTOLD

    if not found.variants:
        return []
    weights = sorted(found.weights.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{name} {weight:.2f}" for name, weight in weights)
    rule = found.variants[0].outlooks[0].chance.rule
    said = [
        "Within the fitted range every number comes from eq. 1. Beyond it the intervals also cover other families "
        "of curves, with their full weight from twice the range on, weighted by AICc and a prior of 1/2 for eq. 1 "
        f"(mean weights: {listed}). An estimate is that of eq. 1 if the 80 % interval contains it, else the median "
        f"over all families{_worse(found)}. A difference is one of levels up to the compute that all runs have "
        "reached, and one of curves of the same family beyond.",
        f"P(wins) is the share of joint draws in which the variant is highest, with {rule}.",
        "A crossing is the last one of two curves between the first evaluation fitted and 100 times the last. The "
        f"leader beyond it counts as unknown between {UNTOLD[0]:g} and {UNTOLD[1]:g} of the draws. `…` stands for a "
        "compute beyond that range, or for a curve that may be flat.",
    ]
    if any(one.num_seeds == 1 for one in found.variants):
        said.append("With one seed, pass rates, crossings and costs describe the run, not its recipe.")
    return said


def _worse(found: "SweepForecast") -> str:
    worse = [f"{one.variant} ({one.eq1_weight:.2f})" for one in found.variants if not one.is_by_eq1]
    return f"; eq. 1 fits worse than others for {', '.join(worse)}, by its weight" if worse else ""


def unkept_forecast_note(results: "Results", found: "SweepForecast") -> str:
    """A note that the forecast is not saved, and its consequence; empty if it is saved, or if its fits are not saved
    either."""
    if results.sweep is None or not found.unkept or unkept_results_note(results):
        return ""
    folder = results.sweep.folder
    return (
        f"The forecast is not cached because {folder} is not writable ({found.unkept}); every forecast is made again."
    )
