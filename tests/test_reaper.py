"""What a test starts ends with the test's own process, even when that is killed."""

import subprocess
import sys

from places import TESTS
from reaper import marked
from waiting import wait_until

STARTS_TWO_AND_SLEEPS = """
import os, subprocess, sys, time
from reaper import start_reaper
start_reaper("MARK_OF_A_TEST=" + sys.argv[1])
environment = os.environ | {"MARK_OF_A_TEST": sys.argv[1]}
for _ in range(2):
    subprocess.Popen(["sh", "-c", "sleep 1000 & sleep 1000"], env=environment, start_new_session=True)
print("started", flush=True)
time.sleep(1000)
"""


def test_a_killed_process_leaves_nothing_behind_that_it_marked(tmp_path):
    mark = f"MARK_OF_A_TEST={tmp_path}"
    command = [sys.executable, "-c", STARTS_TWO_AND_SLEEPS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={"PYTHONPATH": str(TESTS)}) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"started\n"
        wait_until(lambda: len(marked(mark)) == 6, "two shells with two sleeps each")
        starter.kill()
    wait_until(lambda: not marked(mark), "the end of all of them")
