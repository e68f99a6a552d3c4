"""Marks tests by their place. `make check` leaves out slow, slurm and bench; a single slow test marks itself."""

import os
import signal
import subprocess
import sys
from functools import cache

import pytest
from places import TESTS
from webhook import webhook
from xdist.scheduler import LoadFileScheduling

# A shell that runs the tests in the background hands down an ignored Ctrl-C; commands under test have to see theirs.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Workers share the cores. A thread of PyTorch that waits for another by spinning keeps it from its core: an operation
# of microseconds then takes 50 ms.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

PLACES = {
    TESTS / "benchmarks": pytest.mark.bench,
    TESTS / "integration": pytest.mark.slow,
    TESTS / "ray_cluster": pytest.mark.slow,
    TESTS / "slurm": pytest.mark.slurm,
}
SLOW = (
    "dashboard/test_admission.py dashboard/test_compare_in_browser.py dashboard/test_images.py "
    "dashboard/test_imported_in_browser.py dashboard/test_texts_in_browser.py "
    "dashboard/test_run_pages_in_browser.py docs/test_commands_run.py docs/test_site.py platform/search/test_loop.py "
    "platform/tracking/test_mlflow_page.py trainer/checks/test_planted_faults.py trainer/cluster/test_other_engines.py "
    "trainer/cluster/test_placement.py trainer/generator/test_conformance.py trainer/learner/test_engines.py "
    "trainer/learner/test_fake_device.py trainer/processes trainer/run/test_damage.py trainer/run/test_ranks.py "
    "trainer/sandbox trainer/verifiers/test_code_tests.py trainer/verifiers/test_long_answers.py "
    "trainer/verifiers/test_corpora.py trainer/verifiers/test_program_corpus.py "
    "trainer/verifiers/test_properties.py trainer/verifiers/test_python_tests.py trainer/verifiers/test_judge_worker.py"
)
"""Files and folders that take more than some ten seconds: they start engines, browsers, servers and sandboxes, or hold
corpora."""
PLACES |= dict.fromkeys((TESTS / name for name in SLOW.split()), pytest.mark.slow)

WITH_A_CLUSTER = ("tests/slurm", "tests/ray_cluster")
"""Folders whose files go to one worker, which starts their cluster once. They mostly wait while others work."""


class ClusterScheduling(LoadFileScheduling):
    """Whole files go to workers, and whole folders of `WITH_A_CLUSTER`."""

    def _split_scope(self, nodeid):
        file = super()._split_scope(nodeid)
        return next((folder for folder in WITH_A_CLUSTER if file.startswith(f"{folder}/")), file)


def pytest_xdist_make_scheduler(config, log):
    return ClusterScheduling(config, log)


@pytest.fixture
def hook(monkeypatch):
    """A webhook on this machine, whose address is in $HOOK."""
    with webhook() as listening:
        monkeypatch.setenv("HOOK", listening.url)
        yield listening


@cache
def marks_of(path):
    """Those of a test file."""
    return [mark for place, mark in PLACES.items() if path.is_relative_to(place)]


def pytest_addoption(parser):
    parser.addoption(
        "--write-pages",
        action="store_true",
        help="write what commands print into the pages, where only numbers differ or a block is a whole paragraph",
    )


def pytest_collection_modifyitems(items):
    for item in items:
        for mark in marks_of(item.path):
            item.add_marker(mark)


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory):
    """An MLflow store with its tables and nothing else: making one takes seconds."""
    from mlflow import MlflowClient

    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture(scope="session")
def grid(tmp_path_factory):
    """A finished sweep of a grid, whose fits are kept; nobody changes it."""
    from fixtures_home import make_grid, settled

    from ablations.findings.results import read_results

    sweep = settled(make_grid(tmp_path_factory.mktemp("grid")))
    read_results(sweep)
    return sweep


@pytest.fixture(scope="session")
def many_variants(tmp_path_factory):
    """A finished sweep of 24 variants with two seeds each, whose fits are kept."""
    from fixtures_home import settled
    from generated_home import Size, write_home

    from ablations.findings.results import read_results

    path = tmp_path_factory.mktemp("many")
    sweep = settled(write_home(path, Size(variants=24, seeds=2, evaluations=24, metrics=11)))
    read_results(sweep)
    return sweep


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 MiB; needs the right to mount one."""
    path = tmp_path / "disk"
    path.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(path)], capture_output=True).returncode:
        pytest.skip("only root may mount a small file system")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.fixture(autouse=True)
def same_main():
    """Put the main module back: a page under test takes its place, and processes that are forked would run it."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main
