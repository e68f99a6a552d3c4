"""Every test of the trainer runs on one thread: results do not depend on how busy or wide the machine is."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
