"""The process that has kernels compiled computes the bits of one that finds them kept."""

import os
import subprocess
import sys

PROGRAM = """
import hashlib, torch
from scalerl.model.llama import Llama
from scalerl.recipe import LlamaModel

torch.set_num_threads(1)
policy = Llama(LlamaModel(hidden=64, layers=2, heads=2, mlp=128), 30, torch.device("cpu"))
policy.init_weights(torch.Generator().manual_seed(0))
tokens, found = torch.randint(0, 30, (12, 32), generator=torch.Generator().manual_seed(1)), hashlib.sha256()
with torch.inference_mode():
    cache = policy.new_cache(slots=32, positions=16)
    for step, of_step in enumerate(tokens):
        found.update(cache.logits(of_step, torch.full((32,), step)).numpy().tobytes())
states = policy.states(tokens).hidden
states.square().sum().backward()
found.update(states.detach().numpy().tobytes())
for parameter in policy.parameters():
    found.update(b"" if parameter.grad is None else parameter.grad.numpy().tobytes())
print(found.hexdigest())
"""


def test_the_first_process_of_an_install_computes_the_bits_of_the_next(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = [sys.executable, "-c", PROGRAM]
    first, second = (subprocess.run(run, env=environment, capture_output=True, text=True, check=True) for _ in range(2))
    assert list(tmp_path.rglob("*decode_layer*.nbc"))  # kept where this test says, so compiled by the first
    assert first.stdout == second.stdout
    assert len(first.stdout) == 65
