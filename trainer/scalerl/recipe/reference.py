"""All settings of a recipe and a scale as Markdown, generated from the models: the site's page `recipes`.

python -m scalerl.recipe.reference      # the page, in the terminal
"""

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Len, Lt, MaxLen, MinLen, MultipleOf
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from scalerl.frozen import Frozen, Unit
from scalerl.recipe.axes import Recipe
from scalerl.recipe.scale import Scale

SETTINGS_PREAMBLE = """\
# Every setting

Made by `make docs` from the models in `trainer/scalerl/recipe/`; a test fails if this page is out of date.

A *recipe* is the algorithm's choices (`recipes/*.yaml`), a *scale* is everything else (`recipes/scales/*.yaml`). A
sweep puts its overrides on top of both: `loss.max_ratio: 8`, `batch.prompts: {times: 2}`. A block that has a `type` is
replaced as a whole when the type changes. Omitted settings have their defaults; writing a default explicitly does not
make a new run. Unknown settings, values out of range and settings without effect are rejected with file, line and
key."""

BOUNDS = {Ge: "≥", Gt: ">", Le: "≤", Lt: "<", MultipleOf: "multiple of"}


def settings_page() -> str:
    parts = [SETTINGS_PREAMBLE]
    for title, model in (("Recipe", Recipe), ("Scale", Scale)):
        parts += [f"## {title}", said(model), settings_table(model)]
        for name, field in model.model_fields.items():
            for inner in models_of(field.annotation):
                parts += sections(name, inner, settings_table, models_of)
    return "\n\n".join(parts) + "\n"


def sections(
    path: str,
    model: type[BaseModel],
    table_of: Callable[[type[BaseModel]], str],
    inside: Callable[[Any], Iterable[type[BaseModel]]],
) -> list[str]:
    """A section for the block at `path`, and for the blocks inside it, which `inside` finds by the type of a field."""
    heading = f"{path}: {{type: {model.model_fields['type'].default}}}" if "type" in model.model_fields else path
    parts = [f"### `{heading}`", said(model)]
    if any(name != "type" for name in model.model_fields):
        parts.append(table_of(model))
    for name, field in model.model_fields.items():
        for inner in inside(field.annotation):
            parts += sections(f"{path}.{name}", inner, table_of, inside)
    return parts


def models_of(annotation: Any) -> Iterator[type[BaseModel]]:
    """Models that a value of this type may be an instance of, including items of a tuple."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) is Annotated:
        yield from models_of(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, types.UnionType, tuple):
        for argument in get_args(annotation):
            yield from models_of(argument)


def table(model: type[BaseModel], first: str, columns: Mapping[str, Callable[[FieldInfo], str]]) -> str:
    """One row per field, with its name, the text of each column and its meaning; the heading has the `type` of a
    block.
    """
    rows = [[first, *columns, "meaning"], ["---"] * (len(columns) + 2)]
    for name, field in model.model_fields.items():
        if name != "type":
            cells = (f"`{name}`", *(text(field) for text in columns.values()), meanings(model).get(name, ""))
            rows.append([" ".join(cell.replace("|", "\\|").split()) for cell in cells])
    return "\n".join(f"|{'|'.join(row)}|" if row[0] == "---" else f"| {' | '.join(row)} |" for row in rows)


@cache
def meanings(model: type[BaseModel]) -> Mapping[str, str]:
    """The string below each field of a model and of its bases, by the field's name.

    It is read from the source when it is asked for, because reading it with each model would take a fifth of the time
    in which a command starts.
    """
    found: dict[str, str] = {}
    for one in reversed(model.__mro__):
        if issubclass(one, Frozen) and one is not Frozen:
            (defined,) = ast.parse(textwrap.dedent(inspect.getsource(one))).body
            assert isinstance(defined, ast.ClassDef)
            for field, below in pairwise(defined.body):
                match field, below:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                        found[name] = inspect.cleandoc(text)
    return found


def settings_table(model: type[BaseModel]) -> str:
    return table(model, "setting", {"default": default_of, "range": range_of, "unit": unit_of})


def said(model: type[BaseModel]) -> str:
    """The model's docstring, one line per paragraph."""
    paragraphs = inspect.cleandoc(model.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def default_of(field: FieldInfo) -> str:
    """Default as YAML writes it; a block by its type, or "below" if its own section has all of its defaults."""
    # A default factory receives the values set before, here none.
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, tuple) and value and isinstance(value[0], BaseModel):
        return "one " + ", ".join(block_default(item) for item in value)
    return block_default(value) if isinstance(value, BaseModel) else f"`{yaml_scalar(value)}`"


def block_default(block: BaseModel) -> str:
    """Default of a block: `type: cispo`, or "below" for a block without a type."""
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
    """Bounds of a number, choices of a literal, or types of a block."""
    choices = list(types_of(field.annotation))
    bounds = [bound for item in (field.metadata, *inner_metadata(field.annotation)) for bound in bounds_of(item)]
    return ", ".join(dict.fromkeys([*bounds, *choices]))


def inner_metadata(annotation: Any) -> Iterator[list[Any]]:
    """Metadata of the arguments of a union or tuple, where the bounds of `Positive | None` are."""
    if get_origin(annotation) is Annotated:
        metadata = list(annotation.__metadata__)
        yield [inner for item in metadata for inner in (item.metadata if isinstance(item, FieldInfo) else [item])]
    if get_origin(annotation) is not Literal:
        for argument in get_args(annotation):
            yield from inner_metadata(argument)


def bounds_of(metadata: list[Any]) -> Iterator[str]:
    """Bounds as text, such as `≥ 0`, `< 1`, `multiple of 8`, `not empty`."""
    for item in metadata:
        if type(item) in BOUNDS:
            (bound,) = astuple(item)
            yield f"{BOUNDS[type(item)]} {yaml_scalar(bound)}"
        elif isinstance(item, MinLen):
            yield "not empty"
        else:
            assert not isinstance(item, Len | MaxLen), "add the wording of an upper bound on a length here"


def types_of(annotation: Any) -> Iterator[str]:
    """Allowed values as text."""
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
    """Unit named by the annotation; empty for a ratio or a count."""
    metadata = [*field.metadata, *(item for inner in inner_metadata(field.annotation) for item in inner)]
    return next((item.name for item in metadata if isinstance(item, Unit)), "")


if __name__ == "__main__":
    print(settings_page(), end="")
