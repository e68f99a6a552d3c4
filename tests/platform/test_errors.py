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
from ablations.pools.equal_failures import RunsHeld
from scalerl.errors import Interrupted, Rejected, ScaleRLError
from scalerl.tasks.left_out import LeftOut, UnreadableRows

IN_THE_SANDBOX = {"OtherSideGone", "TookTooLong", "Unanswerable", "Unsendable"}
"""Of programs there, which import nothing of the trainer; and what an environment that takes too long gets thrown."""
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
    is_wrong_input = issubclass(one, AblationsError | Rejected) and one is not RunsHeld
    assert code == (2 if is_wrong_input else 3 if issubclass(one, Interrupted) else 1)
    assert "what was found" in said


def test_a_bug_of_ours_is_told_apart_from_what_a_user_can_cause():
    assert {one.exit_code for one in CLASSES if issubclass(one, ValueError) and one is not RunsHeld} == {2}
    assert all(one.remedy for one in CLASSES if not issubclass(one, ValueError))


# --- real runs ------------------------------------------------------------------------------------------------------
