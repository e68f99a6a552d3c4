"""The process that has kernels compiled computes the bits of one that finds them kept."""

import os
import subprocess
import sys

from ablations.home.home import Home
from ablations.pools.code_snapshot import take_snapshot

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


def test_a_copy_of_the_package_with_its_kept_code_compiles_nothing(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    found = {}
    for place in ("here", "copy"):
        path = [*filter(None, sys.path)]
        if place == "copy":
            snapshot = take_snapshot(Home(tmp_path))
            kept = {one: one.stat().st_mtime_ns for one in snapshot.rglob("*.nb?")}
            path.insert(0, str(snapshot))
        run = [sys.executable, "-c", PROGRAM + "\nimport scalerl; print(scalerl.__path__[0])"]
        env = environment | {"PYTHONPATH": os.pathsep.join(path)}
        found[place] = subprocess.run(run, env=env, capture_output=True, text=True, check=True).stdout.split()
    assert found["here"][0] == found["copy"][0]
    assert found["copy"][1] == str(snapshot / "scalerl")
    assert any("decode_layer" in one.name for one in kept)
    assert {one: one.stat().st_mtime_ns for one in snapshot.rglob("*.nb?")} == kept
