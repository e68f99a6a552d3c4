#!/usr/bin/env bash
# verl 0.9.1: the reward for DAPO's and AIME's sets (math_dapo) gives -1 to a right answer with a full stop, in bold type, in
# \( \), with a leading zero, or with 300 characters after it.
#
# `default_compute_score` takes math_dapo for math_dapo, math and all sets whose name begins with aime. Of the last 300 characters
# it compares what follows the last "Answer:" with the gold as text, after LaTeX's dollars, \boxed and units are taken off.
# Expected: for the gold 42 every line below is right, since each says 42, or only the first, which is the form the prompt asks for.
# Seen: `$42$.`, `x = 42`, `42 degrees` and `### Answer: 42` earn 1; `42.`, `**Answer:** 42`, `Answer: **42**`, `\(42\)`, `042` and
# `42.0` earn -1. Variants, prompts and models differ by their taste in full stops and Markdown, by up to the whole reward, and
# a score that rises in the first steps may have learned only that. (skyrl-gym 0.4.0's aime says the same, and -1 to a box.)
# Exit status 0 if it is as written here, 1 if the library behaves otherwise now.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check verl==0.9.1
"$folder/venv/bin/python" -W ignore - 2>/dev/null <<'PYTHON'
import sys
from importlib.metadata import version

from verl.utils.reward_score import default_compute_score

PAID = ["Answer: 42", "Answer: $42$", "Answer: $42$.", "Answer: x = 42", "Answer: 42 degrees", "### Answer: 42", r"So: \boxed{42}"]
UNPAID = [
    "Answer: 42.", "**Answer:** 42", "**Answer**: 42", "**Answer: 42**", "Answer: **42**", r"Answer: \(42\)", "Answer: 042",
    "Answer: 42.0", "Answer: 42\n" + "I checked it. " * 22,
]
"""Answers that say 42, by the reward that was seen."""

found = {text: default_compute_score("math_dapo", text, "42") for text in (*PAID, *UNPAID)}
print(f"verl {version('verl')}: rewards of answers that say 42, and what is compared with 42; expected 1 in each row")
for text, result in found.items():
    print(f"{result['score']:+g} {text[:30]!r}, compared: {result['pred']!r}")
as_aime = [default_compute_score("aime2025", text, "42")["score"] for text in found]
scores = [result["score"] for result in found.values()]
sys.exit(not scores == as_aime == [1] * len(PAID) + [-1] * len(UNPAID))
PYTHON
