"""A sweep file: the variants of a reference to train, on which scale and with how much compute.

    name: loo
    reference: scalerl
    scale: laptop
    leave_one_out: {revert_to: baseline}
    budget: {compute: 1.0, fit_on: 0.5}

`ablations.study.expand` turns a sweep into runs.
"""

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, Tag, model_validator

from ablations.files.source import read_yaml
from ablations.files.validation import validated
from ablations.fit.options import FitOptions
from ablations.study.claims import Claim
from ablations.study.family import ScaleFamily
from ablations.study.names import LISTED, Label, Name, Named, Overrides, Seed, Values, told_apart, unique
from ablations.study.resources import Resources
from ablations.study.search_space import Search
from ablations.study.wandb_sweep import refuse_wandb_sweep
from scalerl.frozen import Frozen
from scalerl.recipe.command import Program


def _not_left_empty(value: Any) -> Any:
    if value is None:
        raise ValueError("found nothing; must be a mapping")
    return value


Axes = Annotated[dict[Name, Values], Field(min_length=1)]


class LeaveOneOut(Frozen):
    """Each axis of the reference in turn reverts to the value of another recipe."""

    revert_to: str
    """A recipe file, by name or path."""
    axes: Annotated[dict[str, Overrides | None], Field(min_length=1)] = Field(default_factory=dict)
    """Axes to leave out. A bare name reverts the axis; a mapping is set instead. Default: all axes in which the recipes
    differ."""


class Budget(Frozen):
    """Compute of each run, and the part of a run to fit."""

    compute: Annotated[float, Field(gt=0)] = 1.0
    """Compute of each run, in the scale's unit."""
    fit_from: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Evaluations below this fraction of the budget are not fitted (ScaleRL §2.1, A.7)."""
    fit_on: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Evaluations up to this fraction are fitted; later ones check the forecast."""

    @model_validator(mode="after")
    def _window_not_empty(self) -> Self:
        if self.fit_from >= self.fit_on:
            raise ValueError(f"fit_from {self.fit_from} must lie below fit_on {self.fit_on}")
        return self


class Stop(Frozen):
    """Rules that end a run before its budget; the run then shows as stopped. The reference is never ended early.

        stop: {gain_below: 0.01, probability: 0.9, dominated: 0.95}

    Without any key, runs that collapse are flagged and no run is stopped.
    """

    gain_below: Annotated[float, Field(gt=0, lt=1)] | None = None
    """End a run whose pass rate will rise by less than this between now and the full budget, at two evaluations in a
    row."""
    probability: Annotated[float, Field(ge=0.5, lt=1)] = 0.9
    """Probability above which `gain_below` applies."""
    dominated: Annotated[float, Field(ge=0.5, lt=1)] | None = None
    """End a run whose pass rate at the full budget lies below the reference's with more than this probability."""
    collapse: Literal["stop", "flag"] = "flag"
    """Action for a run whose pass rate has collapsed, or whose answers are truncated too often."""
    truncation_above: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Fraction of truncated answers over 20 training steps above which a run is flagged or stopped: above 0.10 to 0.15
    runs collapsed later (ScaleRL A.15)."""

    @model_validator(mode="after")
    def _probability_has_effect(self) -> Self:
        if "probability" in self.model_fields_set and self.gain_below is None:
            raise ValueError("probability has no effect without gain_below; write both or neither")
        return self


def _variable(value: str) -> str:
    if re.fullmatch(r"\$[A-Za-z_][A-Za-z0-9_]*", value):
        return value
    # The value is not quoted: an address lets everyone who knows it write to the channel.
    raise ValueError(
        "must be an environment variable that holds the address, as $SLACK_WEBHOOK: the address is a secret"
    )


def _several(scales: tuple[str, ...]) -> tuple[str, ...]:
    if len(scales) == 1:
        raise ValueError(f"found one scale; write `scale: {scales[0]}`, or add a larger one to `scales`")
    return unique(scales)


Scales = Annotated[
    Annotated[tuple[str, ...], AfterValidator(_several), Tag("listed")] | Annotated[ScaleFamily, Tag("scales")],
    told_apart(
        {dict: "scales", ScaleFamily: "scales", **LISTED},  # errors name the keys of a family as those of its tag
        "must be a list of scales, or a family: {of: bench, model_size: [1, 4]}",
    ),
]
SomePairs = Annotated[
    Annotated[bool, Tag("all")]
    | Annotated[int, Field(ge=1), Tag("some")]
    | Annotated[tuple[tuple[str, str], ...], Field(min_length=1), Tag("listed")],
    told_apart(
        {bool: "all", int: "some", **LISTED},
        "must be true, how many pairs to train, or a list: [[loo-loss, loo-curriculum]]",
    ),
]


class Notify(Frozen):
    """The webhook to notify of events of the runs.

    notify: {url: $SLACK_WEBHOOK, on: [failed, held, done, warning]}
    """

    url: Annotated[str, AfterValidator(_variable)]
    """The environment variable that holds the webhook's address. Slack and Discord accept the message as sent."""
    on: Annotated[
        tuple[Literal["failed", "held", "done", "warning"], ...], Field(min_length=1), AfterValidator(unique)
    ] = ("failed", "held", "done")
    """Events to send: a run that failed, runs held after equal failures, the end of all runs, a warning about a run's
    health."""


class Published(Frozen):
    """The fit that a paper reports for a variant, shown beside the measured one (ScaleRL eq. 1)."""

    A: Annotated[float, Field(ge=0, le=1)]
    """Asymptotic pass rate."""
    B: Annotated[float, Field(gt=0)]
    """Scaling exponent."""
    C_mid: Annotated[float, Field(gt=0)]
    """Compute at half of the gain, in the paper's own GPU-hours."""


class Sweep(Frozen):
    """One study, made of `leave_one_out`, `axes`, `grid`, `zip`, `variants` or `search`, or several of them."""

    name: Name
    """Name of the sweep's folder and of its MLflow experiment."""
    doc: str = ""
    """The question of the study."""
    trainer: Program | None = None
    """The program that trains. Default: the platform's own trainer."""
    reference: str
    """The recipe that every variant changes, by name or path. With `trainer`, your program's configuration: a YAML or
    JSON file beside the sweep file, or `none`."""
    scale: str = ""
    """The scale, by name or path; `--scale` replaces it. Required without `trainer`, and not allowed with it."""
    scales: Scales = ()
    """Scales, by name or path, at which the study is trained one after another, from the smallest to the largest;
    `platform ladder` shows which differences carry over. Each is a separate sweep, `NAME@SCALE`. A mapping derives the
    scales from one. Replaces `scale`."""
    fixed_scale: bool = False
    """True if `--scale` is rejected, because variants set parts of the scale, such as the model or tasks."""
    base: Annotated[dict[str, Any], Field(min_length=1)] = Field(default_factory=dict)
    """Overrides of the reference, and so of every variant, as in `base: {length_control.type: none}`. A variant's own
    overrides come on top, and `--set` of the same path replaces an override in `base`."""
    leave_one_out: Annotated[LeaveOneOut | None, AfterValidator(_not_left_empty)] = None
    """One variant per axis left out."""
    axes: Axes = Field(default_factory=dict)
    """One factor at a time: one variant per value of each axis."""
    grid: Axes = Field(
        default_factory=dict, examples=["write `grid: {loss.type: [cispo, dapo], batch.prompts: [16, 32]}`"]
    )
    """One variant per combination of values."""
    zip: Axes = Field(default_factory=dict)
    """One variant per position: all first values, all second values, and so on."""
    variants: Named = Field(default_factory=dict)
    """Variants written out in full."""
    pairs: SomePairs = False
    """Variants `a+b` that combine two changes of `leave_one_out`, `axes` and `variants`. true: all pairs that do not
    change the same setting. A number: that many of them, with each change in about equally many. A list: the pairs
    named, as in `[[loo-loss, loo-curriculum]]`. The comparison then has interactions."""
    exclude: Annotated[tuple[Annotated[dict[str, Label], Field(min_length=1)], ...], Field(min_length=1)] = ()
    """Combinations of grid and zip to leave out: axis to value name; axes not mentioned match any value."""
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1), AfterValidator(unique)] = (0, 1, 2)
    """Seeds; each variant is trained once with each. One seed gives only provisional verdicts."""
    budget: Budget = Field(default=Budget(), examples=["write `budget: {compute: 1}`, in the unit of the scale"])
    """Compute of each run."""
    stop: Annotated[Stop | None, AfterValidator(_not_left_empty)] = None
    """Rules that end runs early. Default: none."""
    notify: Annotated[Notify | None, AfterValidator(_not_left_empty)] = None
    """The webhook to notify of events of the runs. Default: none."""
    search: Annotated[Search | None, AfterValidator(_not_left_empty)] = None
    """Variants that a sampler proposes one after another."""
    fit: FitOptions = FitOptions()
    """Settings of the curve fits."""
    resources: Resources = Resources()
    """Slurm resources of each run under `--executor slurm`; missing keys come from the scale."""
    published: dict[str, Published] = Field(default_factory=dict)
    """Fits that a paper reports, by variant."""
    claims: Annotated[tuple[Claim, ...], Field(min_length=1)] = ()
    """A paper's claims about variants; `platform reproduce` judges them."""

    @property
    def named_scales(self) -> tuple[str, ...]:
        """The scales of `scales`, written as for `--scale`; empty for a study at one scale."""
        return self.scales.names if isinstance(self.scales, ScaleFamily) else self.scales

    def family_of(self, scale: str) -> ScaleFamily | None:
        """The family that the scale is made in; None for the scale of a file."""
        if isinstance(self.scales, ScaleFamily) and scale in self.scales.names:
            return self.scales
        return None

    @model_validator(mode="after")
    def _scale_fits_trainer(self) -> Self:
        others = [key for key in ("scale", "fixed_scale", "trainer", "search") if getattr(self, key)]
        if self.scales and others:
            raise ValueError(f"scales and {others[0]} exclude each other; write one of them")
        if self.trainer is None and not (self.scale or self.scales):
            raise ValueError("scale: missing; this setting has no default")
        if self.trainer is not None and (self.scale or self.fixed_scale):
            raise ValueError(f"{others[0]}: no effect with trainer: a program has no scale; remove it")
        return self

    @model_validator(mode="after")
    def _one_cutoff(self) -> Self:
        if self.fit.cutoff == "auto" and self.budget.fit_from > 0:
            raise ValueError("budget.fit_from has no effect with fit.cutoff auto; remove one of them")
        return self

    @model_validator(mode="after")
    def _studies_something(self) -> Self:
        if not (self.leave_one_out or self.axes or self.grid or self.zip or self.variants or self.search):
            raise ValueError("nothing to compare; add leave_one_out, axes, grid, zip, variants or search")
        return self


def load_sweep(path: Path) -> Sweep:
    """Read a sweep file; raises FileError. `ablations.study.expand.expand` also checks the files that the sweep refers
    to."""
    source = read_yaml(path)
    refuse_wandb_sweep(source, path.stem)
    return validated(source, Sweep)
