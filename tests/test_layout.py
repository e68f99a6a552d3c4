"""The layout that keeps Python's own `platform` module importable."""

import ast
import platform
import subprocess
import sys
import tomllib
from pathlib import Path

from places import REPOSITORY

SHARED_NAMES = {
    "Engine": "what holds a network and its optimiser; what judges answers inside a worker process",
    "Finished": "a request that is finished, a sandboxed process that is",
    "Pool": "the protocol of what trains runs; the worker processes of verifiers, below it in the other package",
    "Problem": "what is wrong with a file; a problem of a task, which is the field's word",
    "Run": "one training: as a study plans it, and while it trains",
    "State": "what a run is doing; a message of the same content from a child process",
    "cancel": "the command, and scancel, called as commands.cancel",
    "check": "the command; a forecast against what was measured; the harness inside the sandbox, which imports nothing",
    "compare": "the command is named like what it prints; of verifiers it compares two answers",
    "entropy": "the entropy of a policy, and the warning about it",
    "generate": "what a generator process does, and a schedule",
    "key": "a key of a dictionary",
    "main": "the entry of a program",
    "mean_of": "a mean, of rows and of steps",
    "plain": "text without its markup",
    "problem": "one problem of a task family",
    "read_rows": "rows of the run log, and of a task file",
    "reference": "makes the page of the commands, and of the recipes",
    "run": "runs a Slurm command, called as commands.run; runs a modular program",
    "sync": "the command; to make a file durable, as os.fsync",
    "train": "the command is named like what it calls; a warm start trains too",
    "warnings": "of a verdict, and of a run's health",
}
"""Public names that stand in two files, with what each means there; a new one needs a better name, or a reason."""


def test_the_standard_library_module_platform_is_not_replaced():
    assert Path(platform.__file__).parent == Path(sys.modules["os"].__file__ or "").parent


def test_no_init_file_makes_a_source_root_or_a_test_folder_a_package():
    roots = [REPOSITORY / name for name in ("platform", "trainer", "dashboard")]
    tests = [REPOSITORY / "tests", *(path for path in (REPOSITORY / "tests").rglob("*") if path.is_dir())]
    assert [folder for folder in (*roots, *tests) if (folder / "__init__.py").exists()] == []


def test_each_source_root_holds_one_package():
    packages = {"platform": "ablations", "trainer": "scalerl", "dashboard": "ablations_dashboard"}
    for root, package in packages.items():
        assert [path.name for path in (REPOSITORY / root).iterdir() if path.name != "__pycache__"] == [package]


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


def test_help_loads_neither_torch_nor_the_heavy_libraries():
    heavy = ["torch", "transformers", "mlflow", "optuna", "submitit", "streamlit", "plotly", "pandas", "scipy"]
    code = (
        "import sys; sys.argv = ['platform', '--help']\n"
        "from ablations.cli import app\n"
        "try: app()\nexcept SystemExit: pass\n"
        f"sys.exit(' '.join(name for name in {heavy!r} if name in sys.modules) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_no_public_name_has_two_meanings():
    places: dict[str, set[str]] = {}
    for root in ("platform/ablations", "trainer/scalerl"):
        for path in (REPOSITORY / root).rglob("*.py"):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                    places.setdefault(node.name, set()).add(str(path.relative_to(REPOSITORY)))
    shared = {name: sorted(files) for name, files in places.items() if len(files) > 1}
    assert {name: files for name, files in shared.items() if name not in SHARED_NAMES} == {}
