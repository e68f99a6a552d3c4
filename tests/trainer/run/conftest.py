"""What the tests of runs share: warm starts, which are trained once, a small model in a folder, settings of PyTorch."""

import pytest
import torch
from trainer.tiny_text_model import text_model


@pytest.fixture(autouse=True)
def global_settings_restored():
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(scope="session")
def warm_starts(tmp_path_factory):
    return tmp_path_factory.mktemp("warm_starts")


@pytest.fixture(scope="session")
def qwen(tmp_path_factory):
    return text_model(tmp_path_factory.mktemp("model") / "qwen", hidden=32)
