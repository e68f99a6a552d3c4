"""What of vLLM's log is news. `vllm_logging.json` names this filter, which every process of vLLM imports."""

import logging
from pathlib import Path

LOGGING = Path(__file__).with_name("vllm_logging.json")
"""Warnings and errors on standard output, without what follows from how an engine is built here."""
EXPECTED = (
    "The global random seed is set to",  # an engine in this process draws by the seeds of its requests alone
    "max_num_batched_tokens",  # one number for small models and large ones
    "Enforce eager set",
    "Inductor compilation was disabled",
    "Triton is",
    "Reset SSM cache type",
    "Model Runner V2 requires Triton",
    "%s is not found in LD_PRELOAD",
    "Kernel %s is already registered",  # by another engine of the process
    "Passing raw prompts to InputProcessor",
    "Using None for EOS token id",  # no tokenizer: the generator says where a sequence ends
    "CPU backend doesn't allow to use",
    "RotaryEmbedding: Failed to load weights",  # it has none
    "ParallelLMHead: Failed to load weights",  # tied: it has those of the embedding
    "Unknown vLLM environment variable detected: VLLM_DIST_IDENT",  # which it sets itself
    "[shutdown]",  # who ends an engine does not wait for it
)
"""How the lines begin that every engine says, whatever happens."""


class News(logging.Filter):
    """Everything but what is expected."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is news."""
        return not (str(record.msg).startswith(EXPECTED) or record.getMessage().startswith(EXPECTED))
