"""Commands as plans keep them and pages print them."""

import sys

import pytest

from ablations.cli.output import command_given
from ablations.home.home import Home


@pytest.mark.parametrize(
    ("typed", "chosen", "kept"),
    [
        ("sweep loo.yaml", "", "platform sweep loo.yaml"),
        ("sweep loo.yaml", "{home}", "platform sweep --home {home} loo.yaml"),
        ("sweep loo.yaml --home mine", "{home}", "platform sweep loo.yaml --home mine"),
        ("sweep loo.yaml --home=mine", "{home}", "platform sweep loo.yaml --home=mine"),
    ],
)
def test_a_plan_keeps_the_home_that_the_environment_chose(typed, chosen, kept, tmp_path, monkeypatch):
    """Else the command, given in another shell, would train everything again in ./ablation-runs."""
    monkeypatch.setattr(sys, "argv", ["/usr/bin/platform", *typed.split()])
    monkeypatch.setenv("ABLATIONS_HOME", chosen.format(home=tmp_path))
    assert command_given(Home(tmp_path)) == kept.format(home=tmp_path)
