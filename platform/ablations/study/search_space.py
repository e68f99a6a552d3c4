"""The `search:` block of a sweep file: the settings that a sampler may choose, and its objective.

    search:
      space:
        optimiser.learning_rate: {low: 1.0e-4, high: 3.0e-3, log: true}
        batch.prompts: {low: 8, high: 32, step: 8}
        loss.type: {choices: [cispo, dapo, gspo]}
        size: {choices: {small: {model: {layers: 2, mlp: 64}}, large: {model: {layers: 4, mlp: 128}}}}
      sampler: tpe
      trials: 12
      objective: {type: asymptote, of: lower}

`search_points` ties the space to the reference recipe; `ablations.search.objective` computes the objective from fits.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from ablations.study.names import Seed, Values, label
from scalerl.frozen import Frozen


class Dimension(Frozen):
    """A range of one setting, or choices. The key of a range or of listed choices is the path that it sets."""

    low: float | None = None
    """Smallest value of a range."""
    high: float | None = None
    """Largest value of a range."""
    log: bool = False
    """True if the range is uniform in the logarithm, as suits a learning rate."""
    step: Annotated[float, Field(gt=0)] | None = None
    """Only low, low + step, ... are tried. Default: 1 for an integer setting, else no step."""
    choices: Values | None = None
    """Choices instead of a range: a list of values, or `name: {path: value}` for each choice."""

    @model_validator(mode="after")
    def _either_way(self) -> Self:
        if self.choices is not None:
            if written := self.model_fields_set - {"choices"}:
                raise ValueError(f"{min(written)} has no effect beside choices; write a range or choices")
            if len(self.choices) < 2:
                raise ValueError("one choice leaves nothing to search; write two or more")
        else:
            _check_range(self.low, self.high, self.log, self.step)
        return self


def _check_range(low: float | None, high: float | None, log: bool, step: float | None) -> None:
    if low is None or high is None:
        raise ValueError("must be a range, {low: x, high: y}, or {choices: [...]}")
    if low >= high:
        raise ValueError(f"low {low:g} must lie below high {high:g}")
    if log and low <= 0:
        raise ValueError(f"low {low:g} has no logarithm; log: true needs a low above 0")
    if log and step is not None:
        raise ValueError("log and step exclude each other; remove one of them")
    if step is not None:
        num_steps = (high - low) / step
        if abs(num_steps - round(num_steps)) > 1e-9 * num_steps:
            below = low + int(num_steps) * step
            right = f"must be {below:g} or {below + step:g}" if below > low else f"must be {low + step:g}"
            raise ValueError(f"steps of {step:g} from low {low:g} do not reach high {high:g}; high {right}")


class Asymptote(Frozen):
    """The ceiling A as `platform compare` shows it for one seed, over all families of curves that fit, maximised."""

    type: Literal["asymptote"] = "asymptote"
    of: Literal["lower", "mean"] = "lower"
    """lower: the lower end of the 95 % interval of A, so that a curve too short to show a ceiling cannot win. mean: A
    itself."""


class ScoreAt(Frozen):
    """The pass rate of the fitted curve at some compute, maximised."""

    type: Literal["score_at"] = "score_at"
    budget: Annotated[float, Field(gt=0)]
    """Compute in the scale's unit; a value beyond the sweep's own budget is a forecast."""


class ComputeToReach(Frozen):
    """The compute at which the fitted curve reaches a pass rate, minimised."""

    type: Literal["compute_to_reach"] = "compute_to_reach"
    score: Annotated[float, Field(gt=0, lt=1)]
    """The pass rate."""


Objective = Annotated[Asymptote | ScoreAt | ComputeToReach, Field(discriminator="type")]
MAX_TRIALS = 1000


def _listed(written: Any) -> Any:
    """Accept one objective without a list around it."""
    if isinstance(written, dict):
        return (written,)
    return tuple(written) if isinstance(written, list) else written


class Search(Frozen):
    """Trials proposed by a sampler; each is a variant `trial-000`, `trial-001`, ... of the sweep."""

    space: Annotated[dict[str, Dimension], Field(min_length=1)]
    """Settings to choose: a path of the resolved recipe, or any name with named choices."""
    sampler: Literal["tpe", "gp", "cmaes", "random", "grid"] = "tpe"
    """Tree-structured Parzen estimator, Gaussian process, CMA-ES (ranges only), random points, or a full grid."""
    trials: Annotated[int, Field(ge=1, le=MAX_TRIALS)]
    """Number of trials; each is trained once per seed of the sweep."""
    seed: Seed = 0
    """Seed of the sampler, not of the runs."""
    objective: Annotated[tuple[Objective, ...], Field(min_length=1), BeforeValidator(_listed)] = (Asymptote(),)
    """The objective to optimise; several objectives give a Pareto front."""

    @model_validator(mode="after")
    def _sampler_can(self) -> Self:
        if self.sampler == "cmaes":
            if named := [name for name, dimension in self.space.items() if dimension.choices is not None]:
                raise ValueError(f"sampler cmaes searches ranges only, and {named[0]} has choices; use tpe or gp")
            if len(self.space) < 2:
                raise ValueError("sampler cmaes needs two or more ranges; use tpe or gp for one")
            if len(self.objective) > 1:
                raise ValueError("sampler cmaes takes one objective; use tpe or gp for several")
        return self

    @model_validator(mode="after")
    def _objectives_differ(self) -> Self:
        for position, objective in enumerate(self.objective):
            if objective in self.objective[:position]:
                raise ValueError(f"objective {label(objective.type)} is listed twice; list each once")
        return self
