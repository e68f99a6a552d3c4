#!/usr/bin/env bash
# math-verify 0.9.0 with latex2sympy2_extended 1.11.0: a capital I with a subscript is the imaginary unit, and its subscript is dropped.
# Two different currents are one value, also in an Ohm's law or in a sum.
# Expected: I_1 and I_2 differ, as R_1 and R_2 do.  Seen: verify() is True for I_1 beside I_2.
# Exit status 0 if it is as written here, 1 if the library behaves otherwise now.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check math-verify==0.9.0 latex2sympy2_extended==1.11.0 \
  "antlr4-python3-runtime==4.13.2" sympy==1.14.0
"$folder/venv/bin/python" - <<'PYTHON'
import sys
from importlib.metadata import version

from math_verify import parse, verify

print("math-verify", version("math-verify"), "latex2sympy2_extended", version("latex2sympy2_extended"))
PAIRS = [  # gold, answer, equal according to version 0.9.0
    ("$R_1$", "$R_2$", False),
    ("$I_1$", "$I_2$", True),
    (r"$\frac{V}{I_1}$", r"$\frac{V}{I_2}$", True),
    ("$R I_{in}$", "$R I_{out}$", True),
]
as_written = True
for gold, answer, seen in PAIRS:
    found = verify(parse(gold), parse(answer))
    as_written &= found == seen
    print(f"{gold} beside {answer}: parsed as {parse(gold)[0]} and {parse(answer)[0]}, equal: {found}; expected: False")
sys.exit(not as_written)
PYTHON
