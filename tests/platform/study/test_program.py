"""Studies of a program of the user's own: variants, identities, and what is refused before anything starts."""

import json
import math
import subprocess
from pathlib import Path

import pytest
from own_programs import write_study

from ablations.errors import FileError
from ablations.study.expand import Study, expand
from scalerl.recipe.command import CommandRecipe
from scalerl.run.run_folder import RunFolder


def study(folder: Path, *, sets: tuple[str, ...] = (), trainer: str = "", **keys: str) -> Study:
    return expand(write_study(folder, "", trainer=trainer, **keys), sets=sets)


def settings_of(found: Study) -> dict[str, object]:
    recipes = {one.name: one.recipe for one in found.variants}
    return {name: recipe.settings for name, recipe in recipes.items() if isinstance(recipe, CommandRecipe)}


def ids(found: Study) -> list[str]:
    return [run.id for run in found.runs]


def configuration(rate: float = 0.1, name: str = "adam", betas: tuple[float, ...] = (0.9, 0.99)) -> dict[str, object]:
    return {"rate": rate, "optimiser": {"name": name, "betas": list(betas)}}


def test_variants_are_overrides_of_the_configuration_in_every_form(tmp_path):
    (tmp_path / "other.yaml").write_text("rate: 0.5\noptimiser: {name: adam, betas: [0.9, 0.99]}\n")
    found = study(
        tmp_path,
        leave_one_out="{revert_to: other.yaml}",
        axes="{rate: [0.2], optimiser.name: [sgd]}",
        grid="{rate: [0.1, 0.3], optimiser.betas.1: [0.99, 0.999]}",
        zip="{optimiser.name: [rms], rate: [0.7]}",
        exclude="[{rate: 0.3, optimiser.betas.1: 0.999}]",
        variants="{doubled: {rate: {times: 2.5}, +warmup.steps: 10}}",
    )
    assert settings_of(found) == {
        "settings": configuration(),
        "loo-rate": configuration(0.5),
        "rate=0.2": configuration(0.2),
        "optimiser.name=sgd": configuration(name="sgd"),
        "rms,0.7": configuration(0.7, "rms"),
        "0.1,0.999": configuration(betas=(0.9, 0.999)),
        "0.3,0.99": configuration(0.3),
        "doubled": configuration(0.25) | {"warmup": {"steps": 10}},
    }


def test_base_and_set_change_the_reference_and_so_every_variant(tmp_path):
    # A program without a configuration takes any key, and a JSON file is a configuration.
    free = study(tmp_path / "free", reference="none", axes="{a.b: [1, 2]}")
    assert settings_of(free) == {"reference": {}, "a.b=1": {"a": {"b": 1}}, "a.b=2": {"a": {"b": 2}}}
    (tmp_path / "own.json").write_text(json.dumps({"rate": 1e-5, "on": True}))
    assert settings_of(study(tmp_path, reference="own.json"))["own"] == {"rate": 1e-5, "on": True}
    found = study(tmp_path, base="{optimiser.name: sgd, rate: 0.4}", sets=("rate=0.3",))
    assert settings_of(found) == {"settings": configuration(0.3, "sgd"), "rate=0.2": configuration(0.2, "sgd")}


def test_a_search_proposes_values_of_the_configuration(tmp_path):
    space = study(tmp_path, axes="", search="{space: {rate: {low: 0.01, high: 1.0, log: true}}, trials: 3}").space
    assert space is not None
    recipe, settings = space.vary({"rate": 0.5})
    assert (recipe.settings, settings) == (configuration(0.5), {"rate": 0.5})


def test_ids_follow_command_configuration_overrides_seed_and_code_and_nothing_else(tmp_path):
    first = ids(study(tmp_path / "a"))
    assert len(set(first)) == 4
    assert ids(study(tmp_path / "b", trainer=", threads: 2, grace_s: 1.0")) == first
    assert ids(study(tmp_path / "c", budget="{compute: 500}")) == first
    assert set(ids(study(tmp_path / "d", trainer=", overrides_as: flags"))).isdisjoint(first)
    (tmp_path / "a" / "train.py").write_text("another program")
    assert set(ids(expand(tmp_path / "a" / "own.yaml"))).isdisjoint(first)


def test_the_code_of_a_repository_is_its_commit_with_its_uncommitted_changes(tmp_path):
    def git(*arguments: str) -> None:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments]
        subprocess.run(command, check=True, capture_output=True)

    def found() -> CommandRecipe:
        recipe = expand(file).reference.recipe
        assert isinstance(recipe, CommandRecipe)
        return recipe

    file = write_study(tmp_path, "")
    file.write_text(file.read_text().replace("code: [train.py]", "code: git"))
    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    clean = found()
    head = (tmp_path / ".git" / "HEAD").read_text().removeprefix("ref: ").strip()
    commit = (tmp_path / ".git" / head).read_text().strip()
    assert clean.code_sha256 == {"commit": commit}
    (tmp_path / "results.txt").write_text("an untracked file that is no code")
    assert found().identity(0) == clean.identity(0)
    (tmp_path / "more.py").write_text("x = 1")
    new = found()
    (tmp_path / "more.py").unlink()
    (tmp_path / "train.py").write_text("x = 2")
    edited = found()
    assert len({clean.identity(0), new.identity(0), edited.identity(0)}) == 3
    assert edited.code_version == commit[:10] + "+dirty"


@pytest.mark.parametrize(
    ("keys", "line", "key", "found", "right"),
    [
        ({"reference": "setings.yaml"}, 3, "reference", "no file setings.yaml", "did you mean 'settings.yaml'?"),
        ({"axes": "{rat: [0.2]}"}, 4, "axes.rat.0", "unknown key 'rat' of the configuration", "did you mean 'rate'?"),
        ({"variants": "{a: {+rate: 1}}"}, 7, "variants.a.+rate", "rate already exists", "write it without +"),
        ({"scale": "laptop"}, 7, "scale", "no effect with trainer: a program has no scale; remove it", ""),
        ({"fit": "{task: math}"}, 7, "fit.task", "task 'math' is not measured", "there are no tasks"),
    ],
)
def test_a_wrong_key_is_refused_with_its_place_and_what_would_be_right(tmp_path, keys, line, key, found, right):
    with pytest.raises(FileError) as error:
        study(tmp_path, **keys)
    problem = next(one for one in error.value.problems if one.found.startswith(found))
    assert problem.place.line == line
    assert problem.place.key.startswith(key)
    assert problem.right.startswith(right)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"{python}"', "pyhton", "trainer.command: no program pyhton; write a program of PATH"),
        ("train.py]", '"{sed}"]', r"trainer.command: unknown placeholder {sed} in '{sed}'; placeholders are: {python}"),
        ("code: [train.py]", "code: [tran.py]", "trainer.code: no file or folder "),
        ("code: [train.py]", "code: git", "has no git commit (fatal: not a git repository"),
        ("type: command", "type: shell", "trainer.type: unknown value 'shell'; values are: command"),
        ("compute: tokens", "folder: nowhere", "trainer.folder: no folder "),
    ],
)
def test_a_trainer_that_cannot_run_is_refused(tmp_path, old, new, words):
    file = write_study(tmp_path, "")
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(FileError) as error:
        expand(file)
    assert words in str(error.value)


def test_an_override_that_would_replace_a_variable_of_the_environment_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("RATE", "1")
    with pytest.raises(FileError, match="rate would replace the environment variable RATE; rename the key"):
        study(tmp_path, trainer=", overrides_as: variables")


def test_numbers_that_are_not_finite_are_settings_of_their_own(tmp_path):
    values = (".inf", "-.inf", ".nan", "null", '".inf"', "1e300")
    file = write_study(
        tmp_path, "", axes="", variants=f"{{{', '.join(f'v{i}: {{rate: {v}}}' for i, v in enumerate(values))}}}"
    )
    found = expand(file)
    assert len(set(ids(found))) == 2 * (len(values) + 1)
    rates = [one["rate"] for one in settings_of(found).values() if isinstance(one, dict)]
    assert repr(rates) == repr([0.1, math.inf, -math.inf, math.nan, None, ".inf", 1e300])
    for variant, run in zip(found.variants, found.runs[::2], strict=True):  # and stay so in recipe.json
        RunFolder(tmp_path / run.id).create(variant.recipe, 0)
        stored, _ = RunFolder(tmp_path / run.id).read_recipe()
        assert isinstance(stored, CommandRecipe)
        assert isinstance(variant.recipe, CommandRecipe)
        assert repr(stored.settings) == repr(variant.recipe.settings)
    with pytest.raises(FileError, match=r"the number 1e400 is too large; write \.inf if it is meant"):
        expand(write_study(tmp_path, "", axes="{rate: [1e400]}"))


@pytest.mark.parametrize(
    ("form", "variants", "words"),
    [
        ("variables", "{a: {+a.b: 1, +a_b: 2}}", "a.b and +a_b are both passed as A_B; rename a key"),
        ("flags_with_underscores", "{a: {+a.b: 1, +a_b: 2}}", "a.b and +a_b are both passed as --a_b; rename a key"),
        ("flags", '{a: {rate: "a\\0b"}}', "has a character that cannot be passed to a program; remove it"),
        ("hydra", '{a: {optimiser.betas: [{"1": 2}]}}', "Hydra cannot read '1' as the key of a mapping; rename it"),
    ],
)
def test_overrides_that_cannot_be_told_apart_or_passed_are_refused(tmp_path, form, variants, words):
    file = write_study(tmp_path, "", axes="", variants=variants, trainer=f", overrides_as: {form}")
    file.write_text(file.read_text().replace("train.py],", 'train.py, "{overrides}"],', 1))
    with pytest.raises(FileError) as error:
        expand(file)
    assert words in str(error.value)
    file.write_text(file.read_text().replace('"{overrides}"', '"{config}"'))
    if form != "variables":
        assert len(expand(file).runs) == 4  # the program reads the file


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("{path: logs, trainer: verl, gpus: 8}", "'logs' would be shared by all runs; begin it with {folder}"),
        (
            '{path: "{folder}/log.jsonl", score: acc}',
            "log.compute missing; name columns, or the trainer with log.trainer",
        ),
    ],
)
def test_a_log_of_the_programs_own_is_checked_when_the_file_is_read(tmp_path, log, words):
    with pytest.raises(FileError) as caught:
        study(tmp_path, trainer=f", log: {log}")
    assert words in str(caught.value)
    assert "own.yaml:2" in str(caught.value)


@pytest.mark.parametrize(
    "hidden", ["{db.password: ['***', a]}", "{db.url: ['http://***@host/x', a]}", "{rate: {other: {db.key: '***'}}}"]
)
def test_the_copy_of_a_sweep_without_its_passwords_is_refused_at_them(tmp_path, hidden):
    with pytest.raises(FileError, match=r"own.yaml:\d+: axes\..*\*\*\*.*: a home folder keeps no passwords"):
        study(tmp_path, axes=hidden)
