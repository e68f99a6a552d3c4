"""Two clusters for all tests that need one. Without Slurm's packages these tests are left out, but never on CI."""

import os
import shutil
from pathlib import Path

import pytest
from slurm.cluster import SlurmCluster, missing
from slurm.study import LIMIT_S, ProgramStudy, SlurmStudy
from waiting import wait_until

import ablations
import scalerl

SLOW_SBATCH = """#!/bin/sh
# The real sbatch, whose answer is late.
{real} "$@"
touch {asked}
while [ ! -e {answer} ]; do sleep 0.1; done
"""
TEST_LIMIT_S = 1800
"""A test waits for several things, each for at most `LIMIT_S`; this ends one that hangs elsewhere."""


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(TEST_LIMIT_S))


def require(*, accounting=False):
    if absent := missing(accounting=accounting):
        reason = f"Slurm's test cluster needs {', '.join(absent)}; `make debian` installs them"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


def opened(folder):
    """The folder, with a path that munged takes: its socket must be open to all who can name it."""
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    require()
    with SlurmCluster(folder=opened(tmp_path_factory.mktemp("slurm")) / "cluster") as running:
        yield running


@pytest.fixture(scope="session")
def cluster_with_accounting(tmp_path_factory):
    require(accounting=True)
    with SlurmCluster(folder=opened(tmp_path_factory.mktemp("slurm")) / "cluster", accounting=True) as running:
        yield running


@pytest.fixture
def own_cluster(tmp_path):
    """A cluster to break."""
    require()
    with SlurmCluster(folder=opened(tmp_path) / "cluster") as running:
        yield running


@pytest.fixture
def cluster_folder(tmp_path):
    """The folder of a cluster with accounting that the test starts itself."""
    require(accounting=True)
    return opened(tmp_path) / "cluster"


@pytest.fixture
def empty(cluster):
    """The shared cluster, without jobs before and after."""
    yield cluster
    cluster.cancel_all()


@pytest.fixture
def study(empty, tmp_path):
    """A study on the shared cluster."""
    return SlurmStudy(cluster=empty, folder=tmp_path / "study")


@pytest.fixture
def programs(empty, tmp_path):
    """A study of programs on the shared cluster."""
    return ProgramStudy(cluster=empty, folder=tmp_path / "study")


@pytest.fixture
def source(tmp_path):
    """A copy of the code, to be broken and mended."""
    folder = tmp_path / "source"
    for name, package in (("ablations", ablations), ("scalerl", scalerl)):
        shutil.copytree(package.__path__[0], folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def submitting(programs, tmp_path):
    """A sweep whose held jobs are there while it still waits for their id, until `sbatch_answers`."""
    folder, asked = tmp_path / "slow", tmp_path / "asked"
    folder.mkdir()
    script = folder / "sbatch"
    script.write_text(SLOW_SBATCH.format(real=shutil.which("sbatch"), asked=asked, answer=tmp_path / "answer"))
    script.chmod(0o755)
    path = f"{folder}{os.pathsep}{programs.cluster.environment['PATH']}"
    process = programs.start("sweep", str(programs.file), "--executor", "slurm", "--yes", "--hold", PATH=path)
    process.sbatch_answers = (tmp_path / "answer").touch
    try:
        wait_until(asked.exists, "the call of sbatch", limit_s=LIMIT_S, process=process)
        yield process
    finally:
        process.sbatch_answers()
        process.kill()
        process.communicate()
