"""The two trees of errors, and how the command line ends with each of their classes."""

import builtins
import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

import ablations
import scalerl
from ablations import cli
from ablations.errors import AblationsError, FileError, FileProblem, Place
from scalerl.errors import Interrupted, Rejected, ScaleRLError
from scalerl.run.run_folder import RunFolder
from scalerl.run.status import RunStatus
from scalerl.tasks.left_out import LeftOut, UnreadableRows

IN_THE_SANDBOX = {"OtherSideGone", "Unsendable"}
"""Of programs there, which import nothing of the trainer."""
TREES = [(scalerl, ScaleRLError), (ablations, AblationsError)]
BUILT_IN = {name for name, one in vars(builtins).items() if isinstance(one, type) and issubclass(one, BaseException)}


def written_classes(package) -> dict[str, str]:
    """Every exception class in the source of a package, and its module, which is imported."""
    root, found, more = Path(package.__path__[0]), {}, True
    sources = {path: re.findall(r"^class (\w+)\((.+)\):", path.read_text(), re.M) for path in root.rglob("*.py")}
    while more:
        known = BUILT_IN | found.keys()
        more = {
            name: ".".join([package.__name__, *path.relative_to(root).with_suffix("").parts]).removesuffix(".__init__")
            for path, classes in sources.items()
            for name, bases in classes
            if name not in known and known.intersection(bases.split(", "))
        }
        found |= more
    for module in found.values():
        importlib.import_module(module)
    return found


def tree_of(base: type) -> dict[str, str]:
    """Every class below `base` and the class that it comes from."""
    below = {one.__name__: base.__name__ for one in base.__subclasses__()}
    return below | {name: parent for one in base.__subclasses__() for name, parent in tree_of(one).items()}


def drawn_in(module) -> dict[str, str]:
    """The tree that a docstring draws, in the same form."""
    drawn, above = {}, []
    for line in inspect.getdoc(module).splitlines():
        if match := re.match(r"(?P<branch>[│├└─ ]*)(?P<name>[A-Z]\w+)(\(\w+\))?( {2,}\S|$)", line):
            depth = len(match["branch"]) // 4
            above[depth:] = [match["name"]]
            if depth:
                drawn[match["name"]] = above[depth - 1]
    return drawn


def all_below(base: type) -> list[type]:
    return [base, *(below for one in base.__subclasses__() for below in all_below(one))]


WRITTEN = {base: written_classes(package) for package, base in TREES}
CLASSES = [one for base in WRITTEN for one in all_below(base) if one is not ScaleRLError]


@pytest.mark.parametrize("base", WRITTEN)
def test_the_docstring_draws_the_tree_that_is(base):
    assert drawn_in(sys.modules[base.__module__]) == tree_of(base)


@pytest.mark.parametrize("base", WRITTEN)
def test_every_exception_of_a_package_descends_from_its_base(base):
    assert WRITTEN[base].keys() - IN_THE_SANDBOX == {one.__name__ for one in all_below(base)}


def example(one: type) -> Exception:
    if one is FileError:
        return FileError(FileProblem(place=Place(source="a.yaml"), found="what was found"))
    if one is UnreadableRows:
        return UnreadableRows([LeftOut(where="a.jsonl:1", reason="unreadable", detail="what was found")])
    return one("what was found")


def ended(command: str, monkeypatch, capsys) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `platform`."""
    monkeypatch.setattr(sys, "argv", ["platform", *command.split()])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    printed = capsys.readouterr()
    return int(caught.value.code or 0), printed.out, printed.err


@pytest.mark.parametrize("one", CLASSES, ids=lambda one: one.__name__)
def test_the_command_line_ends_with_one_line_that_says_what_to_do_next(one, monkeypatch, capsys):
    error = example(one)

    def fail(**_):
        raise error

    monkeypatch.setattr(cli, "app", fail)
    code, out, said = ended("train scalerl", monkeypatch, capsys)
    right = error if issubclass(one, AblationsError | Rejected) else f"{error}; {one.remedy}"
    head = "stopped" if issubclass(one, Interrupted) else "error"
    assert (out, said) == ("", f"{head}: {right}\n")
    assert code == (2 if issubclass(one, AblationsError | Rejected) else 3 if issubclass(one, Interrupted) else 1)
    assert "what was found" in said


def test_a_bug_of_ours_is_told_apart_from_what_a_user_can_cause():
    assert {one.exit_code for one in CLASSES if issubclass(one, ValueError)} == {2}
    assert all(one.remedy for one in CLASSES if not issubclass(one, ValueError))


# --- real runs ------------------------------------------------------------------------------------------------------

SCALE = """
model: {hidden: 16, layers: 1, heads: 2, mlp: 16}
tasks:
  - {type: k_smallest, symbols: 8, min_length: 2, max_length: 3, train_prompts: 6, validation_prompts: 30}
warm_start: {steps: 30, batch: 32, learning_rate: 1.0e-2, noise: 0.0}
batch: {prompts: 4, generations: 4}
generation: {thinking: 4, answer: 4}
optimiser: {learning_rate: 1.0e-3, warmup_steps: 2}
evaluation: {every: 0.2, samples: 2}
compute_unit_gpu_hours: 1.0
threads: 1
cluster: """


@pytest.fixture
def train(tmp_path, monkeypatch, capsys):
    """Runs `platform train` with a cluster; gives its exit code, both outputs, and the status of the run."""

    def run(cluster: str, *sets: str) -> tuple[int, str, str, RunStatus]:
        (tmp_path / "tiny.yaml").write_text(SCALE + cluster)
        options = "".join(f" --set {one}" for one in sets)
        command = f"train scalerl --scale {tmp_path}/tiny.yaml --home {tmp_path}/home{options}"
        found = ended(command, monkeypatch, capsys)
        (folder,) = (tmp_path / "home" / "runs").iterdir()
        return *found, RunFolder(folder).read_status()

    return run


def test_a_run_without_a_prompt_left_is_stopped_and_says_so_every_time(train):
    for _ in range(2):  # and repeating the command changes nothing
        code, out, _, status = train("{generators: 8, trainers: 2, slots: 3}", "curriculum.threshold=0.01")
        assert (code, status.state) == (0, "stopped")
        assert status.message.startswith("all 6 training prompts are retired")
        assert out.endswith(f" is stopped: {status.message}\n")
