"""Letters of choices: how many there are, and gold letters that are none. `test_corpora` has the answers."""

import pytest
from trainer.verifiers.outcomes import verify_choice


def test_more_choices_admit_more_letters():
    assert verify_choice("The answer is E.", "E", num_choices=5) == "right"
    assert verify_choice("E", "A", num_choices=5) == "wrong"
    assert verify_choice("The answer is E.", "B", num_choices=4) == "unparsable"


@pytest.mark.parametrize("gold", ["E", "b", "", "AB", "1"])
def test_a_gold_letter_that_is_no_choice_is_refused(gold):
    with pytest.raises(ValueError, match=r"expected one of the letters A to D"):
        verify_choice("A", gold, num_choices=4)
