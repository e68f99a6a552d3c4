"""Two clusters for all tests that need one. Without Slurm's packages these tests are left out, but never on CI."""

import os

import pytest
from slurm.cluster import SlurmCluster, missing


def start(tmp_path_factory, *, accounting):
    if absent := missing(accounting=accounting):
        reason = f"Slurm's test cluster needs {', '.join(absent)}; `make debian` installs them"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("slurm")
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)  # munged's socket must be open to all who can name it
    return SlurmCluster(folder=folder / "cluster", accounting=accounting)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    with start(tmp_path_factory, accounting=False) as running:
        yield running


@pytest.fixture(scope="session")
def cluster_with_accounting(tmp_path_factory):
    with start(tmp_path_factory, accounting=True) as running:
        yield running
