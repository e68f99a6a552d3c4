"""Marks tests by their folder. `make check` leaves out slow, slurm and bench; a single slow test marks itself."""

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
