"""Marks tests by their folder. `make check` leaves out slow, slurm and bench; a single slow test marks itself."""

import subprocess

import pytest
from places import TESTS

FOLDERS = {
    TESTS / "benchmarks": pytest.mark.bench,
    TESTS / "integration": pytest.mark.slow,
    TESTS / "slurm": pytest.mark.slurm,
}


def pytest_collection_modifyitems(items):
    for item in items:
        for folder, mark in FOLDERS.items():
            if item.path.is_relative_to(folder):
                item.add_marker(mark)


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory):
    """An MLflow store with its tables and nothing else: making one takes seconds."""
    from mlflow import MlflowClient

    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 MiB; needs the right to mount one."""
    path = tmp_path / "disk"
    path.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(path)], capture_output=True).returncode:
        pytest.skip("only root may mount a small file system")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)
