"""A filter for vLLM's log. `vllm_logging.json` names it, and every process of vLLM imports it."""

import logging
from pathlib import Path

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
"""Beginnings of lines that every engine logs in any case."""


class News(logging.Filter):
    """Passes all records that are not expected."""

    def filter(self, record: logging.LogRecord) -> bool:
        """True if the record is not expected."""
        return not (str(record.msg).startswith(EXPECTED) or record.getMessage().startswith(EXPECTED))
