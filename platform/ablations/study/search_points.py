"""A search space bound to its reference recipe: the changes at each point, and a check that the recipe accepts them.

>>> space = search_space(sweep.search, source, reference)
>>> recipe, settings = space.vary({"optimiser.learning_rate": 1e-3, "batch.prompts": 16, "size": "small"})
>>> settings
{'optimiser.learning_rate': 0.001, 'batch.prompts': 16, 'model.layers': 2, 'model.mlp': 64}
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ablations.errors import FileError, Place
from ablations.files.source import Source
from ablations.study.override import Override, options_in, plain_settings, value_at, vary
from ablations.study.search_space import Dimension, Search
from scalerl.recipe.command import AnyRecipe

Point = dict[str, int | float | str]
"""A number for each range (an int if the setting is an integer) and a label for each dimension with choices."""

MAX_POINTS_CHECKED = 512
MAX_GRID_POINTS = 1000


@dataclass(frozen=True, kw_only=True)
class Range:
    """A dimension with an interval of numbers.

    Range(name="batch.prompts", low=8, high=32, step=8, log=False, is_integer=True, place=place)
    """

    name: str
    """The path of the setting."""
    low: float
    high: float
    step: float | None
    """None if every value in between is allowed."""
    log: bool
    is_integer: bool
    place: Place

    @property
    def num_values(self) -> int | None:
        """The number of values; None if they cannot be counted."""
        return None if self.step is None else round((self.high - self.low) / self.step) + 1

    def values(self) -> list[float | str] | None:
        """Every value in ascending order; None if they cannot be counted."""
        if self.step is None or self.num_values is None:
            return None
        return [self._exact(self.low + position * self.step) for position in range(self.num_values)]

    def ends(self) -> list[float | str]:
        """The smallest and the largest value."""
        return [self._exact(self.low), self._exact(self.high)]

    def contains(self, value: float | str) -> bool:
        """True if a point may have this value."""
        if isinstance(value, str) or not self.low <= value <= self.high:
            return False
        if self.step is None:
            return True
        num_steps = (value - self.low) / self.step
        return abs(num_steps - round(num_steps)) < 1e-6

    def overrides(self, value: float | str) -> tuple[Override, ...]:
        """The overrides for a value."""
        return (Override(path=self.name, value=value, place=self.place),)

    def _exact(self, value: float) -> float:
        # 0.1 + 2 * 0.1 is 0.30000000000000004; a person would write 0.3.
        return round(value) if self.is_integer else float(f"{value:.12g}")

    def __str__(self) -> str:
        spacing = ", log" if self.log else "" if self.step is None else f", step {self.step:g}"
        return f"{self.low:g} to {self.high:g}{spacing}"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A dimension with labels: `Choice(name="loss.type", options={"cispo": (Override(...),), ...})`."""

    name: str
    options: Mapping[str, tuple[Override, ...]]
    """The overrides for each label."""

    @property
    def num_values(self) -> int:
        return len(self.options)

    def values(self) -> list[float | str]:
        return list(self.options)

    def ends(self) -> list[float | str]:
        """Every label, since choices have no order."""
        return self.values()

    def contains(self, value: float | str) -> bool:
        return value in self.options

    def overrides(self, value: float | str) -> tuple[Override, ...]:
        return self.options[str(value)]

    def __str__(self) -> str:
        return " | ".join(self.options)


@dataclass(frozen=True, kw_only=True)
class SearchSpace:
    """Every recipe that a search may train."""

    reference: AnyRecipe
    dimensions: tuple[Range | Choice, ...]

    @property
    def num_points(self) -> int | None:
        """The number of points; None if they cannot be counted."""
        counts = [dimension.num_values for dimension in self.dimensions]
        return None if None in counts else math.prod(count for count in counts if count is not None)

    def points(self, *, ends_only: bool = False) -> Iterator[Point]:
        """Every point of a countable space, the last dimension varying fastest; or only those of ends and choices."""
        names = [dimension.name for dimension in self.dimensions]
        values = [dimension.ends() if ends_only else dimension.values() or [] for dimension in self.dimensions]
        return (dict(zip(names, combination, strict=True)) for combination in itertools.product(*values))

    def contains(self, point: Mapping[str, float | str]) -> bool:
        """True if this is a point of the space."""
        by_name = {dimension.name: dimension for dimension in self.dimensions}
        return by_name.keys() == point.keys() and all(by_name[name].contains(point[name]) for name in by_name)

    def vary(self, point: Mapping[str, float | str]) -> tuple[AnyRecipe, dict[str, Any]]:
        """The reference at a point, which may have only some of the dimensions, and the value set at each path."""
        chosen = [dimension for dimension in self.dimensions if dimension.name in point]
        return vary(self.reference, [over for one in chosen for over in one.overrides(point[one.name])])


def search_space(search: Search, source: Source, reference: AnyRecipe) -> SearchSpace:
    """The space under `search:` in a sweep file; raises FileError if the recipe rejects any of the points checked."""
    settings = plain_settings(reference)
    space = SearchSpace(
        reference=reference,
        dimensions=tuple(_dimension(name, written, source, settings) for name, written in search.space.items()),
    )
    _check_values(space)
    num_recipes = _check_points(space)
    _check_size(search, space, num_recipes, source)
    return space


def _dimension(name: str, written: Dimension, source: Source, settings: Mapping[str, Any]) -> Range | Choice:
    key = ("search", "space", name)
    if written.choices is not None:
        options = options_in(written.choices, name, source, (*key, "choices"))
        return Choice(name=name, options={chosen: overrides for chosen, (_, overrides) in options.items()})
    assert written.low is not None
    assert written.high is not None
    is_integer = any(type(standing) is int for standing in value_at(settings, name))
    if is_integer:
        for bound in ("low", "high", "step"):
            value = getattr(written, bound)
            if value is not None and value != round(value):
                right = f"must be a whole number, as {name} is"
                raise source.place((*key, bound)).error(f"found {value:g}", right)
    return Range(
        name=name,
        low=written.low,
        high=written.high,
        step=1.0 if is_integer and written.step is None else written.step,
        log=written.log,
        is_integer=is_integer,
        place=source.place(key),
    )


def _check_values(space: SearchSpace) -> None:
    """Raise FileError if the recipe rejects a single value; tries all countable values and the ends of other ranges."""
    problems = []
    for dimension in space.dimensions:
        countable = dimension.num_values is not None and dimension.num_values <= MAX_POINTS_CHECKED
        for value in (dimension.values() if countable else None) or dimension.ends():
            try:
                space.vary({dimension.name: value})
            except FileError as error:
                problems += error.problems
                break
    if problems:
        raise FileError(*problems)


def _check_points(space: SearchSpace) -> int | None:
    """Raise FileError if values that are valid one by one are invalid together.

    Tries every point of a small space, every corner of a larger one, and every pair of ends if there are too many
    corners. Returns the number of recipes besides the reference in a small space, else None.
    """
    if space.num_points is not None and space.num_points <= MAX_POINTS_CHECKED:
        recipes = {_checked(space, point).canonical_json() for point in space.points()}
        return len(recipes - {space.reference.canonical_json()})
    corners = math.prod(len(dimension.ends()) for dimension in space.dimensions)
    for point in space.points(ends_only=True) if corners <= MAX_POINTS_CHECKED else _pairs(space):
        _checked(space, point)
    return None


def _pairs(space: SearchSpace) -> Iterator[Point]:
    for one, other in itertools.combinations(space.dimensions, 2):
        for value, beside in itertools.product(one.ends(), other.ends()):
            yield {one.name: value, other.name: beside}


def _checked(space: SearchSpace, point: Point) -> AnyRecipe:
    try:
        return space.vary(point)[0]
    except FileError as error:
        problems = (replace(one, found=f"with {point_text(point)}: {one.found}") for one in error.problems)
        raise FileError(*problems) from None


def _check_size(search: Search, space: SearchSpace, num_recipes: int | None, source: Source) -> None:
    place = source.place(("search", "trials"))
    if search.sampler == "grid":
        for dimension in space.dimensions:
            if dimension.num_values is None:
                uncounted = source.place(("search", "space", dimension.name))
                raise uncounted.error("a grid needs a step or choices here", "add step, or use another sampler")
        assert space.num_points is not None
        if space.num_points > MAX_GRID_POINTS:
            raise place.error(f"a grid of {space.num_points} points", f"must be at most {MAX_GRID_POINTS}; use tpe")
    if num_recipes is not None and search.trials > num_recipes:
        found = f"{search.trials} trials, but the space holds {num_recipes} recipes besides the reference"
        raise place.error(found, f"must be at most {num_recipes}" if num_recipes else "widen the space")


def point_text(point: Mapping[str, float | str]) -> str:
    """A point as text: `optimiser.learning_rate = 0.00123, loss.type = dapo`."""
    return ", ".join(f"{name} = {setting_of_point(value)}" for name, value in point.items())


def setting_of_point(value: float | str) -> str:
    """The value of a point as its setting is written: four digits of a number."""
    return value if isinstance(value, str) else f"{value:.4g}"
