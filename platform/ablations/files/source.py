"""A YAML file as plain values that remember where each was written.

    >>> source = read_yaml(Path("sweeps/loo.yaml"))
    >>> source.data["seeds"], source.place(("seeds",))
    ([0], Place(source='sweeps/loo.yaml', line=12, key='seeds'))

Plain scalars follow the YAML 1.2 core schema, unlike PyYAML's own rules: `5e-7` is a number, `off` and `2025-01-01` are
strings. YAML that is almost always a mistake is rejected: duplicate keys, tags, keys that are not strings, and values
that contain themselves or grow without bound through aliases.

PyYAML parses; the code below converts its nodes. ruamel.yaml knows YAML 1.2 and the line of every key, but still reads
`2025-01-01` as a date and `1_000` as a number, accepts keys that are not strings, and expands aliases without limit.
The walk below would still be needed, and reading `sweeps/loo.yaml` would take 9 ms instead of 5.
"""

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ablations.errors import FileError, Place
from ablations.nearest_name import did_you_mean
from scalerl.readable_folders import refuse_unreadable

KeyPath = tuple[str | int, ...]
"""Keys and list positions that lead from the top of a file to a value: `("axes", "batch", 0)`."""

MAX_BYTES = 1_000_000
MAX_DEPTH = 50
"""Limit on the nesting of one file; a large hand-written sweep has six levels."""
MAX_VALUES = 20_000
"""Limit on the values in one file after aliases are expanded; a large hand-written sweep has a few hundred."""
TOO_DEEP = f"nested more than {MAX_DEPTH} deep", "a dozen levels are plenty"


@dataclass(frozen=True, kw_only=True)
class Source:
    """A tree of plain values and the place of each; `root` is the place of the whole file."""

    data: dict[str, Any]
    places: Mapping[KeyPath, Place]
    root: Place

    def place(self, key: KeyPath) -> Place:
        """The place of `key`; else the first place inside it, else the nearest key around it, else root."""
        if key in self.places:
            return self.places[key]
        if key:
            for written, place in self.places.items():
                if written[: len(key)] == key:
                    return place
        for depth in range(len(key) - 1, 0, -1):
            if key[:depth] in self.places:
                return self.places[key[:depth]].inside(*key[depth:])
        return self.root


def read_yaml(path: Path) -> Source:
    """Read a YAML file; raises FileError if it is not a mapping."""
    root = Place(source=shown_path(path), line=1)
    text = _decoded(_bytes(path), root)
    data, places = _parsed(text, root)
    if data is None:
        raise root.error("the file is empty", "write `key: value` lines")
    if not isinstance(data, dict):
        raise root.error(f"found {shown_value(data)}", "write `key: value` lines")
    return Source(data=data, places=places, root=root)


def parse_value(text: str, place: Place) -> Any:
    """The value of one command-line setting, in YAML's flow style: `64`, `grpo`, `{times: 2}`."""
    return _parsed(text, place)[0]


def yaml_files(folder: Path) -> list[Path]:
    """The YAML files in a folder; empty if the folder does not exist."""
    return sorted(folder.glob("*.yaml")) if os.path.isdir(folder) else []


def shown_path(path: Path) -> str:
    """A path as a person would type it: relative if it lies below the current folder."""
    try:
        return str(Path(os.path.abspath(path)).relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def shown_value(value: Any) -> str:
    """A value as error messages show it."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case dict():
            return "a mapping" if value else "an empty mapping"
        case list():
            return "a list" if value else "an empty list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _bytes(path: Path) -> bytes:
    place = Place(source=shown_path(path))
    try:
        refuse_unreadable(path)
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise place.error("no such file", _nearest_file(path)) from None
    except IsADirectoryError:
        raise place.error("this is a folder", "name a file in it") from None
    except OSError as error:
        raise place.error(f"cannot be read ({error.strerror})", "name a readable file") from None
    if len(data) > MAX_BYTES:
        raise place.error("larger than a megabyte", "sweeps and recipes are short YAML files")
    return data


def _nearest_file(path: Path) -> str:
    if not path.parent.is_dir():
        return f"the folder {path.parent} does not exist"
    names = [other.name for other in yaml_files(path.parent)]
    meant = Path("sweeps") / f"{path.stem}.yaml"
    if path.parent == Path() and meant.is_file():  # a name, as of a recipe
        return f"did you mean {meant}?"
    return did_you_mean(path.name, names, f"YAML files in {path.parent}")


def _decoded(data: bytes, root: Place) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"not text: byte 0x{data[error.start]:02x} is not UTF-8"
        place = Place(source=root.source, line=line)
        raise place.error(found, "save the file as UTF-8 YAML") from None


def _parsed(text: str, root: Place) -> tuple[Any, dict[KeyPath, Place]]:
    """Parse `text`; returns its value and the place of every key and list item."""
    if indented := re.search(r"^ *\t", text, flags=re.MULTILINE):
        place = _Tree(root).place(text.count("\n", 0, indented.start()))
        raise place.error("a tab in the indentation", "indent with spaces")
    tree = _Tree(root)
    try:
        node = _CoreLoader(text).get_single_node()
        return (None if node is None else tree.value(node, ())), tree.places
    except yaml.YAMLError as error:
        line, found = _complaint(error, text)
        right = "check the indentation, brackets and quotes around this line"
        raise tree.place(line).error(f"not YAML: {found}", right) from None
    except RecursionError:
        line = _line_of_depth(text)
        key = re.match(r"([A-Za-z_][\w.-]*):", text.splitlines()[line])
        raise tree.place(line, (key[1],) if key else ()).error(*TOO_DEEP) from None


def _line_of_depth(text: str) -> int:
    """The 0-based line on which `text` is nested more than MAX_DEPTH deep."""
    depth = 0
    for event in yaml.parse(text, _CoreLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            return event.start_mark.line
    return 0


def _complaint(error: yaml.YAMLError, text: str) -> tuple[int, str]:
    """The 0-based line of a YAML error, and what is wrong."""
    if isinstance(error, yaml.reader.ReaderError):
        return text.count("\n", 0, error.position), f"control character {chr(error.character)!r}"
    if not isinstance(error, yaml.MarkedYAMLError):
        return 0, str(error)
    began = f"{error.context} (line {error.context_mark.line + 1}): " if error.context_mark else ""
    return error.problem_mark.line if error.problem_mark else 0, f"{began}{error.problem}"


_TAG = "tag:yaml.org,2002:"
_SCALARS: dict[str, tuple[re.Pattern[str], Callable[[str], Any]]] = {
    _TAG + "null": (re.compile(r"(~|null|Null|NULL|)\Z"), lambda text: None),
    _TAG + "bool": (re.compile(r"(true|True|TRUE|false|False|FALSE)\Z"), lambda text: text.lower() == "true"),
    _TAG + "int": (
        re.compile(r"([-+]?[0-9]{1,400}|0o[0-7]{1,400}|0x[0-9a-fA-F]{1,400})\Z"),
        lambda text: int(text, {"0o": 8, "0x": 16}.get(text[:2], 10)),
    ),
    _TAG + "float": (
        re.compile(
            r"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z",
        ),
        lambda text: float(re.sub(r"\.(?=inf|nan)", "", text.lower())),
    ),
    _TAG + "str": (re.compile(""), str),
}
"""The YAML 1.2 core schema (§10.3.2): a pattern and a conversion for each kind of scalar."""


def _shown_tag(node: yaml.Node) -> str:
    return node.tag.replace(_TAG, "!!")


class _CoreLoader(yaml.SafeLoader):
    """PyYAML's parser with the core schema instead of PyYAML's own rules for plain scalars."""


_CoreLoader.yaml_implicit_resolvers = {
    None: [(tag, pattern) for tag, (pattern, _) in _SCALARS.items() if tag != _TAG + "str"]
}


class _Tree:
    """Turns YAML nodes into plain values and records the place of each."""

    def __init__(self, root: Place) -> None:
        self.places: dict[KeyPath, Place] = {}
        self._root = root
        self._around: set[int] = set()
        self._num_values = 0

    def place(self, line: int, key: KeyPath = ()) -> Place:
        """The place of `key` on line `line` (0-based) of this text."""
        numbered = None if self._root.line is None else line + 1
        return Place(source=self._root.source, line=numbered, key=self._root.key).inside(*key)

    def value(self, node: yaml.Node, key: KeyPath) -> Any:
        """The value of `node`, with aliases expanded."""
        self._num_values += 1
        if self._num_values > MAX_VALUES:
            raise self._error(
                node, key, f"aliases expand to more than {MAX_VALUES} values", "write out only the values you need"
            )
        if len(key) > MAX_DEPTH:
            raise self._error(node, key[:1], *TOO_DEEP)
        if id(node) in self._around:
            raise self._error(node, key, "an alias that contains itself", "write the value out")
        self._around.add(id(node))
        value = self._content(node, key)
        self._around.discard(id(node))
        return value

    def _content(self, node: yaml.Node, key: KeyPath) -> Any:
        match node:
            case yaml.ScalarNode() if node.tag in _SCALARS:
                return self._scalar(node, key)
            case yaml.SequenceNode() if node.tag == _TAG + "seq":
                return self._list(node, key)
            case yaml.MappingNode() if node.tag == _TAG + "map":
                return self._mapping(node, key)
        raise self._error(node, key, f"the tag {_shown_tag(node)}", "write plain values without tags")

    def _scalar(self, node: yaml.ScalarNode, key: KeyPath) -> Any:
        pattern, convert = _SCALARS[node.tag]
        if not pattern.match(node.value):
            raise self._error(node, key, f"{_shown_tag(node)} {node.value}", "write a value that matches the tag")
        value = convert(node.value)
        if isinstance(value, float) and math.isinf(value) and "inf" not in node.value.lower():
            raise self._error(node, key, f"the number {node.value} is too large", "write .inf if it is meant")
        return value

    def _list(self, node: yaml.SequenceNode, key: KeyPath) -> list[Any]:
        values = []
        for position, item in enumerate(node.value):
            self.places[(*key, position)] = self.place(item.start_mark.line, (*key, position))
            values.append(self.value(item, (*key, position)))
        return values

    def _mapping(self, node: yaml.MappingNode, key: KeyPath) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            name = self._name(key_node, key)
            inner = (*key, name)
            if name in values:
                raise self._error(key_node, inner, "written twice", f"first on line {self.places[inner].line}")
            self.places[inner] = self.place(key_node.start_mark.line, inner)
            values[name] = self.value(value_node, inner)
        return values

    def _name(self, node: yaml.Node, key: KeyPath) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self._error(node, key, "a key that is not a name", "keys are plain words")
        if node.tag != _TAG + "str":
            raise self._error(node, key, f"the key {node.value} is not a string", f'write "{node.value}"')
        return node.value

    def _error(self, node: yaml.Node, key: KeyPath, found: str, right: str) -> FileError:
        return self.place(node.start_mark.line, key).error(found, right)
