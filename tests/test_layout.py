"""The layout that keeps Python's own `platform` module importable."""

import platform
import subprocess
import sys
from pathlib import Path

from places import REPOSITORY


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
