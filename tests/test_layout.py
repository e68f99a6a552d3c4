"""The layout that keeps Python's own `platform` module importable."""

import ast
import platform
import sys
import tomllib
from pathlib import Path

from places import REPOSITORY

SHARED_NAMES = {
    "KNOWN": "what each engine of `judge_worker` is asked about an answer that is right",
    "compare": "the command is named like what it prints",
    "judge": "what each engine of `judge_worker` is asked",
    "made": "what the catalogue of environments calls in the module of each library",
    "keep": "the command; what `judge_worker` does with an answer",
    "main": "the entry of a program",
    "show": "the command; of each page of the dashboard, what draws it",
    "train": "the command is named like what it calls",
    "warm_up": "what each engine of `judge_worker` does before its first answer",
}
"""Public names that stand in two files, with what each means there; a new one needs a better name, or a reason."""
PROGRAMS = {
    "trainer/scalerl/sandbox/inside.py",
    "trainer/scalerl/verifiers/programs/code_harness.py",
    "trainer/scalerl/verifiers/programs/python_test_processes.py",
    "trainer/scalerl/verifiers/programs/python_test_program.py",
    "trainer/scalerl/verifiers/programs/python_test_wire.py",
}
"""Texts that an interpreter in the sandbox runs: they can import nothing of ours, so a fact of both stands twice."""


def public_names(path: Path) -> dict[str, ast.AST]:
    """Functions, classes, constants and names of types of a module, each with its value if it has one."""
    found: dict[str, ast.AST] = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            for names in node.targets:
                several = isinstance(names, ast.Tuple) and isinstance(node.value, ast.Tuple)
                pairs = zip(names.elts, node.value.elts, strict=True) if several else [(names, node.value)]
                found |= {one.id: value for name, value in pairs for one in ast.walk(name) if isinstance(one, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            found[node.target.id] = node.value
    return {name: node for name, node in found.items() if not name.startswith("_")}


def test_the_standard_library_module_platform_is_not_replaced():
    assert Path(platform.__file__).parent == Path(sys.modules["os"].__file__ or "").parent


def test_no_init_file_makes_a_source_root_or_a_test_folder_a_package():
    roots = [REPOSITORY / name for name in ("platform", "trainer", "dashboard")]
    tests = [REPOSITORY / "tests", *(path for path in (REPOSITORY / "tests").rglob("*") if path.is_dir())]
    assert [folder for folder in (*roots, *tests) if (folder / "__init__.py").exists()] == []


def test_no_module_has_the_name_of_a_standard_library_module():
    modules = [path.stem for root in ("platform", "trainer", "dashboard") for path in (REPOSITORY / root).rglob("*.py")]
    names = set(modules) & sys.stdlib_module_names - {"__init__"}
    assert names == set()


def test_the_contracts_of_imports_ignore_none_and_leave_out_no_file():
    contracts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert [contract["name"] for contract in contracts if "ignore_imports" in contract] == []
    assert [
        contract["name"] for contract in contracts if "containers" in contract and not contract.get("exhaustive")
    ] == []


def test_no_process_of_ours_imports_from_the_folder_in_which_a_command_is_given():
    """With -P: `python -m` would take somebody's six.py for the library that pandas imports."""
    found, without = 0, []
    for package in ("platform/ablations", "trainer/scalerl", "dashboard/ablations_dashboard"):
        for path in (REPOSITORY / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.List) or ast.unparse(node).partition(",")[0] != "[sys.executable":
                    continue
                words = [ast.unparse(one) for one in node.elts]
                found += 1
                if {"'-m'", "'-c'"} & {*words} and "'-P'" not in words:
                    without.append(f"{path.relative_to(REPOSITORY)}:{node.lineno}")
    assert without == []
    assert found > 10


def test_no_public_name_has_two_meanings():
    places: dict[str, set[str]] = {}
    for root in ("platform/ablations", "trainer/scalerl", "dashboard/ablations_dashboard"):
        for path in (REPOSITORY / root).rglob("*.py"):
            file = path.relative_to(REPOSITORY).as_posix()
            for name in public_names(path) if file not in PROGRAMS else ():
                places.setdefault(name, set()).add(file)
    shared = {name: sorted(files) for name, files in places.items() if len(files) > 1}
    assert {name: files for name, files in shared.items() if name not in SHARED_NAMES} == {}
    assert SHARED_NAMES.keys() <= shared.keys(), "these have one meaning: take them from the list"


def test_a_fact_that_a_program_in_the_sandbox_repeats_is_the_same_there():
    compared = set()
    for program in PROGRAMS:
        room = (REPOSITORY / program).parent
        for path in room.glob("*.py"):
            ours = public_names(path) if path.relative_to(REPOSITORY).as_posix() not in PROGRAMS else {}
            for name, value in public_names(REPOSITORY / program).items():
                if name.isupper() and name in ours:
                    compared.add(name)
                    assert ast.unparse(value) == ast.unparse(ours[name]), f"{name} of {program} and {path.name}"
    assert compared >= {"FOLDER"}
