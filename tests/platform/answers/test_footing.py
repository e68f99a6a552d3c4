"""The compute at which runs are compared, by hand."""

import pytest

from ablations.answers.footing import Footing, footing_of, most_counts


@pytest.mark.parametrize(
    ("ends", "compute", "own"),
    [
        # All alike.
        ({"ref": [100, 100, 100], "a": [100, 100, 100]}, 100, {}),
        # One run of a variant, or of the reference, ended early.
        ({"ref": [100, 100, 100], "a": [100, 22, 100]}, 100, {}),
        ({"ref": [22, 100, 100], "a": [100, 100, 100]}, 100, {}),
        # With one seed each, the shorter one has no other.
        ({"ref": [100], "a": [22]}, 100, {"a": 22}),
        ({"ref": [22], "a": [100]}, 22, {}),
        # Every run of a variant ended early: 22 * 3, 40 * 2 or 60 * 1.
        ({"ref": [100, 100, 100], "a": [22, 40, 60]}, 100, {"a": 40}),
        # Every run of the reference ended early: nobody can be compared with it beyond.
        ({"ref": [22, 22, 22], "a": [100, 100, 100], "b": [100, 100, 100]}, 22, {}),
        ({"ref": [22, 22, 22], "a": [100, 100, 100], "b": [10, 10, 10]}, 22, {"b": 10}),
        # Two runs in three of each variant ended early, but of each one is left.
        ({"ref": [100, 100, 22], "a": [100, 22, 22], "b": [100, 100, 22]}, 100, {}),
        # Nearly as long counts, and all are read where the first of these ends.
        ({"ref": [130.4, 128.9], "a": [125.0, 131.0], "b": [43.7, 127.0]}, 125, {}),
        # One variant, or one seed, was trained longer: the others decide.
        ({"ref": [100, 100], "a": [200, 200], "b": [100, 100]}, 100, {}),
        ({"ref": [200, 200], "a": [200, 200], "b": [100, 100], "c": [100, 100], "d": [100, 100]}, 100, {}),
        ({"ref": [250, 100, 100], "a": [250, 100, 100]}, 100, {}),
        # In training: a variant that has not come so far is read where it is, and nobody else with it.
        ({"ref": [100, 100], "a": [100, 100], "b": [52, 50]}, 100, {"b": 50}),
        # A reference without runs has no say.
        ({"ref": [], "a": [100, 100], "b": [30, 30]}, 100, {"b": 30}),
    ],
)
def test_the_compute_of_a_comparison(ends, compute, own):
    assert footing_of(ends, "ref") == Footing(compute=compute, own=own)


def test_without_runs_there_is_no_footing():
    assert footing_of({"ref": [], "a": []}, "ref") is None


@pytest.mark.parametrize(("ends", "at"), [([60, 60, 5], 60), ([60, 45, 30], 30), ([52, 50, 48], 48), ([22, 100], 100)])
def test_the_most_training_counts(ends, at):
    assert most_counts(ends) == at
