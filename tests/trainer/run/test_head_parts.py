"""Two orders of summation in one program: trainer and generator then differ as two engines do."""

import pytest
from trainer.tiny import tiny_recipe

from scalerl.run.assemble import assemble
from scalerl.schedules import SCHEDULES

ONE_VERSION = {
    "off_policy": {"type": "ppo_off_policy", "k": 1},
    "zero_variance": "keep",
    "curriculum": {"type": "uniform"},
}
"""Every step trains on what its own weights have generated."""


def mismatch(tmp_path, **settings) -> float:
    cluster = assemble(tiny_recipe(**ONE_VERSION, **settings), 0, tmp_path).cluster
    return SCHEDULES["ppo_off_policy"](cluster).update.metrics["mismatch"]


@pytest.mark.parametrize(
    ("logits", "head_parts", "least", "most"),
    [("fp32", 1, 0.0, 1e-6), ("fp32", 4, 0.0, 1e-6), ("bf16", 1, 0.0, 1e-6), ("bf16", 4, 5e-4, 2e-2)],
)
def test_parts_of_the_head_round_visibly_in_bf16_alone(tmp_path, logits, head_parts, least, most):
    found = mismatch(tmp_path, logits=logits, generator={"type": "torch", "head_parts": head_parts})
    assert least <= found <= most


def test_one_part_is_the_run_that_was_and_more_are_another():
    before = tiny_recipe().identity(0)
    assert tiny_recipe(generator={"type": "torch", "head_parts": 1}).identity(0) == before
    assert tiny_recipe(generator={"type": "torch", "head_parts": 2}).identity(0) != before


def test_parts_that_the_width_cannot_be_divided_into_are_refused():
    with pytest.raises(ValueError, match="head_parts 3: a hidden width of 16 cannot be divided"):
        tiny_recipe(generator={"type": "torch", "head_parts": 3})
