"""Every sharded engine trains an adapter as the one of a single process does, and keeps the adapter alone."""

import json
from pathlib import Path

import pytest
from trainer.rank_processes import run_ranks
from trainer.tiny_text_model import text_model

PROGRAM = Path(__file__).with_name("adapter_rank_program.py")
CLOSE = 1e-5
"""Between FP32 sums in another order."""
HEADERS = 60_000
"""Bytes of the names in two ranks' files."""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What two ranks of the program say."""
    pytest.importorskip("deepspeed", reason="DeepSpeed is not installed; `make engines` installs it")
    folder = tmp_path_factory.mktemp("stores")
    said = run_ranks(PROGRAM, 2, str(folder / "store"), str(text_model(folder / "qwen", hidden=32)))
    (line,) = (line for line in said.splitlines() if line.startswith("FOUND "))
    return json.loads(line.removeprefix("FOUND "))


@pytest.mark.engines
@pytest.mark.parametrize("kind", ["zero2", "zero3", "fsdp"])
def test_ranks_train_the_adapter_of_one_process_and_resume_from_it_alone(found, kind):
    seen = found[kind]
    print(seen)
    assert seen["first"] == 0
    assert seen["moved"] > 1e-3
    assert max(seen["along"], seen["weights"], seen["resumed"]) < CLOSE
    assert seen["same"]
    # The adapter, its moments, and the adapter at the start of the round.
    assert seen["bytes"] < 4 * seen["adapter"] + HEADERS
