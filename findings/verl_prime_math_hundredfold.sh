#!/usr/bin/env bash
# verl 0.9.1: the reward for the numina data sets (prime_math) pays a hundred times and a hundredth of the right number in full,
# and numbers that agree in four digits.
#
# `default_compute_score` takes prime_math for numina_olympiads, numina_cn_k12 and four more. Its `math_equal` compares with a
# hundredth, once and a hundred times the right number (`include_percentage`), each to one part in 10,000, whether or not a
# percent sign stands anywhere.
# Expected: of the answers 42, .42, 4200, 12346 and 100001 only the first is right, for 42, 42, 42, 12345 and 100000.
# Seen: all five earn 1. The other graders of verl say -1 and 0. A policy that counts one too many in a large sum, or is a
# factor of 100 off, is trained to go on, and scores are higher than those of another grader on the same answers.
# Exit status 0 if it is as written here, 1 if the library behaves otherwise now.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check verl==0.9.1 sympy==1.14.0
"$folder/venv/bin/python" -W ignore - 2>/dev/null <<'PYTHON'
import sys
from importlib.metadata import version

from verl.utils.reward_score import default_compute_score

ANSWERS = [("42", "42"), ("0.42", "42"), ("4200", "42"), ("12346", "12345"), ("100001", "100000"), ("43", "42")]
"""Answers, each with the right one."""
FORMS = {"numina_olympiads": r"So it is \boxed{%s}.", "DigitalLearningGmbH/MATH-lighteval": r"So it is \boxed{%s}.", "math_dapo": "So:\nAnswer: %s"}
"""For each data set an answer in the form that its grader reads."""


def score(source, answer, truth):
    """The reward that verl's trainer gives for an answer."""
    found = default_compute_score(source, FORMS[source] % answer, truth)
    return found["score"] if isinstance(found, dict) else found


print(f"verl {version('verl')}: rewards; expected full reward in the first row alone")
found = {source: [score(source, answer, truth) for answer, truth in ANSWERS] for source in FORMS}
for row, (answer, truth) in enumerate(ANSWERS):
    print(f"{answer:>6} for {truth:>6}: " + ", ".join(f"{source} {scores[row]:g}" for source, scores in found.items()))
is_as_described = (
    found["numina_olympiads"] == [1, 1, 1, 1, 1, 0]
    and found["DigitalLearningGmbH/MATH-lighteval"] == [1, 0, 0, 0, 0, 0]
    and found["math_dapo"] == [1, -1, -1, -1, -1, -1]
)
sys.exit(not is_as_described)
PYTHON
