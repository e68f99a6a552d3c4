"""Packages that a program needs are missed before anything starts, and never one that it may do without."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from ablations import log
from ablations.study.needed_packages import examine_packages, python_of
from scalerl.recipe.command import CommandRecipe

MISSING = "import no_such_package_here"


def found(folder: Path, script: str, *, command: tuple[str, ...] = ("{python}", "train.py"), here=True, **more) -> str:
    """What is said of a program: level, what is missing, and the remedy; empty for nothing."""
    (folder / "train.py").write_text(script)
    recipe = CommandRecipe.model_validate(
        {"command": command, "folder": str(folder), "code": ["train.py"], "code_sha256": {}, "evaluation": {"every": 1}}
        | {"configuration": {}, "overrides": {}}
        | more
    )
    finding = examine_packages(recipe, trains_here=here)
    return "" if finding is None else f"{finding.level}: {finding.found}; {finding.remedy}"


def test_an_import_that_cannot_succeed_is_named_with_its_line_and_the_line_that_installs_it(tmp_path):
    script = f'"""Trains."""\nimport json, yaml\n{MISSING}.part as part\nfrom hydra import main\n'
    said = found(tmp_path, script)
    assert said.startswith(f"error: {sys.executable} lacks no_such_package_here (train.py:3)")
    assert f"`{sys.executable} -m pip install no_such_package_here" in said
    assert "yaml" not in said  # it is installed
    assert ("hydra-core" in said) == ("hydra (train.py:4)" in said)
    assert found(tmp_path, script, here=False).startswith("warning: ")


@pytest.mark.parametrize(
    "script",
    [
        f"try:\n    {MISSING}\nexcept ImportError:\n    no_such_package_here = None",
        f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    {MISSING}",
        f"import sys\nsys.path.insert(0, 'lib')\n{MISSING}",
        f"from sys import path\npath.append('lib')\n{MISSING}",
        f"import subprocess\nsubprocess.run(['true'])\n{MISSING}",
        f"import beside\n{MISSING}",  # changes the path
        f"import package\n{MISSING}",  # could
        f"def main():\n    {MISSING}\nmain()",
        f"import os\nif os.name == 'nt':\n    {MISSING}",
        f"import os\nassert os.name == 'nt'\n{MISSING}",
        "import also_beside, namespace.part",
        f"from . import x\n{MISSING}",
        "import torch, yaml, ablations",
        f"import sys as s\ns.path.append('lib')\n{MISSING}",
        f"from sys import modules\nmodules['no_such_package_here'] = modules\n{MISSING}",
        f"import os\nos.sys.path += ['lib']\n{MISSING}",
        "not Python at all",
        f"exit()\n{MISSING}",
    ],
)
def test_an_import_that_may_never_run_or_may_succeed_is_no_problem(tmp_path, script):
    (tmp_path / "beside.py").write_text("import sys\nsys.path.insert(0, 'lib')")
    (tmp_path / "also_beside.py").write_text("x = 1")
    for name in ("package", "namespace"):
        (tmp_path / name).mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "namespace" / "part.py").touch()
    assert found(tmp_path, script) == ""


@pytest.mark.parametrize(
    "before",
    [
        "import os\nos.environ['X'] = '1'\nos.environ.setdefault('Y', '2')",
        "import warnings\nwarnings.filterwarnings('ignore')",
        "LIMIT = 3\ndef f():\n    g()\nclass C:\n    def f(self):\n        g()",
        "import also_beside",
        "import warnings\nwith warnings.catch_warnings():\n    import json",
    ],
)
def test_what_changes_no_path_does_not_hide_the_imports_after_it(tmp_path, before):
    (tmp_path / "also_beside.py").write_text("x = 1")
    assert "no_such_package_here" in found(tmp_path, f"{before}\n{MISSING}")


def test_imports_of_a_file_beside_the_script_and_of_a_module_are_read(tmp_path):
    (tmp_path / "beside.py").write_text(MISSING)
    assert "no_such_package_here (beside.py:1)" in found(tmp_path, "import beside")
    assert "no_such_package_here (train.py:1)" in found(tmp_path, MISSING, command=("{python}", "-m", "train"))
    launched = ("{python}", "-m", "torch.distributed.run", "--nproc-per-node=2", "train.py")
    assert "no_such_package_here (train.py:1)" in found(tmp_path, MISSING, command=launched)
    assert found(tmp_path, MISSING, command=("{python}", "-m", "json.tool", "train.py")) == ""
    assert found(tmp_path, MISSING, command=("{python}", "-c", "pass", "train.py")) == ""
    (tmp_path / "tool").touch()
    assert found(tmp_path, MISSING, command=("{python}", "-u", "tool", "train.py")) == ""
    assert "train.py:1" in found(tmp_path, MISSING, command=(*launched[:3], "--config", "tool", "train.py"))


def test_a_package_runs_before_its_modules(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "part.py").write_text(MISSING)
    command = ("{python}", "-m", "package.part")
    assert "no_such_package_here (part.py:1)" in found(tmp_path, "", command=command)
    (tmp_path / "package" / "__init__.py").write_text("import sys\nsys.path.append('lib')")
    assert found(tmp_path, "", command=command) == ""


def test_requirements_are_compared_with_what_is_installed(tmp_path):
    assert found(tmp_path, "", requires=["numpy>=1", "PyYAML", "torch ; python_version < '3'"]) == ""
    said = found(tmp_path, MISSING, requires=["numpy>=1000", "no-such-package[all]>=2"])
    assert f"lacks numpy>=1000 (trainer.requires; {version('numpy')} is installed), no-such-package" in said
    assert f"{sys.executable} -m pip install 'numpy>=1000' 'no-such-package[all]>=2'" in said
    assert "no_such_package_here" not in said  # what is required may bring it
    with pytest.raises(
        ValueError, match=r"'trl >= one' is not a requirement that pip understands; write for example trl>=1\.16"
    ):
        found(tmp_path, "", requires=["trl >= one"])


def test_requirements_without_a_known_python_are_said_to_be_unchecked(tmp_path):
    assert found(tmp_path, MISSING, command=("sh", "run.sh")) == ""
    said = found(tmp_path, "", command=("sh", "run.sh"), requires=["numpy"])
    assert said.startswith(
        "warning: trainer.requires was not checked, since `sh run.sh` does not show which Python runs"
    )


def test_the_python_of_a_command_is_seen_only_where_no_other_program_chooses_it(tmp_path, monkeypatch):
    for name, first in (("torchrun", "#!/opt/own/bin/python3.11"), ("conda", "#!/opt/base/bin/python")):
        (tmp_path / name).write_text(f"{first}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    seen = {
        ("{python}", "a.py"): sys.executable,
        ("python3", "a.py"): str(tmp_path / "python3"),
        ("env", "A=1", "B=2", "python3", "a.py"): str(tmp_path / "python3"),
        ("torchrun", "a.py"): "/opt/own/bin/python3.11",
        ("conda", "run", "python3", "a.py"): None,
        ("env", "PYTHONPATH=lib", "python3", "a.py"): None,
        ("env", "-u", "HOME", "python3", "a.py"): None,
        ("env",): None,
        ("nothing", "python3"): None,
    }
    assert {words: python_of(words, tmp_path) for words in seen} == seen


def test_another_python_is_asked_itself_and_gets_the_log_as_one_file(tmp_path):
    python = tmp_path / "python3"  # a Python without site-packages
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    python.chmod(0o755)
    said = found(tmp_path, "import torch, ablations", command=("./python3", "train.py"))
    assert f"{tmp_path / './python3'} lacks torch (train.py:1), ablations (train.py:1)" in said
    assert f"-m pip install torch` and `cp {log.__file__} {tmp_path / 'ablations.py'}`" in said
    assert "ablations" not in found(tmp_path, "import torch, ablations", command=("./python3", "train.py"), here=False)


def test_markers_are_those_of_the_programs_python(tmp_path):
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\necho '[\"3.99.1\", [null, null], []]'\n")
    python.chmod(0o755)
    requires = ["of-now ; python_version < '3.99'", "of-then ; python_version >= '3.99'"]
    said = found(tmp_path, "", command=("./python3", "train.py"), requires=requires)
    assert "of-then" in said
    assert "of-now" not in said


def test_requires_is_no_part_of_a_run(tmp_path):
    (tmp_path / "train.py").touch()
    base = {"command": ["{python}", "train.py"], "code": ["train.py"], "code_sha256": {}, "evaluation": {"every": 1}}
    recipes = [
        CommandRecipe.model_validate(base | {"configuration": {}, "overrides": {}} | more)
        for more in ({}, {"requires": ["trl"]})
    ]
    assert recipes[0].identity(0) == recipes[1].identity(0)
    assert json.loads(recipes[1].model_dump_json())["requires"] == ["trl"]
