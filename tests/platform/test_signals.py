"""Signals during a block: nothing is lost, and processes that it starts ignore what they shall."""

import os
import signal
import subprocess
import sys

import pytest

from ablations.signals import ignored_by_children

SAYS = "import signal; print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)"


def test_a_ctrl_c_while_a_child_starts_comes_after_it_and_the_child_ignores_its_own():
    said = []

    def start():
        with ignored_by_children(signal.SIGINT):
            os.kill(os.getpid(), signal.SIGINT)
            said.append(subprocess.run([sys.executable, "-c", SAYS], capture_output=True, text=True, check=True).stdout)

    with pytest.raises(KeyboardInterrupt):
        start()
    assert said == ["True\n"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
