"""vLLM's modules, imported in the environment that they need. No other module here imports `vllm` first.

vLLM reads most of its environment when it makes an engine, and processes that it starts inherit that environment.
Another library, such as TRL, may have imported it earlier.
"""

import importlib
import json
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from logging.config import dictConfig
from pathlib import Path
from types import ModuleType

import torch

from scalerl.errors import Rejected
from scalerl.left_names import SILENT_TRACKER
from scalerl.process_variables import environment_with

LOGGING = Path(__file__).with_name("vllm_logging.json")
"""Logging configuration: warnings and errors on standard output, without expected ones."""
EXPECTED = (
    "The global random seed is set to",  # engines here draw only from the seeds of their requests
    "max_num_batched_tokens",  # one value serves small and large models
    "Enforce eager set",
    "Inductor compilation was disabled",
    "Triton is",
    "Reset SSM cache type",
    "Model Runner V2 requires Triton",
    "%s is not found in LD_PRELOAD",
    "Kernel %s is already registered",  # by another engine in this process
    "Passing raw prompts to InputProcessor",
    "Using None for EOS token id",  # no tokenizer: the generator decides where a sequence ends
    "CPU backend doesn't allow to use",
    "RotaryEmbedding: Failed to load weights",  # it has no weights
    "ParallelLMHead: Failed to load weights",  # tied to the embedding
    "Unknown vLLM environment variable detected: VLLM_DIST_IDENT",  # set by vLLM itself
    "[shutdown]",  # nobody waits for an engine that is being closed
)
"""Beginnings of lines that every engine always logs."""


class News(logging.Filter):
    """Passes all records that are not expected."""

    def filter(self, record: logging.LogRecord) -> bool:
        """True if the record is not expected."""
        return not (str(record.msg).startswith(EXPECTED) or record.getMessage().startswith(EXPECTED))


VLLM_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # an `LLMEngine` steps in this process; `AsyncLLM` always has its own
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # generators share cores with a trainer that is not bound either
    "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": "60",  # for a hanging worker; the default is five minutes
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",  # the model is a local folder
}
"""Variables to set unless the user has set them."""
PIP = "pip install --constraint constraints.txt '.[vllm]'"


def vllm_module(name: str) -> ModuleType:
    """A module of vLLM, as in `vllm_module("v1.engine.llm_engine")`; Rejected says how to install it."""
    if "vllm" not in sys.modules:
        if "VLLM_LOGGING_LEVEL" not in os.environ:
            os.environ.setdefault("VLLM_LOGGING_CONFIG_PATH", str(LOGGING))
        if os.environ.get("VLLM_LOGGING_CONFIG_PATH") == str(LOGGING):
            dictConfig(json.loads(LOGGING.read_text()))  # its import logs before it configures logging
    for variable, value in VLLM_ENVIRONMENT.items():
        os.environ.setdefault(variable, value)
    _let_vllm_read_llvmlite()
    with warnings.catch_warnings(action="ignore"):  # from its dependencies, at import
        try:
            importlib.import_module("vllm")
        except ModuleNotFoundError as error:
            if error.name != "vllm":
                raise
            raise Rejected(
                f"the recipe has `generator: {{type: vllm}}`, but vLLM is not installed; install it with `{PIP}` "
                f"(on a machine without a GPU: `make engines`), or remove `generator`"
            ) from None
        return importlib.import_module(f"vllm.{name}")


def _let_vllm_read_llvmlite() -> None:
    """Give llvmlite's library, which numba loads, an empty `__dict__`.

    On a CPU vLLM reads `vars(value).get("kernel")` of every value in every module. This one has no `__dict__`, and
    answers that name, like any other, with a C function.
    """
    ffi = sys.modules.get("llvmlite.binding.ffi")
    if ffi is not None:
        ffi.lib._fntab.setdefault("__dict__", {})


@contextmanager
def environment_of_engine() -> Iterator[None]:
    """Environment for processes that vLLM starts: this process's number of threads, and only relevant warnings."""
    own = {
        "OMP_NUM_THREADS": str(torch.get_num_threads()),
        "PYTHONWARNINGS": f"ignore::FutureWarning,{SILENT_TRACKER}",  # FutureWarnings come from its dependencies
        "TORCH_CPP_LOG_LEVEL": "ERROR",
    }
    with environment_with(own), warnings.catch_warnings(action="ignore"):  # vLLM imports more dependencies
        yield
