"""A study to begin with: what `platform new` writes is a sweep file, its alternatives too."""

import pytest
from typer.testing import CliRunner

from ablations.cli import app
from ablations.errors import AblationsError
from ablations.study.expand import expand
from ablations.study.sweep import load_sweep


def written(*arguments):
    return CliRunner().invoke(app, ["new", *map(str, arguments)])


def variants_of(path):
    return [one.name for one in expand(path).variants]


def test_the_file_is_a_study_of_its_name(tmp_path):
    path = tmp_path / "mine" / "losses.yaml"
    done = written(path)
    assert done.exit_code == 0
    assert f"sweep {path} --dry-run" in done.output
    sweep = load_sweep(path)
    assert (sweep.name, sweep.reference, sweep.scale, sweep.seeds) == ("losses", "scalerl", "smoke", (0, 1, 2))
    assert variants_of(path) == ["scalerl", "dapo", "token-average", "both"]


@pytest.mark.parametrize("key", ["grid", "leave_one_out"])
def test_what_stands_in_comments_can_take_the_place_of_the_variants(tmp_path, key):
    path = tmp_path / "other.yaml"
    written(path, "--scale", "laptop")
    lines = path.read_text().splitlines()
    kept = [line for line in lines if not line.startswith(("variants:", "  "))]
    path.write_text("\n".join(line.removeprefix("# ") if line.startswith(f"# {key}:") else line for line in kept))
    assert len(variants_of(path)) >= 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{}/there.yaml"], r"there.yaml exists; name another file, or delete it"),
        (["{}/mine"], r"a sweep file ends in .yaml; write .*/mine.yaml"),
        (["{}/my study.yaml"], r"takes its name from the file, but 'my study' is not a name"),
        (["{}/mine.yaml", "--scale", "laptp"], r"unknown scale 'laptp'; did you mean 'laptop'"),
    ],
)
def test_a_mistake_writes_nothing(tmp_path, arguments, said):
    (tmp_path / "there.yaml").write_text("name: there\n")
    done = written(*(one.format(tmp_path) for one in arguments))
    assert isinstance(done.exception, AblationsError)
    with pytest.raises(AblationsError, match=said):
        raise done.exception
    assert [one.name for one in tmp_path.iterdir()] == ["there.yaml"]
    assert (tmp_path / "there.yaml").read_text() == "name: there\n"
