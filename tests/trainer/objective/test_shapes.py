"""A record of tensors refuses shapes that its fields' names do not allow."""

import re
from dataclasses import replace

import pytest
import torch

from scalerl.errors import Rejected
from scalerl.objective.losses import LossInputs, LossOutputs

X = torch.zeros(4, 7)
GIVEN = LossInputs(logprobs_BT=X, behaviour_BT=X, advantage_BT=X, mask_BT=X.bool())


@pytest.mark.parametrize("name", ["behaviour_BT", "advantage_BT", "mask_BT", "start_BT"])
@pytest.mark.parametrize("shape", [(4, 1), (4,)])
def test_a_field_of_another_shape_is_rejected_by_its_name(name, shape):
    said = f"LossInputs: {name} has shape {shape}; its axes are B=4, T=7"
    with pytest.raises(Rejected, match=f"^{re.escape(said)}$"):
        replace(GIVEN, **{name: torch.zeros(shape)})


def test_a_first_field_without_its_axes_is_rejected_too():
    with pytest.raises(Rejected, match=r"^LossOutputs: loss_BT has shape \(4,\); its axes are B, T$"):
        LossOutputs(loss_BT=torch.zeros(4), clipped_BT=torch.zeros(4))


def test_a_field_that_is_not_there_has_no_shape():
    assert replace(GIVEN, start_BT=None).start_BT is None
    assert replace(GIVEN, start_BT=X).start_BT is X
