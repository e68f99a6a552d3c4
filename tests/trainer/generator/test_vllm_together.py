"""Processes that end together; any will do, so these only wait."""

import subprocess

import pytest

from scalerl.generator.vllm_together import Together

LIMIT_S = 60


@pytest.fixture
def three():
    processes = [subprocess.Popen(["sleep", "600"]) for _ in range(3)]
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def test_the_end_of_one_is_the_end_of_all(three):
    together = Together([process.pid for process in three])
    three[1].kill()
    assert [process.wait(LIMIT_S) for process in three] == [-9, -9, -9]
    together.broken.result(LIMIT_S)
    together.part()
    together.end()


def test_those_that_part_end_in_their_own_time_and_what_is_left_is_killed(three):
    together = Together([process.pid for process in three])
    together.part()
    three[0].terminate()
    assert three[0].wait(LIMIT_S) == -15
    three[1].terminate()  # a signal that a killed one would not have had the time to die of
    assert three[1].wait(LIMIT_S) == -15
    assert three[2].poll() is None
    together.end()
    assert not together.broken.done()
    assert three[2].wait(LIMIT_S) == -9
