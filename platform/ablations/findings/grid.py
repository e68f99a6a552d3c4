"""The grid of a comparison: the variant in each cell, the main effects of its axes, and their interactions.

>>> grid = open_sweep("loss_by_batch").grid
>>> grid.axes
{'loss.type': ('cispo', 'dapo'), 'batch.prompts': ('16', '32', '64')}
>>> grid.cells[("dapo", "32")], grid.bases["batch.prompts"]
('dapo,32', '16')
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ablations.answers.compare import Comparison
from ablations.answers.grid_interactions import GridInteraction, grid_interactions
from ablations.answers.main_effects import GridCell, MainEffect, main_effects
from ablations.fit.result import Fit


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The cells of two or more crossed axes; cells with a fit have effects."""

    axes: Mapping[str, tuple[str, ...]]
    """The values of each axis: numbers by size, words in the order of the file."""
    own: Mapping[str, str]
    """The reference's own value on each axis; axes without one are missing."""
    bases: Mapping[str, str]
    """The value of each axis with which the others are compared: the reference's own, else the first."""
    cells: Mapping[GridCell, str]
    """The variant of each trained cell; the reference is included if it has a value on every axis."""
    effects: tuple[MainEffect, ...]
    interactions: tuple[GridInteraction, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "axes": {axis: list(values) for axis, values in self.axes.items()},
            "own": dict(self.own),
            "cells": [
                {"variant": name, "values": dict(zip(self.axes, cell, strict=True))}
                for cell, name in self.cells.items()
            ],
            "effects": [effect.to_json() for effect in self.effects],
            "interactions": [one.to_json() for one in self.interactions],
        }


def grid_of(
    axes_of: Mapping[str, Mapping[str, str]], fits: Mapping[str, Sequence[Fit]], comparison: Comparison
) -> Grid | None:
    """The grid among compared variants, given the axes of each; None if no two axes are crossed.

    The grid with the most cells is returned if there are several. `fits` are the fits of the variants that are read at
    the compute of the comparison; another cell has no part in an effect.
    """
    crossed = Counter(tuple(axes) for name, axes in axes_of.items() if len(axes) > 1 and name != comparison.reference)
    for names, _ in crossed.most_common():
        cells: dict[GridCell, str] = {}
        for variant, axes in axes_of.items():
            if set(names) == set(axes) or (variant == comparison.reference and set(names) <= set(axes)):
                cells.setdefault(tuple(axes[name] for name in names), variant)
        values = {name: _in_order(cell[place] for cell in cells) for place, name in enumerate(names)}
        reference = axes_of.get(comparison.reference, {})
        own = {name: reference[name] for name in names if name in reference}
        bases = {name: own[name] if own.get(name) in values[name] else values[name][0] for name in names}
        fitted = {cell: fits[variant] for cell, variant in cells.items() if fits.get(variant)}
        given = fitted, values, bases, comparison.spreads, comparison.footing.compute
        effects = main_effects(*given)
        if {effect.axis for effect in effects} == set(names):
            found = tuple(grid_interactions(*given))
            return Grid(axes=values, own=own, bases=bases, cells=cells, effects=tuple(effects), interactions=found)
    return None


def _in_order(values: Iterable[str]) -> tuple[str, ...]:
    """Each value once: numbers by size, words in their order."""
    found = tuple(dict.fromkeys(values))
    with suppress(ValueError):
        return tuple(sorted(found, key=float))
    return found
