"""The headings of the tables that the page and the dashboard share; the headings of the terminal are narrower
(`tables`)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from ablations.answers.paper_rule import PAPER_MARGIN, PAPER_RULE
from ablations.findings.paper_comparison import PaperComparison
from ablations.findings.sweep_forecast import SweepForecast
from ablations.report.words.forecast import BudgetLine, CurveLine
from ablations.report.words.paper import PaperLine


def under(headings: Mapping[str, str], lines: Sequence[PaperLine | BudgetLine | CurveLine]) -> list[dict[str, str]]:
    """The cells of each line by heading; `headings` maps fields to headings and sets the columns and their order."""
    return [{heading: asdict(line)[field] for field, heading in headings.items()} for line in lines]


def paper_headings(comparison: PaperComparison) -> dict[str, str]:
    """Headings of the paper's comparison, by field of `PaperLine`."""
    return {
        "variant": "variant",
        "seeds": "seeds",
        "A": f"A ±{PAPER_MARGIN}",
        "delta_A": f"A − {comparison.reference}",
        "paper_rule": PAPER_RULE,
        "B": "B",
        "C_mid": "C_mid",
        "B_at_common_A": f"B at A {comparison.common_A:.3f}",
        "delta_B": f"B − {comparison.reference}",
        "edges": "on the grid's end",
    }


def budget_headings(found: SweepForecast) -> dict[str, str]:
    """Headings of a forecast at one budget, by field of `BudgetLine`."""
    return {
        "variant": "variant",
        "pass_rate": "pass rate",
        "difference": f"− {found.reference}",
        "wins": "P(wins)",
        "cost_of_a_point": "compute for +0.01",
    }


def curve_headings(found: SweepForecast) -> dict[str, str]:
    """Headings of a forecast at any budget, by field of `CurveLine`."""
    reach = {} if found.score is None else {"reach": f"reaches {found.score:g} at"}
    return {
        "variant": "variant",
        "seeds": "seeds",
        **reach,
        "crosses_at": f"crosses {found.reference} at",
        "crosses": "P(crosses)",
        "leads": f"then leads {found.reference}",
        "estimates_by": "estimates by",
        "eq1_weight": "weight of eq. 1",
    }
