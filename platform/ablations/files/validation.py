"""Checks a source against a pydantic model; complaints become messages that say what would be right.

>>> validated(read_yaml(Path("recipes/mine.yaml")), Recipe)
FileError: recipes/mine.yaml:2: loss.max_ration: unknown key 'max_ration'; did you mean 'max_ratio'? keys of cispo
are: type, min_ratio, max_ratio
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError
from pydantic_core import ErrorDetails

from ablations.errors import FileError, FileProblem
from ablations.files.source import KeyPath, Source, shown_value
from ablations.nearest_name import did_you_mean

M = TypeVar("M", bound=BaseModel)

_RIGHT = {
    "finite_number": "must be a finite number",
    "float_type": "must be a number",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "int_type": "must be an integer, in digits only",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "string_type": "must be a string; put it in quotes if it looks like a number",
    "too_long": "must have at most {max_length} entries",
    "too_short": "must have at least {min_length} entry",
    "tuple_type": "must be a list, as in [a, b]",
}
"""Advice, by pydantic's error type."""
MAX_PATHS = 3
"""Limit on the paths that a message offers for the last part of a path."""


def validated(source: Source, model: type[M], elsewhere: Mapping[str, str] | None = None) -> M:
    """Parse `source` as a `model`; raises one FileError with every problem.

    Nothing is coerced: "64" is not a number and 1 is not true. `elsewhere` maps top-level keys that the model lacks to
    the place where they belong.
    """
    try:
        # Go through JSON: pydantic's strict mode does not turn a Python list into a tuple.
        return model.model_validate_json(json.dumps(source.data), strict=True)
    except ValidationError as error:
        details = [detail for detail in error.errors() if not _follows_from_another(detail)]
        raise FileError(*(_problem(detail, source, model, elsewhere or {}) for detail in details)) from None


def _follows_from_another(detail: ErrorDetails) -> bool:
    """True if the complaint (a short list, a missing default) is only a consequence of another."""
    if detail["type"] == "default_factory_not_called":
        return True
    return detail["type"] == "too_short" and len(detail["input"]) >= detail.get("ctx", {})["min_length"]


def _problem(detail: ErrorDetails, source: Source, model: type[BaseModel], elsewhere: Mapping[str, str]) -> FileProblem:
    key = _written_key(source.data, detail["loc"])
    context, value = detail.get("ctx", {}), detail["input"]
    found, right = f"found {shown_value(value)}", ""
    match detail["type"]:
        case "missing":
            place = source.place(key).inside(detail["loc"][-1])
            return FileProblem(place=place, found="missing", right="this setting has no default")
        case "extra_forbidden":
            found, right = f"unknown key '{key[-1]}'", _right_key(detail["loc"], model, elsewhere)
        case "literal_error":
            found = f"unknown value {shown_value(value)}" if isinstance(value, str) else found
            right = did_you_mean(str(value), _choices(context["expected"]), "values")
        case "union_tag_invalid":
            key = (*key, "type")
            found = f"unknown type '{context['tag']}'"
            right = did_you_mean(context["tag"], _choices(context["expected_tags"]), "types")
        case "union_tag_not_found":
            found, right = "no type", _right_mapping(detail["loc"], model)
        case "dict_type" | "model_type":
            right = _right_mapping(detail["loc"], model)
        case "value_error":
            key, found = _blamed(key, str(context["error"]), model)
        case kind:
            right = _RIGHT[kind].format_map(_whole(context)) if kind in _RIGHT else detail["msg"]
    return FileProblem(place=source.place(key), found=found, right=right)


def _written_key(data: Any, loc: Sequence[str | int]) -> KeyPath:
    """The keys in `loc` without the union tags and other markers that pydantic inserts between the written keys."""
    key: list[str | int] = []
    for part in loc:
        if part in _keys(data):
            key.append(part)
            data = data[part]
    return tuple(key)


def _keys(data: Any) -> Collection[str | int]:
    match data:
        case dict():
            return data.keys()
        case list():
            return range(len(data))
    return ()


def _blamed(key: KeyPath, message: str, model: type[BaseModel]) -> tuple[KeyPath, str]:
    """The field at fault. Messages of whole-model checks start with its name: "cluster: 768 slots hold ..."."""
    field, colon, text = message.partition(": ")
    if not key and colon and field in model.model_fields:
        return (field,), text
    return key, message


def _whole(bounds: Mapping[str, Any]) -> dict[str, Any]:
    """Bounds as a person writes them: 0 instead of 0.0."""
    return {name: f"{bound:g}" if isinstance(bound, float) else bound for name, bound in bounds.items()}


def _choices(names: str) -> list[str]:
    """The values in a list as pydantic writes it: "'torch' or 'vllm'", "2 or 3"."""
    return [text or number for text, number in re.findall(r"'([^']*)'|(\S*\d)", names)]


def _right_mapping(loc: Sequence[str | int], model: type[BaseModel]) -> str:
    if len(loc) == 1 and (examples := model.model_fields[str(loc[0])].examples):
        return str(examples[0])
    *_, annotation = _annotations(model, loc)
    tags = list(_members(annotation))
    return f"must be a mapping with a type, one of: {', '.join(tags)}" if tags else "must be a mapping"


def _right_key(loc: Sequence[str | int], model: type[BaseModel], elsewhere: Mapping[str, str]) -> str:
    """The keys of the model around `loc`, or the place where an unknown key belongs."""
    *outer, around = map(_bare, _annotations(model, loc[:-1]))
    unknown = str(loc[-1])
    if len(loc) == 1 and unknown in elsewhere:
        return f"this key belongs in {elsewhere[unknown]}"
    members = _members(outer[-1]) if outer else {}
    owners = [tag for tag, member in members.items() if unknown in member.model_fields]
    keys = f"keys of {loc[-2]}" if len(loc) > 1 and isinstance(loc[-2], str) else "keys"
    if not owners and (paths := paths_ending_in(unknown, model)):
        return f"did you mean {' or '.join(map(repr, paths[:MAX_PATHS]))}?"
    right = did_you_mean(unknown, around.model_fields, keys)
    return f"{right} ('{unknown}' belongs to {' and '.join(owners)})" if owners else right


def paths_ending_in(name: str, model: type[BaseModel]) -> list[str]:
    """The settings of this name inside the blocks of a model, such as `optimiser.learning_rate`, in the order of its
    fields."""
    return list(dict.fromkeys(path for path in _paths(model) if "." in path and path.rpartition(".")[2] == name))


def _paths(model: type[BaseModel], before: str = "") -> Iterator[str]:
    """The dotted paths of all settings in the blocks of a model, of every type that a block may have."""
    for name, field in model.model_fields.items():
        yield f"{before}{name}"
        inner = _bare(field.annotation)
        blocks = [inner] if isinstance(inner, type) else list(_members(inner).values())
        for block in blocks:
            if issubclass(block, BaseModel):
                yield from _paths(block, f"{before}{name}.")


def _annotations(annotation: Any, loc: Sequence[str | int]) -> Iterator[Any]:
    """The annotation of the model, then of each step of `loc` inside it."""
    yield annotation
    for part in loc:
        annotation = _inside(annotation, part)
        yield annotation


def _inside(annotation: Any, part: str | int) -> Any:
    """The annotation of a model field, of a mapping or list value, or of the union member with that tag."""
    annotation = _bare(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        field = annotation.model_fields.get(str(part))
        return field.annotation if field else None
    if get_origin(annotation) is dict:
        return get_args(annotation)[1]
    if get_origin(annotation) is tuple:
        return get_args(annotation)[0]
    return _members(annotation).get(str(part))


def _bare(annotation: Any) -> Any:
    """The annotation without metadata and without `| None`."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        members = [member for member in get_args(annotation) if member is not NoneType]
        return _bare(members[0]) if len(members) == 1 else annotation
    return annotation


def _members(annotation: Any) -> dict[str, type[BaseModel]]:
    """The models of a union told apart by `type` or by tags, keyed by those; empty for anything else."""
    annotation = _bare(annotation)
    if get_origin(annotation) not in (Union, UnionType):
        return {}
    members = {member: _bare(member) for member in get_args(annotation)}
    return {
        _tag(member, model): model
        for member, model in members.items()
        if isinstance(model, type) and issubclass(model, BaseModel)
    }


def _tag(member: Any, model: type[BaseModel]) -> str:
    for mark in getattr(member, "__metadata__", ()):
        if isinstance(mark, Tag):
            return mark.tag
    annotation = model.model_fields["type"].annotation
    assert get_origin(annotation) is Literal, f"{model.__name__} is discriminated by type but its type is not a literal"
    return get_args(annotation)[0]
