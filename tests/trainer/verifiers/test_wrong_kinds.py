"""10,000 generated answers: a right one beside a near miss of a kind that graders are known to accept, from a seed."""

import random

import pytest
from trainer.verifiers.outcomes import verify_math

UNITS = [
    "years",
    "months",
    "kg",
    "tons",
    "liters",
    "gallons",
    "mph",
    "km/h",
    "J",
    "kJ",
    "apples",
    "days",
    "cm",
    "inches",
]
NUM_PAIRS = 5_000


def another(rng, number):
    return number + rng.choice([-10, -1, 1, 10]) * rng.choice([1, 1, 3])


def of_a_number(rng):
    number = rng.randint(2, 3000)
    said = rng.choice(
        [r"\boxed{{{}}}", "The answer is {}.", r"\boxed{{{}\text{{ apples}}}}", "#### {}", r"So it costs **\${}**."]
    )
    return f"#### {number}", said.format(number), said.format(another(rng, number))


def of_a_unit(rng):
    number, (unit, other) = rng.randint(2, 90), rng.sample(UNITS, 2)
    return (
        rf"{number}\text{{ {unit}}}",
        rf"\boxed{{{number}\,\text{{{unit}}}}}",
        rf"\boxed{{{number}\,\text{{{other}}}}}",
    )


def of_case(rng):
    a, b = rng.sample("abcmnpqrstuvwxyz", 2)
    form = rng.choice(
        ["{0}^2-{1}", r"\frac{{{0}}}{{{0}+{1}}}", "3{0}{1}", r"\pi {0}^2{1}", "{0}+2{1}", r"\sqrt{{{0}}}+{1}"]
    )
    gold, wrong = form.format(a, b), form.format(a.upper(), b)
    return gold, rf"\boxed{{{gold}}}", rf"\boxed{{{wrong}}}"


def of_boxes(rng):
    one, other, third = rng.sample(range(2, 60), 3)
    parts = rng.choice([" and ", ", ", "; ", " or ", r" $\quad$ "])
    both = rf"$x=\boxed{{{one}}}${parts}$x=\boxed{{{other}}}$"
    wrong = [rf"\boxed{{{one}}}", rf"\boxed{{{other}}}", both + rf"{parts}\boxed{{{third}}}"]
    return f"{one}, {other}", rf"\boxed{{{one}}}{parts}\boxed{{{other}}}", rng.choice(wrong)


def of_a_ratio(rng):
    a, b, c = rng.sample([2, 3, 5, 7, 11, 13], 3)
    times = rng.randint(2, 4)
    return f"{a}:{b}:{c}", rf"\boxed{{{a * times}:{b * times}:{c * times}}}", rf"\boxed{{{a}:{c}:{b}}}"


def of_a_quotient(rng):
    a, b = rng.sample([61, 67, 71, 73, 79, 83], 2)
    return f"{a}:{b}", rng.choice([rf"\boxed{{\frac{{{a}}}{{{b}}}}}", rf"\boxed{{{a}/{b}}}"]), rf"\boxed{{{b}:{a}}}"


def of_both_signs(rng):
    a, b = rng.randint(1, 9), rng.choice([2, 3, 5, 7])
    gold = rf"{a}\pm\sqrt{{{b}}}"
    return gold, rf"\boxed{{{a}+\sqrt{{{b}}}, {a}-\sqrt{{{b}}}}}", rf"\boxed{{{a}+\sqrt{{{b}}}}}"


def of_words(rng):
    number = rng.randint(3, 90)
    words = rng.choice(
        ["or more", "tenths", "hundred", "percent of x", "times x", "or fewer", "squared", r"\mathrm{i}", "x"]
    )
    wrong = rf"\boxed{{{number}{words}}}" if words.startswith("\\") else rf"\boxed{{{number}\text{{ {words}}}}}"
    return f"#### {number}", rf"\boxed{{{number}\text{{ left}}}}", wrong


def of_a_choice(rng):
    letter, other = rng.sample("ABCDE", 2)
    number = rng.randint(2, 99)
    gold = rf"\textbf{{({letter})}}\ {number}"
    right = rng.choice([rf"\boxed{{{number}}}", rf"\boxed{{{letter}}}", rf"\boxed{{\text{{({letter})}} {number}}}"])
    return gold, right, rng.choice([rf"\boxed{{{other}}}", rf"\boxed{{{another(rng, number)}}}"])


def of_a_denial(rng):
    number = rng.randint(3, 900)
    said = rng.choice(
        ["It is not {}.", "The answer isn't {}.", "The answer cannot be {}.", "It is less than {}.", "at least {}"]
    )
    return f"#### {number}", f"The answer is {number}.", said.format(number)


KINDS = [
    of_a_number, of_a_unit, of_case, of_boxes, of_a_ratio, of_a_quotient, of_both_signs, of_words, of_a_choice,
    of_a_denial,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_of_generated_answers_none_of_a_known_wrong_kind_is_right_and_no_right_one_is_lost(kind):
    rng = random.Random(kind.__name__)
    for _ in range(NUM_PAIRS // len(KINDS)):
        gold, right, wrong = kind(rng)
        assert verify_math(right, gold, time_limit_s=5.0) == "right", (gold, right)
        assert verify_math(wrong, gold, time_limit_s=5.0) in ("wrong", "unparsable"), (gold, wrong)
