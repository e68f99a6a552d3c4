import math
from pathlib import Path

import pytest

from ablations.errors import FileError, Place
from ablations.files import source as source_module
from ablations.files.source import parse_value, read_yaml


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "file.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5e-7", 5e-7),
        (".5", 0.5),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("-.inf", -math.inf),
        ("true", True),
        ("~", None),
        ("", None),
        ("off", "off"),
        ("yes", "yes"),
        ("2025-11-20", "2025-11-20"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("'1'", "1"),
        ("!!str 8", "8"),
        ("{times: 2}", {"times": 2}),
        ("[1, 2]", [1, 2]),
    ],
)
def test_plain_values_follow_the_core_schema_of_yaml_1_2(text, value):
    parsed = parse_value(text, Place(source="--set"))
    assert parsed == value
    assert type(parsed) is type(value)


def test_every_key_and_list_item_knows_its_line(tmp_path):
    source = read_yaml(written(tmp_path, "# comment\nname: x\naxes:\n  batch:\n    - 1\n    - 2\n"))
    lines = {key: place.line for key, place in source.places.items()}
    assert lines == {("name",): 2, ("axes",): 3, ("axes", "batch"): 4, ("axes", "batch", 0): 5, ("axes", "batch", 1): 6}


def test_what_is_not_written_is_placed_at_the_nearest_thing_that_is(tmp_path):
    source = read_yaml(written(tmp_path, "model:\n  heads: 3\n"))
    assert source.place(("model", "hidden")) == source.place(("model",)).inside("hidden")
    assert source.place(("batch",)).line == 1


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path):
    source = read_yaml(written(tmp_path, b"\xef\xbb\xbfname: x\r\nseeds: [0]\r\n"))
    assert source.data == {"name": "x", "seeds": [0]}
    assert source.place(("seeds",)).line == 2


def test_a_missing_file_is_told_its_nearest_neighbour_and_a_sweep_its_file(tmp_path, monkeypatch):
    written(tmp_path, "name: x\n")
    with pytest.raises(FileError, match=r"fil\.yaml: no such file; did you mean 'file\.yaml'\?"):
        read_yaml(tmp_path / "fil.yaml")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps" / "loo.yaml").write_text("name: loo\n")
    with pytest.raises(FileError, match=r"loo: no such file; did you mean sweeps/loo\.yaml\?"):
        read_yaml(Path("loo"))


def test_a_file_that_cannot_be_opened_says_why(tmp_path):
    loop = tmp_path / "loop.yaml"
    loop.symlink_to(loop)
    with pytest.raises(FileError, match=r"loop\.yaml: cannot be read \(Too many levels of symbolic links\)"):
        read_yaml(loop)


def test_a_file_too_large_to_be_hand_written_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(source_module, "MAX_BYTES", 20)
    with pytest.raises(FileError, match="larger than a megabyte"):
        read_yaml(written(tmp_path, "name: " + "x" * 20))


@pytest.mark.parametrize("text", ["!!int x", "!local 1", "? [a]\n: 1", "a: b: c", "%", "*"])
def test_odd_yaml_is_a_file_error(text):
    with pytest.raises(FileError):
        parse_value(text, Place(source="--set"))


@pytest.mark.parametrize("depth", [60, 900, 20_000])
def test_a_block_that_is_nested_too_deeply_is_named_with_its_line(tmp_path, depth):
    text = "name: x\nvariants:\n  a: " + "{b: " * depth + "1" + "}" * depth + "\n"
    with pytest.raises(FileError) as refused:
        read_yaml(written(tmp_path, text))
    (problem,) = refused.value.problems
    assert (problem.place.line, problem.found) == (3, "nested more than 50 deep")
    assert problem.right == "a dozen levels are plenty"
