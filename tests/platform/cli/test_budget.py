"""`--budget` with its units, and a bare number that may have been meant as hours."""

from dataclasses import replace

import pytest
import typer
from fixtures_home import make_plan

from ablations.cli.budget import ask_about_jump, read_budget
from ablations.errors import AblationsError

PLAN = replace(make_plan(), compute_unit_gpu_hours=400.0, budget_gpu_hours=64_000.0)


@pytest.mark.parametrize(
    ("text", "compute"),
    [("2", 2.0), ("160h", 0.4), ("1.5e3H", 3.75), ("2x", 3.0), (".5X", 0.75), (" 4 ", 4.0)],
)
def test_a_budget_is_in_units_of_the_scale_in_hours_or_times_the_files(text, compute):
    assert read_budget(text).in_scale_units(unit_gpu_hours=400.0, own=1.5) == pytest.approx(compute)


@pytest.mark.parametrize("text", ["", "abc", "1.2.3", "nan", "2 weeks", "h"])
def test_what_is_no_budget_is_refused_with_what_would_be(text):
    with pytest.raises(AblationsError, match=r"write 2 \(in the scale's unit\), 160h \(GPU-hours\) or 2x"):
        read_budget(text)


@pytest.mark.parametrize("text", ["0", "-1", "0x", "-3h", "1e999"])
def test_a_budget_that_no_run_can_reach_is_refused(text):
    with pytest.raises(AblationsError, match=f"found {text}; must be a number greater than 0"):
        read_budget(text)


def test_a_bare_number_far_beyond_the_file_is_refused_without_a_terminal_with_both_ways_to_mean_it(monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    with pytest.raises(AblationsError, match=r"160 is 64000 GPU-hours for each of 3 runs, 160 times .* 64000h or 160x"):
        ask_about_jump(read_budget("160"), PLAN, own=1.0)


def test_at_a_terminal_it_is_asked_about_and_a_no_ends_the_command(monkeypatch):
    asked = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda text: asked.append(text) or len(asked) == 1)
    for text, own in (("160x", 1.0), ("64000h", 1.0), ("10", 1.0), ("160", 16.0)):  # say what is meant
        ask_about_jump(read_budget(text), PLAN, own=own)
    assert asked == []
    ask_about_jump(read_budget("160"), PLAN, own=1.0)
    with pytest.raises(typer.Exit):
        ask_about_jump(read_budget("160"), PLAN, own=1.0)
    assert all(text.endswith("times the file's budget of 1. Train for this long?") for text in asked)
