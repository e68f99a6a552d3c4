"""Every number of a recipe and of a scale has an upper bound, below what a float or a tensor could not hold."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from scalerl.recipe import ResolvedRecipe

DEFAULTS = ResolvedRecipe()
BLOCKS = [
    {},
    {"loss": {"type": "grpo"}},
    {"loss": {"type": "dapo"}},
    {"loss": {"type": "gspo"}},
    {"off_policy": {"type": "ppo_off_policy"}},
    {"model": {"type": "moe"}},
    {"cluster": {"type": "wall"}},
    {"critic": {"type": "value_network"}, "epochs": 2},
    {"tasks": [{"type": "modular"}]},
]


def numbers(values: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all numbers in nested settings."""
    match values:
        case bool() | str() | None:
            return
        case int() | float():
            yield path
        case dict():
            for name, value in values.items():
                yield from numbers(value, (*path, name))
        case list():
            for position, value in enumerate(values):
                yield from numbers(value, (*path, position))


def with_value(values: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    first, *rest = path
    copy = list(values) if isinstance(values, list) else dict(values)
    copy[first] = with_value(values[first], tuple(rest), value)
    return copy


def cases() -> Iterator[Any]:
    seen = set()
    for block in BLOCKS:
        plain = ResolvedRecipe.model_validate(DEFAULTS.model_dump(mode="json") | block).model_dump(mode="json")
        for path in numbers(plain):
            name = ".".join(map(str, (*[f"{key}={value}" for key, value in block.items()], *path)))
            if name not in seen and (not block or path[0] in block):
                seen.add(name)
                yield pytest.param(plain, path, id=name)


@pytest.mark.parametrize(("plain", "path"), list(cases()))
def test_a_number_that_no_machine_could_use_is_refused_with_its_name(plain, path):
    value: Any = plain
    for part in path:
        value = value[part]
    absurd = 10**21 if isinstance(value, int) else 1e300
    with pytest.raises(ValidationError) as refused:
        ResolvedRecipe.model_validate(with_value(plain, path, absurd))
    named = {part for error in refused.value.errors() for part in error["loc"]}
    assert path[0] in named


@pytest.mark.parametrize(
    "path", [("generation", "temperature"), ("optimiser", "eps"), ("cluster", "attention", "cache_stands_for")]
)
def test_a_number_that_32_bits_take_for_0_is_refused(path):
    with pytest.raises(ValidationError, match="greater than or equal to"):
        ResolvedRecipe.model_validate(with_value(DEFAULTS.model_dump(mode="json"), path, 1e-300))
