"""Compiles kernels and keeps their code: one that is pickled on standard input, or all that a small model needs.

After all of them, kept code that nobody has used for long is removed. This is left to the process that compiles, since
its sources are those on the disk; a process that has run for long may have older ones.
"""

import pickle
import sys
import time
from importlib import import_module

import numpy as np
import torch

from scalerl.model.kernels.compiled import folder_of_code
from scalerl.model.kernels.kept_code import remove_unused
from scalerl.model.kernels.sampling import draw_tokens
from scalerl.model.kv_cache import KVCache, Prefill
from scalerl.model.llama import Llama
from scalerl.model.packing import Packing
from scalerl.model.policy import FP32, Precision
from scalerl.recipe import LlamaModel

NUM_WORDS, SHARED_TOKENS = 12, 3


def use_every_kernel() -> None:
    """Decode, draw tokens, score and train with a model of one block."""
    shape, device = LlamaModel(hidden=32, layers=1, heads=1, mlp=32), torch.device("cpu")
    rounding = Precision(weights=torch.float32, products=torch.bfloat16, head=torch.float32)
    for precision in (rounding, FP32):
        policy = Llama(shape, NUM_WORDS, device, precision)
        policy.init_weights(torch.Generator().manual_seed(0))
        policy.rounds_factors_only = precision is rounding
        with torch.inference_mode():
            decode_with(policy.new_cache(slots=4, positions=8))
    length_B, prompt_B = torch.tensor([5, 4, 6]), torch.full((3,), SHARED_TOKENS)
    tokens_BT = torch.zeros(3, 6, dtype=torch.int64)
    shared = Packing.with_shared_prompts(length_B, prompt_B, torch.zeros(3, dtype=torch.int64))
    for packing in (None, Packing.of(length_B), shared):
        policy.score(tokens_BT, 1.0, packing=packing).logprobs_BT.sum().backward()


def decode_with(cache: KVCache) -> None:
    """A prompt in two rows, a step, and one row moved."""
    rows = torch.tensor([0, 1])
    first = Prefill(
        tokens=torch.zeros(1, SHARED_TOKENS - 1, dtype=torch.int64), rows=rows, prompts=torch.zeros_like(rows)
    )
    cache.logits(torch.zeros_like(rows), torch.full((2,), SHARED_TOKENS - 1), first)
    logits = cache.logits(torch.zeros_like(rows), torch.full((2,), SHARED_TOKENS))
    cache.move([1], [0])
    draw_tokens(logits.numpy(), 1.0, np.zeros(2), np.empty(2, np.int64), np.empty(2, np.float32))


def main() -> None:
    asked = sys.stdin.buffer.read()
    if not asked:
        use_every_kernel()
        remove_unused(folder_of_code(), time.time())
    else:
        module, name, signature = pickle.loads(asked)
        getattr(import_module(module), name).compile(signature)


if __name__ == "__main__":
    main()
