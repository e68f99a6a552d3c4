"""The clock of a process that is stopped for a while: it goes on where it stood."""

import os
import signal
import subprocess
import sys
import time

from waiting import wait_until

from scalerl.processes.running_clock import STOPPED_S

PROGRAM = """
import sys, time
from scalerl.processes.running_clock import running_s
begun, began = running_s(), time.monotonic()
while True:
    print(running_s() - begun, time.monotonic() - began, flush=True)
    time.sleep(0.1)
"""


def test_the_time_in_which_a_process_is_stopped_does_not_count():
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        process.stdout.readline()
        os.kill(process.pid, signal.SIGSTOP)
        stopped = time.monotonic()
        wait_until(lambda: time.monotonic() - stopped > STOPPED_S + 2, "a stop long enough")
        os.kill(process.pid, signal.SIGCONT)
        pairs = (tuple(map(float, line.split())) for line in iter(process.stdout.readline, ""))
        ran, passed = next((ran, passed) for ran, passed in pairs if passed > STOPPED_S)
    finally:
        process.kill()
        process.communicate()
    assert passed - ran > STOPPED_S
