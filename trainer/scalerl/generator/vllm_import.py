"""vLLM's parts, imported in the environment that they need. Nothing else here imports `vllm` first.

vLLM reads most of its environment when it makes an engine, and the processes that it starts inherit it. Another
library, such as TRL, may have imported it before.
"""

import importlib
import json
import os
import sys
import warnings
from contextlib import AbstractContextManager
from logging.config import dictConfig
from types import ModuleType

import torch

from scalerl.environment import environment_with
from scalerl.errors import Rejected
from scalerl.generator.vllm_log import LOGGING
from scalerl.left_names import SILENT_TRACKER

VLLM_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # an `LLMEngine` steps in this process; an `AsyncLLM` has its own anyway
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # generators share cores with a trainer that is not bound either
    "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": "60",  # of a worker that hangs; five minutes otherwise
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",  # the model is a folder of this machine
}
"""Set where the user has not set it."""
PIP = "pip install --constraint constraints.txt '.[vllm]'"


def vllm_module(name: str) -> ModuleType:
    """`vllm_module("v1.engine.llm_engine")`; Rejected says what to install."""
    if "vllm" not in sys.modules:
        if "VLLM_LOGGING_LEVEL" not in os.environ:
            os.environ.setdefault("VLLM_LOGGING_CONFIG_PATH", str(LOGGING))
        if os.environ.get("VLLM_LOGGING_CONFIG_PATH") == str(LOGGING):
            dictConfig(json.loads(LOGGING.read_text()))  # its import has something to say before it does this itself
    for variable, value in VLLM_ENVIRONMENT.items():
        os.environ.setdefault(variable, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its dependencies, at their import
        try:
            importlib.import_module("vllm")
        except ModuleNotFoundError as error:
            if error.name != "vllm":
                raise
            raise Rejected(
                f"the recipe has `generator: {{type: vllm}}`, and vLLM is not installed here; install it with `{PIP}`, "
                f"on a machine without a GPU with `make engines`, or leave `generator` out"
            ) from None
        return importlib.import_module(f"vllm.{name}")


def environment_of_engine() -> AbstractContextManager[None]:
    """Processes that vLLM starts inside compute with as many threads as this one, and say what matters."""
    own = {
        "OMP_NUM_THREADS": str(torch.get_num_threads()),
        "PYTHONWARNINGS": f"ignore::FutureWarning,{SILENT_TRACKER}",  # the first of its dependencies
        "TORCH_CPP_LOG_LEVEL": "ERROR",
    }
    return environment_with(own)
