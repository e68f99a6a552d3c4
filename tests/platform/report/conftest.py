"""Finished sweeps of `fixtures_home`, which the tests of this room share."""

import pytest
from fixtures_home import make_home

from ablations.findings.results import Results, read_results


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Results:
    """Three variants with one seed each, whose differences are provisional."""
    return read_results(make_home(tmp_path_factory.mktemp("finished")))


@pytest.fixture(scope="session")
def decided(tmp_path_factory) -> Results:
    """Three variants with three seeds each, whose differences have intervals."""
    return read_results(make_home(tmp_path_factory.mktemp("decided"), seeds=(0, 1, 2)))
