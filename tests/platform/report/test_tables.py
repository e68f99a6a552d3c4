"""Tables for the terminal: no number that means nothing, no name that becomes markup."""

import json
from dataclasses import replace

import numpy as np
import pytest
from fixtures_answers import with_line
from fixtures_home import changed, make_home
from rich.console import Console

from ablations.findings.results import read_results
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.home.state import State
from ablations.readings.fitted_run import FittedCurve
from ablations.report.tables import comparison_table, explanation, fit_table, fit_words, hours_table
from ablations.text import interval_text


def fitted(name: str = "c", *, end: float = 80_000.0, is_flat: bool = False) -> FittedCurve:
    """ScaleRL's curve over ten times its compute, or a flat line, with white noise of sd .003."""
    compute = np.arange(0, end + 1, 2130.0)
    law = np.append(0.3, 0.3 + 0.31 / (1 + (25_420 / compute[1:]) ** 1.92))
    score = np.full(compute.size, 0.4) if is_flat else law
    curve = Curve(
        name=name, compute=compute, score=score + 0.003 * np.random.default_rng(1).standard_normal(score.size)
    )
    return FittedCurve(name=name, curve=curve, fit=fit_curve(curve))


def printed(renderable, width: int = 200) -> str:
    console = Console(width=width, no_color=True)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def cells(one: FittedCurve) -> list[str]:
    (line,) = printed(fit_table([one])).splitlines()[1:]
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_a_fit_is_a_line_of_numbers_with_intervals():
    one = fitted()
    fit = one.fit
    found = cells(one)
    # 25,420 or so, to four digits.
    C_mid, lo, hi = (f"{round(one, -1):,.0f}" for one in (fit.C_mid, fit.C_mid_lo, fit.C_mid_hi) if one)
    assert found[:2] == ["c", str(fit.asymptote).removeprefix("A ")]
    assert found[2] == f"{fit.eq1_A:.3f} [{fit.eq1_lo:.3f}, {fit.eq1_hi:.3f}]"
    assert found[3] == f"{fit.B:.2f} [{fit.B_lo:.2f}, {fit.B_hi:.2f}]"
    assert found[4] == f"{C_mid} [{lo}, {hi}]"
    assert found[5:8] == [f"{fit.R_0:.3f}", "37", "2,130 to 78,810"]


def test_a_flat_curve_has_neither_b_nor_c_mid():
    one = fitted(is_flat=True)
    assert cells(one)[:5] == ["c", "no rise", f"{one.fit.R_0:.3f}", "37", "2,130 to 78,810"]
    assert cells(one)[-1] == "no rise"


def test_of_a_gain_without_an_end_half_has_a_lower_end_only():
    one = fitted(end=24_000.0)
    assert one.fit.ceiling.hi is None
    assert cells(one)[1] == f">= {int(100 * one.fit.ceiling.lo) / 100:.2f}"
    assert cells(one)[2] == f">= {int(100 * one.fit.eq1_lo) / 100:.2f}"
    assert cells(one)[3].startswith(f"{one.fit.B:.2f} [")
    assert cells(one)[4].endswith(", …]")
    assert cells(one)[4].startswith("[1")


def test_the_table_of_cut_offs_gives_a_flat_curve_no_bound():
    said = printed(fit_words(fitted(is_flat=True)))
    rows = [line.split() for line in said.splitlines() if line.endswith("no rise")]
    assert len(rows) >= 5
    assert {tuple(row[2:]) for row in rows} == {("no", "rise", "no", "rise")}
    assert ">=" not in said


@pytest.mark.parametrize("name", ["[red]x[/]", "a[/]b", "[link=x]"])
def test_what_the_user_wrote_cannot_become_markup(name):
    assert cells(fitted(name))[0] == name
    without = FittedCurve(name=name, curve=None, fit=None, reason=f"curve {name!r}: too short")
    assert cells(without) == [name, f"curve {name!r}: too short"]
    assert name in printed(fit_words(without))


@pytest.mark.parametrize("width", [80, 160])
def test_a_variant_is_one_line_with_its_differences_and_their_intervals(decided, width):
    lines = printed(comparison_table(decided), width=width).splitlines()
    assert max(map(len, lines)) <= width - 2
    answers = decided.compared("loo-loss").answers
    (row,) = [line for line in lines if line.startswith("loo-loss ")]
    for answer, form in zip(answers.values(), ("+.3f", "+.3f", ".2f"), strict=True):
        number = interval_text(answer.estimate, answer.lo, answer.hi, form)
        assert (number if width > 80 else number.replace("0.", ".").replace(", ", ",")) in row
    (own,) = [line for line in lines if line.startswith("scalerl ")]
    level = f"{decided.compared('scalerl').level:.3f}"
    assert f"own {level if width > 80 else level[1:]}" in own
    assert lines[2 + len(decided.variants) :] == [
        "* holds for all 2 at once; = no difference",
        "`platform compare loo --explain` adds changes, method.",
    ]


def test_marks_say_what_holds_for_all_what_shows_no_difference_and_which_seed_collapsed(decided):
    assert all(answer.is_held for answer in decided.compared("loo-loss").answers.values())
    lines = printed(comparison_table(decided)).splitlines()
    assert next(line for line in lines if line.startswith("loo-loss")).count("]*") == 3
    assert "*" not in next(line for line in lines if line.startswith("scalerl"))
    answers = {"level": {"verdict": "no difference seen"}, "ceiling": {"verdict": "cannot tell"}}
    lines = printed(comparison_table(with_line(decided, "loo-loss", answers=answers, verdict="collapsed")))
    (row,) = [line for line in lines.splitlines() if line.startswith("loo-loss! ")]
    assert [row.count(mark) for mark in ("]=", "]?", "]*")] == [1, 1, 1]
    assert "* holds for all 2 at once; = no difference; ? cannot tell; ! a seed collapsed" in lines
    said = "*: also differs with intervals corrected for 2 comparisons (Bonferroni), so that all hold at once"
    assert any(one.startswith(said) for one in explanation(decided))


def test_a_single_comparison_has_no_star(finished):
    pair = changed(finished.sweep, variants=finished.plan.variants[:2])
    assert "*" not in printed(comparison_table(read_results(pair)), width=160)


def test_the_explanation_says_what_each_variant_changes(finished):
    said = explanation(finished)
    assert [line for line in said if " changes " in line] == [
        "loo-loss changes loss.type = dapo.",
        "loo-curriculum changes curriculum.type = uniform.",
    ]
    assert "It comes directly from the evaluations; no curve is fitted." in " ".join(said)


def test_where_the_hours_went_is_a_line_per_variant(finished):
    table = hours_table(finished)
    assert [column.heading for column in table.columns] == [
        "variant", "generators decode", "generators wait for prompts", "generators wait for weights",
        "trainers forward, backward", "trainers wait for rollouts", "tokens/s", "MFU of generators", "MFU of trainers",
    ]  # fmt: skip
    lines = [line.split() for line in printed(table).splitlines() if line.startswith(("scalerl", "loo-"))]
    shares = ["95.0%", "4.0%", "1.0%", "69.0%", "31.0%", "4,000", "2.0%", "27.6%"]
    assert lines == [[name, *shares] for name in ("scalerl", "loo-loss", "loo-curriculum")]


def test_runs_whose_logs_have_no_device_seconds_have_no_table_of_hours(tmp_path):
    sweep = make_home(tmp_path)
    for path in tmp_path.glob("runs/*/metrics.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        new = {"device_s", "tokens_per_s", "mfu"}
        kept = [{name: value for name, value in row.items() if name not in new} for row in rows]
        path.write_text("".join(json.dumps(row) + "\n" for row in kept))
    assert hours_table(read_results(sweep)) is None


def test_a_finished_run_whose_log_was_changed_is_named_below_the_table(decided):
    first, *others = decided.variants
    lost = replace(first.runs[0], curve=None, fit=None, reason="metrics.jsonl has changed", state=State.DONE)
    spoiled = replace(decided, variants=(replace(first, runs=(lost, *first.runs[1:])), *others))
    assert f"{lost.name}: metrics.jsonl has changed" in comparison_table(spoiled).notes
    waiting = replace(lost, state=State.PENDING)
    unbegun = replace(decided, variants=(replace(first, runs=(waiting, *first.runs[1:])), *others))
    assert not any("metrics.jsonl" in note for note in comparison_table(unbegun).notes)
