"""AdamW equals PyTorch's to the bit, and a run that uses it does not load PyTorch's compiler."""

import subprocess
import sys

import pytest
import torch

from scalerl.learner.adamw import AdamW


@pytest.mark.parametrize("fused", [True, False])
def test_steps_and_states_are_those_of_pytorch(fused):
    def trained(kind):
        generator = torch.Generator().manual_seed(0)
        parameter = torch.nn.Parameter(torch.randn(7, 5, generator=generator))
        adam = kind([parameter], lr=0.1, betas=(0.9, 0.95), weight_decay=0.01, fused=fused)
        for step in range(6):
            if step == 3:  # as a run that resumes
                state, adam = adam.state_dict(), kind([parameter], lr=0.1, fused=fused)
                adam.load_state_dict(state)
            parameter.grad = torch.randn(7, 5, generator=generator)
            adam.step()
            adam.zero_grad()
            assert parameter.grad is None
        return parameter.detach(), adam.state_dict()

    (ours, our_state), (theirs, their_state) = trained(AdamW), trained(torch.optim.AdamW)
    assert torch.equal(ours, theirs)
    assert our_state["param_groups"] == their_state["param_groups"]
    for name, value in their_state["state"][0].items():
        assert torch.equal(our_state["state"][0][name], value)


def test_a_step_does_not_import_the_compiler():
    program = """
import sys, torch
from scalerl.learner.adamw import AdamW
parameter = torch.nn.Parameter(torch.ones(3))
adam = AdamW([parameter], fused=True)
parameter.grad = torch.ones(3)
adam.step()
adam.load_state_dict(adam.state_dict())
print("torch._dynamo" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
