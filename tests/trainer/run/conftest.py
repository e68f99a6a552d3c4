"""What the tests of runs share: warm starts, which are trained once, a small model in a folder, settings of PyTorch."""

import os

import pytest
import torch
from trainer.tiny_text_model import text_model


@pytest.fixture(autouse=True)
def global_settings_restored():
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(scope="session")
def warm_starts(tmp_path_factory):
    """Kept for all workers of this session: a run that needs a warm start which another one trains waits for it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "warm_starts"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def qwen(tmp_path_factory):
    return text_model(tmp_path_factory.mktemp("model") / "qwen", hidden=32)
