"""A comparison in words: one line of cells and one sentence per variant, and what each verdict means.

The report and the page show the same words.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ablations.fit.asymptote import EQ1_DOUBTED, VERDICT_MEANINGS
from ablations.fit.words import other_prompts
from ablations.home.home import Home
from ablations.text import changes_text, compute_interval_text, compute_text, counted, interval_text
from ablations.verdict.compare import VariantResult
from ablations.verdict.results import FittedVariant, Results, shown_numbers
from ablations.verdict.rules import PAPER_MARGIN, Difference, Efficiency, LevelDifference
from ablations.verdict.run_to_run import OtherSweeps

LEVELS: dict[LevelDifference, str] = {
    "level up": "the 95 % interval of the difference in level lies above 0",
    "level down": "the 95 % interval of the difference in level lies below 0",
    "no difference seen": "the interval holds 0 and is narrow enough to rule out a large difference",
    "cannot tell": "the interval holds 0 and is too wide to say more, or the readings begin too late",
    "reference": "the variant that all others are compared with",
}
DIFFERENCES: dict[Difference, str] = {
    "ceiling up": "the 95 % interval of the difference in A lies above 0",
    "ceiling down": "the 95 % interval of the difference in A lies below 0",
    "no difference seen": "the interval holds 0 and is narrow enough to rule out a large difference",
    "cannot tell": "the interval holds 0, or has no end, and is too wide to say more",
    "reference": "the variant that all others are compared with",
}
EFFICIENCIES: dict[Efficiency, str] = {
    "less compute": "the 95 % interval of the compute ratio lies below 1",
    "more compute": "the 95 % interval of the compute ratio lies above 1",
    "no difference seen": "the interval holds 1 and is narrow enough to rule out a large difference",
    "cannot tell": "the interval holds 1, or has no end, and is too wide to say more",
    "reference": "the variant that all others are compared with",
}
SAID_OF_THE_LEVEL: dict[LevelDifference, str] = {
    "level up": "higher at equal compute",
    "level down": "lower at equal compute",
    "no difference seen": "no difference seen at equal compute",
    "cannot tell": "the levels at equal compute cannot be told apart",
}
SAID_OF_THE_CEILING: dict[Difference, str] = {
    "no difference seen": "no difference seen in the ceiling",
    "cannot tell": "the ceilings cannot be told apart",
}
SAID_OF_COMPUTE: dict[Efficiency, str] = {
    "less compute": "less compute to the common target",
    "more compute": "more compute to the common target",
    "no difference seen": "no difference seen in compute",
    "cannot tell": "cannot tell which needs less compute",
}
NO_FIT = "no fit"
MOST_CHANGES = 16
"""Variants below whose table stands what each of them changes."""
LEVEL_NOTE = (
    "The level is the mean pass rate over the last third of the compute that both have spent. "
    "It is read off the readings, without a law."
)
PAPER_RULE = f"±{PAPER_MARGIN} rule"
PAPER_RULE_NOTE = (
    f"The {PAPER_RULE} is the paper's: two A within {PAPER_MARGIN} are equal, whatever their intervals. "
    "Use it to compare with the paper, not to decide."
)
SAID_BY_THE_PAPER_RULE: dict[Difference, str] = {
    "ceiling up": "up",
    "ceiling down": "down",
    "no difference seen": "equal",
    "cannot tell": "cannot tell",
    "reference": "",
}


@dataclass(frozen=True, kw_only=True)
class Line:
    """One variant of a comparison as text; a cell without a number is empty.

    Line(variant="loo-loss", changes="loss.type = dapo", seeds="1 of 1", level="level down", own_level="0.541",
         delta_level="-0.049 [-0.071, -0.027]", delta_level_joint="[-0.080, -0.018]", A="0.552 [0.540, 0.566]",
         A_eq1="0.552 [0.543, 0.561]", delta_A="-0.058 [-0.087, -0.029]", delta_A_joint="[-0.099, -0.017]",
         ceiling="ceiling down", paper_rule="down", compute_ratio="1.20 [1.00, 1.40]",
         compute_ratio_joint="[0.90, 1.50]", efficiency="no difference seen", B="1.80", C_mid="2,600", R_0="0.310",
         fit="resolved", cost="8000", published="0.59, 1.77, 2600")
    """

    variant: str
    changes: str
    """Of the reference's settings."""
    seeds: str
    level: str
    own_level: str
    """Not less the reference's."""
    delta_level: str
    delta_level_joint: str
    A: str
    A_eq1: str
    delta_A: str
    delta_A_joint: str
    ceiling: str
    paper_rule: str
    compute_ratio: str
    compute_ratio_joint: str
    efficiency: str
    B: str
    C_mid: str
    R_0: str
    fit: str
    cost: str
    published: str


def line_of(results: Results, variant: FittedVariant) -> Line:
    """The variant's line of the comparison as text."""
    compared = results.compared(variant.name)
    shown = shown_numbers(compared) if compared else {}
    published = results.plan.published.get(variant.name, {})
    return Line(
        variant=variant.name,
        changes=changes_text(variant.overrides),
        seeds=f"{len(variant.fits)} of {len(variant.runs)}",
        level=compared.level_difference if compared else NO_FIT,
        own_level="" if compared is None or compared.level is None else f"{compared.level:.3f}",
        delta_level=_level_text(compared) if compared else "",
        delta_level_joint=_joint_text(compared, "delta_level", "+.3f"),
        A=asymptote.cell() if (asymptote := results.asymptote(variant)) else NO_FIT,
        A_eq1=compared.asymptote_under_eq1.cell() if compared else "",
        delta_A=_difference_text(compared) if compared else "",
        delta_A_joint=_joint_text(compared, "delta_A", "+.3f"),
        ceiling=compared.difference if compared else NO_FIT,
        paper_rule=SAID_BY_THE_PAPER_RULE[compared.paper_rule] if compared else "",
        compute_ratio=_ratio_text(compared) if compared else "",
        compute_ratio_joint=_joint_text(compared, "compute_ratio", ".2f"),
        efficiency=compared.efficiency if compared else NO_FIT,
        B=interval_text(shown.get("B"), None, None, ".2f"),
        C_mid=compute_interval_text(shown.get("C_mid"), None, None),
        R_0=f"{compared.R_0:.3f}" if compared else "",
        fit=_fit_cell(results, variant),
        cost=f"{variant.cost_gpu_hours:.0f}" if variant.cost_gpu_hours >= 10 else compute_text(variant.cost_gpu_hours),
        published=", ".join(f"{published[name]:g}" for name in ("A", "B", "C_mid") if published),
    )


def _fit_cell(results: Results, variant: FittedVariant) -> str:
    line = results.compared(variant.name)
    stopped = sum(stop.variant == variant.name for stop in results.stopped.values())
    said = line.verdict if line else NO_FIT
    if line and line.doubts_eq1:
        said += f"; {EQ1_DOUBTED}"
    return said if not stopped else f"{said}; stopped" if stopped == len(variant.runs) else f"{said}; {stopped} stopped"


def numbers(results: Results, variant: FittedVariant) -> dict[str, float | str | None]:
    """The variant's line as numbers, for a CSV file: the comparison, cost, overrides and published fit.

    None where there is no number that may be shown, see `shown_numbers`.
    """
    line = results.compared(variant.name)
    shown = shown_numbers(line) if line else {}
    published = results.plan.published.get(variant.name, {})
    fields = [name for name in VariantResult.__dataclass_fields__ if name not in ("curve", "window", "cost")]
    return {
        "variant": variant.name,
        "reference": results.plan.reference,
        "overrides": str(variant.overrides or ""),
        "cost_gpu_hours": variant.cost_gpu_hours,
        **{name: shown.get(name) for name in fields},
        "window_lo": line.window[0] if line else None,
        "window_hi": line.window[1] if line else None,
        **{f"published_{name}": published.get(name) for name in ("A", "B", "C_mid")},
        "reasons": "; ".join(variant.reasons),
    }


def sentence(results: Results, variant: FittedVariant, line: Line) -> str:
    """What was found of a variant, with its baseline and numbers of seeds; its numbers as they stand in `line`."""
    reference, compared = results.plan.reference, results.compared(variant.name)
    if compared is None:
        return f"{variant.name}: no comparison. " + ("; ".join(variant.reasons) or f"{reference} has no fit") + "."
    ceiling = f"{f'A {line.A}' if compared.asymptote.rises else line.A} ({counted(len(variant.fits), 'seed')})"
    if variant.name == reference:
        said = f"{variant.name}, the reference: {ceiling}; fit: {compared.verdict}"
    else:
        said = f"{variant.name}: {verdicts_said(compared)}. "
        if line.delta_level:
            said += f"Level {line.own_level}, {line.delta_level} against {reference}. "
        said += ceiling
        if line.delta_A:
            said += f", {line.delta_A} against {reference} ({counted(len(results.variant(reference).fits), 'seed')})"
        if compared.compute_ratio is not None:
            said += f"; {line.compute_ratio} times its compute to the common target"
    return "; no fit of ".join([said, *variant.reasons]) + "."


def verdicts_said(line: VariantResult) -> str:
    """The three verdicts of a variant in words: "lower at equal compute; ceiling down; more compute to the ..."."""
    level = SAID_OF_THE_LEVEL.get(line.level_difference, line.level_difference)
    ceiling = SAID_OF_THE_CEILING.get(line.difference, line.difference)
    return f"{level}; {ceiling}; {SAID_OF_COMPUTE.get(line.efficiency, line.efficiency)}"


def answers(results: Results) -> list[str]:
    """The question that the sweep file asks and, after how much compute, a line per variant: its verdicts in words."""
    plan = results.plan
    lines = results.comparison.variants if results.comparison else ()
    said = [
        f"{one.curve}, against {plan.reference}: {verdicts_said(one)}." for one in lines if one.curve != plan.reference
    ]
    asked = f"{plan.doc} After {plan.budget_gpu_hours:g} {plan.compute_name} per run:".lstrip()
    return [asked, *said] if said else []


def changes_said(results: Results, names: Mapping[str, str] | None = None) -> list[str]:
    """A line for every variant that says what it changes; of many, and of curves from elsewhere, none.

    `names` are other names of variants, as a table shows them.
    """
    called = names or {}
    changing = [variant for variant in results.variants if variant.overrides]
    if len(changing) > MOST_CHANGES:
        shown = " and ".join(f"`platform show {name}`" for name in (results.plan.sweep, *results.sweep.beside))
        return [f"{shown} {'say' if results.sweep.beside else 'says'} what each variant changes."]
    said = [
        f"{called.get(variant.name, variant.name)} changes {changes_text(variant.overrides)}." for variant in changing
    ]
    if any(variant.name == results.plan.reference for variant in changing):
        said.append(f"Changes are those of the sweep's own reference, not of {results.plan.reference}.")
    return said


def method(results: Results) -> str:
    """What a level is, what the intervals hold and what they leave out; empty when nothing is compared."""
    if results.comparison is None or len(results.comparison.variants) < 2:
        return ""
    spreads = results.comparison.spreads
    intervals = (
        f"{LEVEL_NOTE} Intervals hold 95 %: the error of each run, and the standard deviation between runs of one "
        f"recipe, in pass rate: of levels {spreads.level}; of A {spreads.ceiling}; at the target {spreads.target}."
    )
    prompts = other_prompts([fit for one in results.variants for fit in one.fits])
    others = _other_sweeps(results.comparison.others)
    return " ".join(filter(None, (together_said(results), intervals, others, prompts)))


def together_said(results: Results) -> str:
    """Which sweeps stand beside the first, which of them add nothing, and what holds for all; empty for one sweep."""
    sweep, plan = results.sweep, results.plan
    if not sweep.beside:
        return ""
    names = [variant.name for variant in plan.variants]
    added = [name for name in sweep.beside if any(one.endswith(f" ({name})") for one in names)]
    said = [f"A variant named with ({name}) is of that sweep." for name in added]
    said += [f"{name} adds nothing: all of its runs stand here already." for name in sweep.beside if name not in added]
    window = f"{compute_text(plan.fit_from_gpu_hours)} to {compute_text(plan.fit_to_gpu_hours)} {plan.compute_name}"
    return " ".join([*said, f"All runs are fitted in the window of {sweep.name}, {window}, and each counts once."])


def _other_sweeps(others: OtherSweeps) -> str:
    """Whose runs are counted beside the sweep's own, and which could not be read; empty where there are none."""
    said = []
    if others.sweeps:
        said.append(f"Other sweeps of the scale that count here: {', '.join(others.sweeps)}; --alone leaves them out.")
    if others.left_out:
        runs = counted(len(others.left_out), "run")
        first = others.left_out[0].rstrip(".")
        said.append(f"Left out, as it cannot be read: {runs} of other sweeps, {first}.")
    return " ".join(said)


def glossary(results: Results) -> list[tuple[str, str]]:
    """Every verdict that the table shows, by its column, with its meaning."""
    lines = results.comparison.variants if results.comparison else ()
    ceilings, efficiencies = {line.difference for line in lines}, {line.efficiency for line in lines}
    fits, levels = {line.verdict for line in lines}, {line.level_difference for line in lines}
    return [
        *((f"level: {name}", meaning) for name, meaning in LEVELS.items() if name in levels),
        *((f"ceiling: {name}", meaning) for name, meaning in DIFFERENCES.items() if name in ceilings),
        *((f"efficiency: {name}", meaning) for name, meaning in EFFICIENCIES.items() if name in efficiencies),
        *((f"fit: {name}", meaning) for name, meaning in VERDICT_MEANINGS.items() if name in fits),
    ]


def warnings(results: Results) -> list[str]:
    """What a reader must know before trusting the numbers."""
    found = []
    versions = results.code_versions
    if len(versions) > 1:
        found.append(f"The runs were trained with {len(versions)} versions of the code: {', '.join(versions)}.")
    if any(version.endswith("+dirty") for version in versions):
        found.append("Some runs were trained with code that had been edited since its commit (+dirty).")
    plan, stopped = results.plan, results.stopped
    unfinished = [run for run in results.runs if run.cost_gpu_hours < plan.budget_gpu_hours and run.id not in stopped]
    if plan.total_gpu_hours is not None:
        costs = [run.cost_gpu_hours for run in results.runs]
        bought = sum(results.allocation.bought.values()) if results.allocation else 0.0
        found.append(
            f"The runs share a total of {compute_text(plan.total_gpu_hours)} {plan.compute_name}; "
            f"{compute_text(bought)} is given out so far. "
            f"They were trained for {compute_text(min(costs))} to {compute_text(max(costs))}."
        )
    elif unfinished:
        have = "has" if len(unfinished) == 1 else "have"
        found.append(f"{len(unfinished)} of {counted(len(results.runs), 'run')} {have} not reached the budget.")
    for stop in results.stops.values():
        if stop.run in stopped or not stop.ends_run:
            found.append(f"{stop.variant}, seed {stop.seed}: {stop.text(plan)}.")
    found += [f"{run.variant}, seed {run.seed}: {text}." for run in results.runs for text in run.warnings]
    return found


def _level_text(line: VariantResult) -> str:
    """Level less the reference's with its interval; empty for the reference itself."""
    if line.level_difference == "reference":
        return ""
    return interval_text(line.delta_level, line.delta_level_lo, line.delta_level_hi, "+.3f")


def _difference_text(line: VariantResult) -> str:
    """A less the reference's A with its interval; empty for the reference itself."""
    if line.difference == "reference":
        return ""
    return interval_text(line.delta_A, line.delta_A_lo, line.delta_A_hi, "+.3f")


def _ratio_text(line: VariantResult) -> str:
    """Compute that is needed over what the reference needs, with its interval; empty for the reference itself."""
    if line.difference == "reference":
        return ""
    return interval_text(line.compute_ratio, line.compute_ratio_lo, line.compute_ratio_hi, ".2f")


def unkept_note(home: Home, reasons: Iterable[str]) -> str:
    """That fits are not kept in the home folder, and what follows; empty where none of the reasons says so."""
    if not (why := next(filter(None, reasons), "")):
        return ""
    return f"Fits are not kept, as {home.path} cannot be written ({why}); each command makes them again."


def unkept_results_note(results: Results) -> str:
    """The same of what was read of a sweep."""
    others = results.comparison.others.unkept if results.comparison else ""
    return unkept_note(results.sweep.home, [*(run.unkept for run in results.runs), others])


def joint_note(results: Results) -> str:
    """What the corrected intervals are; empty where one variant alone is compared."""
    comparisons = len(results.comparison.variants) - 1 if results.comparison else 0
    if comparisons < 2:
        return ""
    return f"corrected for {comparisons} comparisons (Bonferroni), so that all hold at once in 95 % of studies"


def _joint_text(line: VariantResult | None, name: str, form: str) -> str:
    """The corrected interval of a difference alone, `[-0.080, -0.018]`; empty for the reference and without one."""
    if line is None or line.difference == "reference":
        return ""
    return interval_text(None, getattr(line, f"{name}_joint_lo"), getattr(line, f"{name}_joint_hi"), form)
