from pathlib import Path

import numpy as np
import pytest

from ablations.errors import AblationsError, FileError
from ablations.fit.curve import Curve
from ablations.fit.curve_file import Declared, read_curves, read_declared, read_seed_curves
from ablations.fit.options import FitSettings
from ablations.text import compute_text


def written(folder: Path, text: str) -> Path:
    path = folder / "curves.csv"
    path.write_text(text)
    return path


def test_reads_curves_in_order_of_appearance_and_sorts_their_readings(tmp_path):
    path = written(tmp_path, "curve,compute,score,samples\nb,20,.5,160\na,10,.2,80\nb,10,.4,160\nb,0,.3,160\n")
    b, a = read_curves(path)
    assert (b.name, a.name) == ("b", "a")
    assert b.compute.tolist() == [0, 10, 20]
    assert b.score.tolist() == [0.3, 0.4, 0.5]
    assert b.samples is not None
    assert b.samples.tolist() == [160, 160, 160]
    assert a.samples is not None
    assert a.samples.tolist() == [80]
    assert a.prompts is None
    assert a.step is None


def test_samples_are_all_generations_behind_a_score(tmp_path):
    head, rows = "curve,compute,score,prompts,", ("a,0,.2,1000,", "a,1,.3,500,")
    (each,) = read_curves(written(tmp_path, head + "samples_per_prompt\n" + "".join(f"{row}16\n" for row in rows)))
    (in_all,) = read_curves(written(tmp_path, f"{head}samples\n{rows[0]}16000\n{rows[1]}8000\n"))
    assert each.samples.tolist() == in_all.samples.tolist() == [16_000, 8_000]
    assert each.prompts.tolist() == [1000, 500]


def test_seeds_of_one_variant_are_curves_of_their_own(tmp_path):
    runs = read_seed_curves(written(tmp_path, "seed,curve,compute,score\n1,b,5,.2\n0,b,5,.3\n1,a,5,.4\n0,b,4,.1\n"))
    assert [(run.variant, run.seed, run.curve.name) for run in runs] == [
        ("b", 1, "b-s1"),
        ("b", 0, "b-s0"),
        ("a", 1, "a-s1"),
    ]
    assert [run.curve.score.tolist() for run in runs] == [[0.2], [0.1, 0.3], [0.4]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "missing columns ['curve', 'compute', 'score'], found []"),
        ("curve,compute\na,1\n", "missing columns ['score'], found ['curve', 'compute']"),
        ("curve,compute,score\n", "no rows below the header; write one row per evaluation"),
        ("curve,compute,score\na,1,.2\na,ten,.3\n", "curves.csv:3: compute: found 'ten'; must be a number"),
        ("curve,compute,score\na,1,nan\n", "curves.csv:2: score: found nan; must be a finite number"),
        ("curve,compute,score\na,1,61\n", "curves.csv:2: score: found 61; a pass rate must lie in [0, 1]"),
        ("curve,compute,score\n,1,.2\n", "curves.csv:2: curve: empty; every row must name its curve"),
        (
            "curve,compute,score\na,0,.2\na,1,0,35\n",
            "curves.csv:3: 4 fields below a header of 3; write numbers with a decimal point, not a comma",
        ),
        (
            "curve,compute,score\na,1,.2\na,1.0,.3\n",
            "curves.csv:3: compute: 1 appears twice in curve 'a'; "
            "write one score per compute, or tell runs apart with a column 'seed'",
        ),
        (
            "curve,seed,compute,score\na,7,1,.2\na,7,1,.3\n",
            "curves.csv:3: compute: 1 appears twice in curve 'a', seed 7; write one score per compute",
        ),
        ("curve,seed,compute,score\na,.5,1,.2\n", "curves.csv:2: seed: found .5; a seed must be a whole number"),
        (
            "curve,compute,score,prompts,samples\na,1,.2,1000,16000\na,2,.3,1000,16\n",
            "curves.csv:3: samples: found 16 beside 1000 prompts; samples counts all generations behind the score; "
            "for 16 per prompt write 16000, or use a column 'samples_per_prompt'",
        ),
        (
            "curve,compute,score,prompts,samples,samples_per_prompt\na,1,.2,1000,1000,16\n",
            "curves.csv:2: samples: found 1000 beside 1000 prompts with 16 samples_per_prompt; "
            "samples counts all generations behind the score, here 16000; omit this column",
        ),
        (
            "curve,compute,score,samples_per_prompt\na,1,.2,16\n",
            "curves.csv: a column 'samples_per_prompt' without a column 'prompts'; add 'prompts'",
        ),
    ],
)
def test_a_bad_file_is_refused_with_the_place_the_finding_and_the_remedy(tmp_path, text, message):
    with pytest.raises(FileError) as caught:
        read_curves(written(tmp_path, text))
    assert message in str(caught.value)


def test_a_file_of_a_study_says_how_noisy_a_score_is_and_which_runs_began_alike_or_stopped(tmp_path):
    head = "curve,seed,compute,score,samples,answer_variance,prompt_variance,run_start,run_state"
    rows = ("a,0,0,.2,80,1e-4,,one,done", "a,0,1,.3,80,,2e-4,one,done", "b,0,0,.4,80,3e-4,,,stopped")
    a, b = read_seed_curves(written(tmp_path, "\n".join([head, *rows])))
    assert (a.curve.start, a.is_stopped, b.curve.start, b.is_stopped) == ("one", False, "", True)
    np.testing.assert_array_equal(a.curve.answer_variance, [1e-4, np.nan])
    np.testing.assert_array_equal(a.curve.prompt_variance, [np.nan, 2e-4])
    # Unknown, it is that of 80 answers, .3 * .7 / 80.
    assert a.curve.sampling_variance.tolist() == pytest.approx([1e-4, 0.002625])


def test_a_file_of_a_study_names_unit_reference_and_settings(tmp_path):
    head = "curve,compute,score,compute_unit,reference_variant,fit_settings"
    rows = [f'{name},1,.2,GPU-hours,b,"{{""fit_from"": ""auto"", ""ceiling"": 0.9}}"' for name in "ab"]
    assert read_declared(written(tmp_path, "\n".join([head, *rows]))) == Declared(
        compute_unit="GPU-hours", reference="b", settings=FitSettings(fit_from="auto", ceiling=0.9)
    )
    assert read_declared(written(tmp_path, "curve,compute,score\na,1,.2\n")) == Declared()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "compute_unit\na,0,1,.2,hours\na,0,2,.3,tokens\n",
            ":3: compute_unit: found 'tokens' below 'hours'; rows that",
        ),
        ("reference_variant\na,0,1,.2,a\nb,0,2,.3,b\n", ":3: reference_variant: found 'b' below 'a'; rows that belong"),
        ("run_start\na,0,1,.2,x\na,0,2,.3,y\n", ":3: run_start: found 'y' below 'x'; rows that belong together say"),
        ("run_state\na,0,1,.2,done\na,0,2,.3,failed\n", ":3: run_state: found 'failed' below 'done'; rows that"),
        (
            "fit_settings\na,0,1,.2,all\n",
            "fit_settings: found 'all' (Expecting value: line 1 column 1 (char 0)); write",
        ),
        ("fit_settings\na,0,1,.2,7\n", "fit_settings: found '7' (no object); write a JSON object with any of fit_from"),
        (
            'fit_settings\na,0,1,.2,"{""to"": 7}"\n',
            "(unknown keys ['to']); write a JSON object with any of fit_from, fit_to",
        ),
        ('fit_settings\na,0,1,.2,"{""loss"": ""cubes""}"\n', "(loss: Input should be 'squares' or 'huber')"),
        ('fit_settings\na,0,1,.2,"{""ceiling"": 2}"\n', "(ceiling: Input should be less than or equal to 1)"),
        (
            'fit_settings\na,0,1,.2,"{""fit_from"": 9, ""fit_to"": 9}"\n',
            "(fit_from must not be negative, and must lie below",
        ),
        ("samples,answer_variance\na,0,1,.2,80,-1\n", ":2: answer_variance: found -1; must not be negative"),
    ],
)
def test_a_file_of_a_study_that_contradicts_itself_is_refused(tmp_path, text, message):
    path = written(tmp_path, f"curve,seed,compute,score,{text}")
    with pytest.raises(FileError) as caught:
        _ = (read_seed_curves(path), read_declared(path))
    assert message in str(caught.value)


def test_blanks_around_headers_and_fields_count_for_nothing(tmp_path):
    (curve,) = read_curves(written(tmp_path, 'curve, "compute", score , note\n a b, 10, .2 ,\n"a b", 20 , "0.3",x\n'))
    assert curve.name == "a b"
    assert (curve.compute.tolist(), curve.score.tolist()) == ([10, 20], [0.2, 0.3])


@pytest.mark.parametrize(
    ("compute", "text"),
    [
        (10380.4, "10,380"),
        (109_149.0, "109,100"),
        (999_960.0, "1,000,000"),
        (1704.0, "1,704"),
        (261.63, "261.6"),
        (0.25134, "0.2513"),
        (0.0, "0"),
        (1.0384e21, "1.038e+21"),
        (0.0000102, "1.02e-05"),
    ],
)
def test_computes_are_shown_with_four_digits_and_without_powers_of_ten_up_to_a_billion(compute, text):
    assert compute_text(compute) == text


def test_a_missing_or_binary_file_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"none\.csv: no such file; there are no CSV files there"):
        read_curves(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"curve,compute,score\n\xff\xfe\x00")
    with pytest.raises(FileError, match="not UTF-8 text"):
        read_curves(tmp_path / "binary.csv")


@pytest.mark.parametrize(
    ("compute", "score", "message"),
    [
        ([], [], "pass a list of one or more evaluations"),
        ([1, 2], [0.1], "score has shape (1,), compute (2,)"),
        ([1, 2], [0.1, np.nan], "evaluation 2: score is nan; must be a finite number"),
        ([2, 1], [0.1, 0.2], "compute 1 comes after 2"),
        ([1, 1], [0.1, 0.2], "compute 1 comes after 1"),
        ([1764000000, 1764003600], [0.1, 0.2], "compute 1764000000 to 1764003600 is the time since 1970; subtract"),
        ([490000.0, 490001.5], [0.1, 0.2], "compute 490000 to 490001.5 is the time since 1970"),
        ([1.764e12, 1.765e12], [0.1, 0.2], "compute 1.764e+12 to 1.765e+12 is the time since 1970"),
        ([1, 2], [0.1, 1.2], "evaluation 2: score is 1.2; a pass rate must lie in [0, 1]"),
    ],
)
def test_a_curve_refuses_readings_that_are_none(compute, score, message):
    with pytest.raises(AblationsError) as caught:
        Curve(name="a", compute=np.array(compute), score=np.array(score))
    assert message in str(caught.value)


def test_a_curve_cannot_be_changed_and_does_not_share_memory():
    score = np.array([0.1, 0.2])
    curve = Curve(name="a", compute=np.array([1.0, 2.0]), score=score)
    score[0] = 0.9
    assert curve.score[0] == 0.1
    with pytest.raises(ValueError, match="read-only"):
        curve.score[0] = 0.5
