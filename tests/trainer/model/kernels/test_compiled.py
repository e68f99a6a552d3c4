"""The process that has kernels compiled computes the bits of one that finds them kept."""

import os
import subprocess
import sys

import pytest

from ablations.home.home import Home
from ablations.pools.code_snapshot import take_snapshot

PROGRAM = """
import hashlib, torch
from scalerl.model.llama import Llama
from scalerl.model.policy import FP32, Precision
from scalerl.recipe import LlamaModel

torch.set_num_threads(1)
tokens, found = torch.randint(0, 30, (12, 32), generator=torch.Generator().manual_seed(1)), hashlib.sha256()
rounding = Precision(weights=torch.float32, products=torch.bfloat16, head=torch.float32)
for precision in (rounding, FP32):
    policy = Llama(LlamaModel(hidden=64, layers=2, heads=2, mlp=128), 30, torch.device("cpu"), precision)
    policy.init_weights(torch.Generator().manual_seed(0))
    policy.rounds_factors_only = precision is rounding
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
    loaded = subprocess.run(
        [sys.executable, "-c", "from scalerl.run.preload import preload; preload()" + PROGRAM],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert loaded.stdout == first.stdout
    kept = set(tmp_path.rglob("*.nbc"))
    train = [sys.executable, "-m", "ablations.cli", "train", "scalerl", "--scale", "smoke", "--budget", "0.002"]
    subprocess.run([*train, "--home", str(tmp_path / "home")], env=environment, capture_output=True, check=True)
    assert set(tmp_path.rglob("*.nbc")) == kept  # a run finds all of its kernels, and waits for none


KERNEL = """
from scalerl.model.kernels.compiled import kernel

@kernel
def doubled(x):
    return 2 * x

print(doubled(1.5), doubled.stats.cache_hits)
"""


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("left", [0, 20])
def test_kept_code_that_was_cut_short_is_made_anew(tmp_path, ending, left):
    (tmp_path / "program.py").write_text(KERNEL)
    env = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "kept"),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    env |= {"SCALERL_COMPILES_KERNELS": "1"}
    run, printed = [sys.executable, str(tmp_path / "program.py")], []
    for _ in range(3):
        printed.append(subprocess.run(run, env=env, capture_output=True, text=True, check=True).stdout.split())
        if len(printed) == 1:
            (kept,) = (tmp_path / "kept").rglob(f"*doubled*.{ending}")
            os.truncate(kept, left)
    assert printed == [["3.0", "Counter()"]] * 2 + [["3.0", "Counter({(float64,):", "1})"]]


def test_a_copy_of_the_package_with_its_kept_code_compiles_nothing(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}

    def ran(*first: str) -> list[str]:
        """The digest, and where the package is."""
        run = [sys.executable, "-c", PROGRAM + "\nimport scalerl; print(scalerl.__path__[0])"]
        env = environment | {"PYTHONPATH": os.pathsep.join([*first, *filter(None, sys.path)])}
        return subprocess.run(run, env=env, capture_output=True, text=True, check=True).stdout.split()

    here, _ = ran()  # whatever is missing is compiled here
    snapshot = take_snapshot(Home(tmp_path))
    kept = {one: one.stat().st_mtime_ns for one in snapshot.rglob("*.nb?")}
    assert any("decode_layer" in one.name for one in kept)
    assert ran(str(snapshot)) == [here, str(snapshot / "scalerl")]
    assert {one: one.stat().st_mtime_ns for one in snapshot.rglob("*.nb?")} == kept
