"""Every test of the trainer runs on one thread: results do not depend on how busy or wide the machine is."""

import signal

import pytest
import torch

# A shell that runs the tests in the background hands down an ignored Ctrl-C; runs under test have to see theirs.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
