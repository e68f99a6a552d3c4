"""Scales made from one: the same scale with a larger model, longer answers or a larger batch.

    scales: {of: bench, model_size: [0.25, 1, 4]}          bench-size0.25, bench and bench-size4

Compute grows with each of them, so that a run has about as many steps at every scale.
"""

import math
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from ablations.errors import Place
from ablations.files.source import Source
from ablations.study.override import Override
from scalerl.frozen import Frozen
from scalerl.recipe import Scale

Multiples = Annotated[tuple[Annotated[float, Field(ge=0.001, le=10_000)], ...], Field(min_length=1)]
IN_NAMES = {"model_size": "size", "length": "length", "batch": "batch"}
"""The suffix that a key adds to the name of a scale."""
NEAR = 0.01
"""Tolerance for a number of heads to count as whole."""


def scale_stem(written: str) -> str:
    """The name of a scale that is written as a name or as the path of a file: `bench` of `../scales/bench.yaml`."""
    return Path(written).stem if written.endswith(".yaml") else written


class ScaleFamily(Frozen):
    """Scales made from one, instead of a list of files.

        scales: {of: bench, model_size: [0.25, 1, 4]}

    Each list has one factor per scale, relative to the scale `of`. Several lists are combined in step: the first
    numbers of all lists, then the second ones. Learning rate and everything else stay, and the unit of compute grows by
    the product, so that a run has about as many steps at every scale. A scale is called by what differs:
    `bench-size0.25`, `bench`, `bench-size4`; `platform sweep FILE --dry-run` shows its settings.
    """

    of: str
    """The scale that the others are made from, by name or path."""
    model_size: Multiples = ()
    """Parameters of the model. Heads, width and feed-forward width grow by the root of it, and heads stay whole: with
    two of them 0.25, 1, 2.25, 4, 9 and 16 are possible. Embeddings grow only by the root."""
    length: Multiples = ()
    """The limits of thinking and answer."""
    batch: Multiples = ()
    """Prompts per step."""

    @model_validator(mode="after")
    def _scales_told_apart(self) -> Self:
        lists = self._lists
        if not lists:
            raise ValueError(f"nothing differs; add one of {', '.join(IN_NAMES)}")
        lengths = {key: len(multiples) for key, multiples in lists.items()}
        if len(set(lengths.values())) > 1:
            found = " and ".join(f"{count} of {key}" for key, count in lengths.items())
            raise ValueError(f"{found}; write one number for every scale in each list")
        if len(self.names) == 1:
            raise ValueError(f"one scale is not a ladder; write `scale: {self.of}`, or add a number to each list")
        if twice := [name for place, name in enumerate(self.names) if name in self.names[:place]]:
            raise ValueError(f"two scales are {twice[0]}; list each once")
        return self

    @property
    def _lists(self) -> dict[str, tuple[float, ...]]:
        return {key: multiples for key in IN_NAMES if (multiples := getattr(self, key))}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the scales: `bench-size0.25`, `bench`, `bench-size4`."""
        lists, stem = self._lists, scale_stem(self.of)
        differing = (
            [f"{IN_NAMES[key]}{times:g}" for key, times in zip(lists, every, strict=True) if times != 1]
            for every in zip(*lists.values(), strict=True)
        )
        return tuple("-".join([stem, *parts]) for parts in differing)

    def overrides(self, name: str, scale: Scale, source: Source) -> list[Override]:
        """The changes that make the scale called `name` out of `scale`."""
        number, found, compute = self.names.index(name), list[Override](), 1.0
        for key, multiples in self._lists.items():
            if (times := multiples[number]) != 1:
                place = source.place(("scales", key, number))
                settings = _SETTINGS[key](scale, times, place)
                found += [Override(path=path, value=value, place=place) for path, value in settings.items()]
                compute *= times
        unit = scale.compute_unit_gpu_hours * compute
        whole = Override(path="compute_unit_gpu_hours", value=unit, place=source.place(("scales",)))
        return [*found, whole] if found else []


def _widths(scale: Scale, times: float, place: Place) -> dict[str, int]:
    """Heads, width and feed-forward width of a model with `times` the parameters."""
    model = scale.model
    if model.type == "pretrained":
        raise place.error("the model is pretrained, and has one size", "list a scale for each model: scales: [a, b]")
    asked = model.heads * math.sqrt(times)
    heads = round(asked)
    if abs(heads - asked) > NEAR:
        near = [(whole / model.heads) ** 2 for whole in (math.floor(asked), math.ceil(asked)) if whole]
        right = " or ".join(f"{one:.4g}" for one in near)
        raise place.error(f"found {times:g}, which turns {model.heads} heads into {asked:.3g}", f"write {right}")
    mlp = _whole(model.mlp * heads / model.heads)
    return {"model.heads": heads, "model.hidden": model.hidden // model.heads * heads, "model.mlp": mlp}


def _limits(scale: Scale, times: float, place: Place) -> dict[str, int]:
    limits = {"thinking": scale.generation.thinking, "answer": scale.generation.answer}
    return {f"generation.{key}": _whole(limit * times) for key, limit in limits.items() if limit != "none"}


def _prompts(scale: Scale, times: float, place: Place) -> dict[str, int]:
    return {"batch.prompts": _whole(scale.batch.prompts * times)}


def _whole(number: float) -> int:
    """The nearest whole number, halves upwards, at least 1."""
    return max(1, math.floor(number + 0.5))


_SETTINGS = {"model_size": _widths, "length": _limits, "batch": _prompts}
