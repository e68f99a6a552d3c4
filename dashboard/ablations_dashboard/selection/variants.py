"""The choice of the variants of a page: those in colour, and those in grey."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from ablations.findings.results import Results
from ablations.report.figures.colours import MOST_COLOURED, leading
from ablations_dashboard.escape import in_markdown
from ablations_dashboard.selection.url import pick_several


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The variants of a page: `Shown(focus=("scalerl", "loo-loss"), others=("loo-batch",))`."""

    focus: tuple[str, ...]
    """Variants in colour."""
    others: tuple[str, ...]
    """Variants in grey."""

    @property
    def names(self) -> tuple[str, ...]:
        """All variants of the page."""
        return self.focus + self.others


def choose_variants(results: Results) -> Shown:
    """Choose variants by click or search; by default all of them, or the best of many."""
    plan = results.plan
    names = [variant.name for variant in results.variants]
    if len(names) <= MOST_COLOURED:  # a click each; more are searched for
        chosen = pick_several(
            "variant",
            "Variants (all if none is chosen)",
            names,
            scope=plan.sweep,
            widget=st.sidebar.pills,
            selection_mode="multi",
            format_func=in_markdown,
        )
        return Shown(focus=tuple(chosen or names), others=())
    chosen = pick_several(
        "variant", "Find variants (the best if none is chosen)", names, scope=plan.sweep, widget=st.sidebar.multiselect
    )
    chosen = tuple(chosen) or leading(results)
    return Shown(focus=chosen, others=tuple(name for name in names if name not in chosen))


def only(results: Results, names: Sequence[str]) -> Results:
    """The results of these variants and of the baseline, in the colours of the whole plan."""
    kept = {*names, results.plan.reference}
    comparison = results.comparison and replace(
        results.comparison, variants=tuple(line for line in results.comparison.variants if line.name in kept)
    )
    variants = tuple(variant for variant in results.variants if variant.name in kept)
    return replace(results, variants=variants, comparison=comparison, chosen_from=results)
