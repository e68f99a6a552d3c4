"""Run logs to curves, fits and a comparison; a bad run has a reason and hides no other."""

import hashlib
import json
import shutil
from dataclasses import replace

import pytest
from fixtures_home import TRUTH, changed, make_home, planned_run, write_run

from ablations.findings.results import read_results
from ablations.readings.fitted_run import fit_sweep


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Results of a finished sweep."""
    sweep = make_home(tmp_path_factory.mktemp("home"), seeds=(0, 1, 2))
    return read_results(sweep)


@pytest.mark.parametrize("name", TRUTH)
def test_every_variant_is_fitted_to_the_parameters_it_was_drawn_from(finished, name):
    fit = finished.variant(name).fits[0]
    ceiling, exponent, midpoint = TRUTH[name]
    # Binomial noise of 16000 samples is 0.004 a reading; 40 readings leave a fifth of it in A.
    assert pytest.approx(ceiling, abs=0.01) == fit.eq1_A
    assert fit.eq1_lo < ceiling < fit.eq1_hi
    assert pytest.approx(exponent, rel=0.12) == fit.B
    assert fit.C_mid == pytest.approx(midpoint, rel=0.08)


def test_a_variant_whose_ceiling_has_no_end_gives_no_number_for_it(tmp_path):
    sweep = make_home(tmp_path)
    home = sweep.home
    run_id = planned_run("loo-loss", 0).id
    shutil.rmtree(home.run(run_id).path)
    write_run(home, run_id, (0.9, 1.0, 6000.0))  # a third of the way to C_mid at the budget
    results = read_results(sweep)
    fit = results.variant("loo-loss").fits[0]
    line = next(line for line in results.to_json()["variants"] if line["curve"] == "loo-loss")
    assert fit.ceiling.hi is None
    assert [line[name] for name in ("A", "A_hi", "B", "C_mid")] == [None] * 4
    assert (line["A_lo"], line["asymptote"]) == (fit.ceiling.lo, f"A >= {int(100 * fit.ceiling.lo) / 100:.2f}")
    assert not {"A", "A_hi", "B", "C_mid"} & set(results.fit_numbers("loo-loss"))
    assert results.fit_numbers("loo-loss")["A_lo"] == fit.ceiling.lo
    assert results.fit_numbers("scalerl")["A"] == pytest.approx(0.61, abs=0.01)


def test_a_run_that_has_not_started_says_so_and_hides_no_other(tmp_path):
    sweep = make_home(tmp_path)
    home = sweep.home
    home.run(planned_run("loo-loss", 0).id).metrics.unlink()
    (home.run(planned_run("loo-loss", 0).id).path / "status.json").unlink()
    results = read_results(sweep)
    assert results.reasons == ["loo-loss-s0: not started"]
    assert results.compared("loo-loss") is None
    assert results.compared("loo-curriculum") is not None
    assert results.variant("loo-loss").asymptote is None


def test_a_line_torn_by_a_crash_is_not_a_reading(tmp_path):
    sweep = make_home(tmp_path)
    home = sweep.home
    before = read_results(sweep).variant("scalerl").fits[0]
    with home.run(planned_run("scalerl", 0).id).metrics.open("a") as file:
        file.write('{"kind": "eval", "step": 999, "pass_r')
    after = read_results(sweep).variant("scalerl").fits[0]
    assert (after.eq1_A, after.points) == (before.eq1_A, before.points)


def test_a_corrupt_line_in_the_middle_is_the_reason_of_that_run(tmp_path):
    sweep = make_home(tmp_path)
    home = sweep.home
    metrics = home.run(planned_run("loo-loss", 0).id).metrics
    lines = metrics.read_text().splitlines(keepends=True)
    metrics.write_text("".join([*lines[:60], "\x00\x00\x00\n", *lines[61:]]))
    results = read_results(sweep)
    assert [reason.count("metrics.jsonl:61: not a metrics row") for reason in results.reasons] == [1]
    assert (
        results.variant("loo-loss").cost_gpu_hours == 1000.0
    )  # line 60 is the last step before the evaluation at 1000
    assert results.compared("loo-curriculum") is not None


def test_a_sweep_is_fitted_in_its_plans_window_unless_another_is_given(tmp_path):
    sweep = changed(make_home(tmp_path), fit_to_gpu_hours=1000.0)
    assert fit_sweep(sweep)[0].fit.window == (50.0, 1000.0)
    assert fit_sweep(sweep, fit_from=100.0, fit_to=1500.0)[0].fit.window == (150.0, 1500.0)


def marked(folder):
    """A manifest as the trainer writes it beside a log: how the log was, and the SHA-256 of all this."""
    log = folder.metrics.read_bytes()
    content = {"form": 2, "log": {"bytes": len(log), "sha256": hashlib.sha256(log).hexdigest()}, "parts": {}}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    folder.checkpoint.mkdir()
    sealed = {**content, "sha256": hashlib.sha256(text.encode()).hexdigest()}
    (folder.checkpoint / "manifest.json").write_text(json.dumps(sealed))


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (
            lambda log: log.replace(b'"pass_rate": 0.', b'"pass_rate": 0.0', 1)[: len(log)],
            "has changed since it was written",
        ),
        (lambda log: log[: log.rindex(b"{")], "bytes, but had"),
    ],
)
def test_a_log_that_is_not_what_its_trainer_wrote_is_not_fitted(tmp_path, damage, found):
    sweep = make_home(tmp_path)
    folder = sweep.run(planned_run("loo-loss", 0).id)
    before = folder.metrics.read_bytes()
    marked(folder)
    assert read_results(sweep).variant("loo-loss").reasons == []
    folder.metrics.write_bytes(damage(before))
    assert folder.metrics.read_bytes() != before
    (reason,) = read_results(sweep).variant("loo-loss").reasons
    assert str(folder.metrics) in reason
    assert found in reason
    assert "start the sweep again" in reason
    folder.metrics.write_bytes(before)
    assert read_results(sweep).variant("loo-loss").reasons == []


def test_a_variant_has_one_asymptote_alone_and_in_every_table(tmp_path):
    results = read_results(make_home(tmp_path, seeds=(0, 1)))
    for variant in results.variants:
        compared = results.compared(variant.name)
        assert compared is not None
        assert variant.asymptote == compared.asymptote
        assert str(compared.asymptote) in repr(results.variant(variant.name))
    assert all(variant.compared is None for variant in replace(results, comparison=None).variants)
