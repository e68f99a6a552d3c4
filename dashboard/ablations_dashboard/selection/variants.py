"""The choices on the pages: the sweep, others beside it, the baseline, and the variants in colour."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import streamlit as st

from ablations.errors import AblationsError
from ablations.findings.results import Results
from ablations.findings.several_sweeps import why_apart
from ablations.home.home import Home, find_home
from ablations.home.plan import Plan
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.nearest_name import did_you_mean
from ablations.report.colours import MOST_COLOURED, leading
from ablations_dashboard.escape import in_code, in_markdown
from ablations_dashboard.selection.url import in_url, pick, pick_several


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


def choose_sweep() -> StartedSweep:
    """The sweep named in the URL, or the last started one; without it, or without any sweep, the page ends here with a
    message."""
    home = find_home(None)
    names = home.sweep_names()
    if not names:
        st.title("Ablations")
        st.info(no_sweep(home))
        st.stop()
    wanted = in_url("sweep")
    if wanted and wanted[0] not in names:
        st.title("Ablations")
        near = in_markdown(did_you_mean(wanted[0], names, "sweeps"))
        st.error(f"No sweep {in_code(wanted[0])} in {in_code(str(home.path))}; {near}")
        st.stop()
    name = pick("sweep", "Sweep", names, default=names[0], widget=st.sidebar.selectbox, is_kept=True)
    st.sidebar.caption(f"Home folder {in_code(str(home.path))}")
    return read_sweep(home, name)


def no_sweep(home: Home) -> str:
    """Advice for a home folder without a sweep."""
    command = f"platform sweep sweeps/loo.yaml {home.option}"
    return f"No sweep in {in_code(str(home.path))}. {in_code(command)} makes one."


def choose_others(sweep: StartedSweep) -> list[StartedSweep]:
    """Choose sweeps to show together with this one, among those comparable with it."""
    found = {one.name: one for one in _comparable(sweep)}
    if not found:
        return []
    chosen = pick_several("with", "Compare with sweeps", list(found), scope=sweep.name, widget=st.sidebar.multiselect)
    return [found[name] for name in chosen]


def _comparable(sweep: StartedSweep) -> Iterator[StartedSweep]:
    for name in sweep.home.sweep_names():
        with suppress(AblationsError):  # an unreadable sweep, which the page of sweeps reports
            other = read_sweep(sweep.home, name)
            if name != sweep.name and not why_apart(sweep, other):
                yield other


def choose_baseline(plan: Plan) -> str:
    """Choose the variant that all others are compared with; the plan's reference by default."""
    names = [variant.name for variant in plan.variants]
    return pick("baseline", "Baseline", names, default=plan.reference, scope=plan.sweep, widget=st.sidebar.selectbox)


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
    return replace(results, variants=variants, comparison=comparison)
