"""The variants that a figure draws in colour: the reference and those with the highest level."""

from ablations.findings.results import Results
from ablations.report.colours import MOST_COLOURED, Style, styles


def leading(results: Results) -> tuple[str, ...]:
    """The reference and the variants with the highest level, `MOST_COLOURED` in all, in the plan's order."""
    names = [variant.name for variant in results.variants]
    levels = {name: level for name in names if (level := _height(results, name)) is not None}
    best = sorted(levels, key=levels.__getitem__, reverse=True)
    best += [name for name in names if name not in levels]
    reference = results.plan.reference
    chosen = {reference, *[name for name in best if name != reference][: MOST_COLOURED - 1]}
    return tuple(name for name in names if name in chosen)


def look_of(results: Results) -> dict[str, Style]:
    """Colour and marker of each variant in a figure of all variants: the leading ones in colour, the others grey."""
    return styles(results.plan, leading(results))


def _height(results: Results, name: str) -> float | None:
    line = results.compared(name)
    if line is None:
        return None
    return line.asymptote.A if line.level is None else line.level
