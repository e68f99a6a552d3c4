"""A sweep file: which variants of which reference to train, on which scale, with how much compute.

    name: loo
    reference: scalerl
    scale: laptop
    leave_one_out: {revert_to: baseline}
    budget: {compute: 1.0, fit_on: 0.5}

`ablations.expand` turns it into runs.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from ablations.source import read_yaml, shown_value
from ablations.validation import validated
from scalerl.frozen import Frozen


def label(value: str | int | float | bool) -> str:
    """How a value reads in the name of a variant, as YAML would write it: `true`, `64`, `0.1`, `grpo`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _nameable(name: str) -> str:
    allowed = all(character.isascii() and (character.isalnum() or character in "._+-") for character in name)
    if not (allowed and name[:1].isalnum() and len(name) <= 64):
        raise ValueError(f"{name!r} is not a name; names are up to 64 letters, digits and . _ + -, no sign first")
    return name


def _unique(values: tuple[Any, ...]) -> tuple[Any, ...]:
    labels = [label(value) for value in values]
    if twice := [name for position, name in enumerate(labels) if name in labels[:position]]:
        raise ValueError(f"{twice[0]} is listed twice; list each value once")
    return values


def _names_itself(value: Any) -> Any:
    if isinstance(value, dict | list) or value is None:
        raise ValueError(
            f"found {shown_value(value)}; must be a number or a word, other values need a name of their own"
        )
    return _nameable(value) if isinstance(value, str) else value


def _not_left_empty(value: Any) -> Any:
    if value is None:
        raise ValueError("found nothing; must be a mapping")
    return value


def _written_as(values: Any) -> Literal["named", "listed"] | None:
    match values:
        case dict():
            return "named"
        case list() | tuple():
            return "listed"
    return None


Name = Annotated[str, AfterValidator(_nameable)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Overrides = Annotated[dict[str, Any], Field(min_length=1)]
"""Dotted path of the resolved recipe to its value, see `ablations.override`."""
Named = Annotated[dict[Name, Overrides], Field(min_length=1)]
Label = Annotated[Any, AfterValidator(_names_itself)]
Listed = Annotated[tuple[Label, ...], Field(min_length=1), AfterValidator(_unique)]
Values = Annotated[
    Annotated[Named, Tag("named")] | Annotated[Listed, Tag("listed")],
    Discriminator(
        _written_as,
        custom_error_type="axis_values",
        custom_error_message="must be a list of values, or `name: {path: value}` for each of them",
    ),
]
"""The values of an axis: named sets of overrides, or a list of values of the path that the axis is called."""
Axes = Annotated[dict[Name, Values], Field(min_length=1)]


class LeaveOneOut(Frozen):
    """Each axis of the reference in turn goes back to the value of another recipe."""

    revert_to: str
    """A recipe file, by name or path."""
    axes: Annotated[dict[str, Overrides | None], Field(min_length=1)] = Field(default_factory=dict)
    """Which axes: a bare name reverts it, a mapping is set instead. Without any, those where the recipes differ."""


class Budget(Frozen):
    """Compute of each run, and the part of it that curves are fitted on."""

    compute: Annotated[float, Field(gt=0)] = 1.0
    """In the scale's unit."""
    fit_from: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Points below this fraction of the budget are left out of the fit (ScaleRL §2.1, A.7)."""
    fit_on: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Points up to this fraction are fitted; the rest checks the forecast."""

    @model_validator(mode="after")
    def _window_not_empty(self) -> Self:
        if self.fit_from >= self.fit_on:
            raise ValueError(f"fit_from {self.fit_from} must lie below fit_on {self.fit_on}")
        return self


class Published(Frozen):
    """The fit a paper reports for a variant, shown beside the measured one (ScaleRL eq. 1)."""

    A: Annotated[float, Field(ge=0, le=1)]
    """Asymptotic pass rate."""
    B: Annotated[float, Field(gt=0)]
    """Scaling exponent."""
    C_mid: Annotated[float, Field(gt=0)]
    """Compute at half of the gain, in the paper's own GPU-hours."""


class Sweep(Frozen):
    """One study. The forms `leave_one_out`, `axes`, `grid`, `zip` and `variants` add up; at least one is needed."""

    name: Name
    """Names the sweep's folder and experiment."""
    doc: str = ""
    """What the study asks."""
    reference: str
    """The recipe that every variant changes, by name or path."""
    scale: str
    """The scale, by name or path; `--scale` replaces it."""
    leave_one_out: Annotated[LeaveOneOut | None, AfterValidator(_not_left_empty)] = None
    """One variant for each axis left out."""
    axes: Axes = Field(default_factory=dict)
    """One factor at a time: a variant for each value of each axis."""
    grid: Axes = Field(default_factory=dict)
    """A variant for each combination of values."""
    zip: Axes = Field(default_factory=dict)
    """A variant for each position: the first values together, the second values together, and so on."""
    variants: Named = Field(default_factory=dict)
    """Variants written out."""
    exclude: Annotated[tuple[Annotated[dict[str, Label], Field(min_length=1)], ...], Field(min_length=1)] = ()
    """Combinations of grid and zip left out: axis to value name; axes not mentioned match any value."""
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1), AfterValidator(_unique)] = (0,)
    """Each variant is trained once with each."""
    budget: Budget = Budget()
    """How long each run is."""
    published: dict[str, Published] = Field(default_factory=dict)
    """What a paper reports, by name of the variant."""

    @model_validator(mode="after")
    def _studies_something(self) -> Self:
        if not (self.leave_one_out or self.axes or self.grid or self.zip or self.variants):
            raise ValueError("nothing to compare; add leave_one_out, axes, grid, zip or variants")
        return self


def load_sweep(path: Path) -> Sweep:
    """The sweep in a file, or FileError; `ablations.expand.expand` also checks what it refers to."""
    return validated(read_yaml(path), Sweep)
