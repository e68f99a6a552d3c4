"""A Ray cluster of two nodes for all tests that need one. Without Ray they are left out, but never on CI."""

import os
from pathlib import Path

import pytest
from ray_cluster.cluster import RayCluster, is_installed

TEST_LIMIT_S = 1800
"""A test waits for several things, each for at most `LIMIT_S`; this ends one that hangs elsewhere."""


@pytest.fixture(scope="session")
def ray_is_there():
    """Skip the tests if Ray is not installed; on CI fail, so that none is left out unseen."""
    if not is_installed():
        reason = "Ray is not installed; install it with `pip install 'ablations[ray]'`"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def cluster(ray_is_there):
    with RayCluster(cpus=1) as running:
        running.second = running.add_node(1)
        yield running


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(TEST_LIMIT_S))
