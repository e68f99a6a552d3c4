"""Every setting of a recipe and a scale as Markdown, from the models themselves: `docs/recipes.md`.

python -m scalerl.recipe.reference > docs/recipes.md      # make docs
"""

import inspect
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Len, Lt, MaxLen, MinLen, MultipleOf
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from scalerl.frozen import Unit
from scalerl.recipe.axes import Recipe
from scalerl.recipe.scale import Scale

SETTINGS_PREAMBLE = """\
# Every setting

Made by `make docs` from the models of `trainer/scalerl/recipe/`; a test fails when this page is not what they say.

A *recipe* is the algorithm's choices (`recipes/*.yaml`), a *scale* is everything else (`recipes/scales/*.yaml`). A
sweep lays its overrides over both: `loss.max_ratio: 8`, `batch.prompts: {times: 2}`. A block that has a `type` is
replaced as a whole when the type changes. What is left out has its default; writing a default out loud does not make
another run. Unknown settings, values out of range and settings that could have no effect beside the others are refused
with file, line and key."""

BOUNDS = {
    Ge: ("ge", "≥"),
    Gt: ("gt", ">"),
    Le: ("le", "≤"),
    Lt: ("lt", "<"),
    MultipleOf: ("multiple_of", "multiple of"),
}


def settings_page() -> str:
    """The page."""
    parts = [SETTINGS_PREAMBLE]
    for title, model in (("Recipe", Recipe), ("Scale", Scale)):
        parts += [f"## {title}", said(model), table(model)]
        for name, field in model.model_fields.items():
            parts += blocks(name, field.annotation)
    return "\n\n".join(parts) + "\n"


def blocks(path: str, annotation: Any) -> list[str]:
    """A section for each model that may stand at `path`, and for those below it."""
    parts = []
    for model in models_of(annotation):
        heading = f"{path}: {{type: {model.model_fields['type'].default}}}" if "type" in model.model_fields else path
        parts += [f"### `{heading}`", said(model)]
        if any(name != "type" for name in model.model_fields):
            parts.append(table(model))
        for name, field in model.model_fields.items():
            parts += blocks(f"{path}.{name}", field.annotation)
    return parts


def models_of(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that a value of this type may be an instance of, items of a tuple included."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) is Annotated:
        yield from models_of(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, types.UnionType, tuple):
        for argument in get_args(annotation):
            yield from models_of(argument)


def table(model: type[BaseModel]) -> str:
    """One row per setting; the `type` of a block stands in its heading."""
    rows = ["| setting | default | range | unit | meaning |", "|---|---|---|---|---|"]
    for name, field in model.model_fields.items():
        if name != "type":
            cells = (f"`{name}`", default_of(field), range_of(field), unit_of(field), field.description or "")
            rows.append("| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |")
    return "\n".join(rows)


def said(model: type[BaseModel]) -> str:
    """The model's docstring as one paragraph each."""
    paragraphs = inspect.cleandoc(model.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def default_of(field: FieldInfo) -> str:
    """As YAML has it; a block by its type, or by "below" where every default of it stands in its own section."""
    # A factory is given what was written before; here nothing was.
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, tuple) and value and isinstance(value[0], BaseModel):
        return "one " + ", ".join(block_default(item) for item in value)
    return block_default(value) if isinstance(value, BaseModel) else f"`{yaml_scalar(value)}`"


def block_default(block: BaseModel) -> str:
    """`type: cispo`, or "below" for a block that has no type."""
    kind = type(block).model_fields.get("type")
    return "below" if kind is None else f"`type: {yaml_scalar(kind.default)}`"


def yaml_scalar(value: Any) -> str:
    """A scalar as YAML writes it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def range_of(field: FieldInfo) -> str:
    """Bounds of a number, the choices of a literal, the types of a block."""
    choices = list(types_of(field.annotation))
    bounds = [bound for item in (field.metadata, *inner_metadata(field.annotation)) for bound in bounds_of(item)]
    return ", ".join([*bounds, *choices])


def inner_metadata(annotation: Any) -> Iterator[list[Any]]:
    """Metadata of the arguments of a union or tuple: the bounds of `Positive | None` stand there."""
    if get_origin(annotation) is Annotated:
        metadata = list(annotation.__metadata__)
        yield [inner for item in metadata for inner in (item.metadata if isinstance(item, FieldInfo) else [item])]
    if get_origin(annotation) is not Literal:
        for argument in get_args(annotation):
            yield from inner_metadata(argument)


def bounds_of(metadata: list[Any]) -> Iterator[str]:
    """`≥ 0`, `< 1`, `multiple of 8`, `1 to 3 items`."""
    for item in metadata:
        if type(item) in BOUNDS:
            name, sign = BOUNDS[type(item)]
            yield f"{sign} {yaml_scalar(getattr(item, name))}"
        elif isinstance(item, MinLen):
            yield "not empty"
        else:
            assert not isinstance(item, Len | MaxLen), "say here how an upper bound on a length reads"


def types_of(annotation: Any) -> Iterator[str]:
    """What may be written there."""
    if annotation is type(None):
        yield "null"
    elif annotation is bool:
        yield "true, false"
    elif annotation is str:
        yield "text"
    elif annotation is int:
        yield "whole number"
    elif get_origin(annotation) is Literal:
        yield from (f"`{yaml_scalar(choice)}`" for choice in get_args(annotation))
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield f"`{annotation.model_fields['type'].default}`" if "type" in annotation.model_fields else "block"
    elif get_origin(annotation) is Annotated:
        yield from types_of(get_args(annotation)[0])
    elif get_origin(annotation) is not None:
        for argument in get_args(annotation):
            if argument is not Ellipsis:
                yield from types_of(argument)


def unit_of(field: FieldInfo) -> str:
    """The unit that the annotation names; a number without one is a ratio or a count."""
    metadata = [*field.metadata, *(item for inner in inner_metadata(field.annotation) for item in inner)]
    return next((item.name for item in metadata if isinstance(item, Unit)), "")


if __name__ == "__main__":
    print(settings_page(), end="")
