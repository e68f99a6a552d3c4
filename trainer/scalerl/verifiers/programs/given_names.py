"""Names that public graders give to every program, as imports of those that a program uses.

>>> imports_for("def f(xs: List[int]): return gcd(*xs)").splitlines()
['from typing import List', 'from math import gcd']

The graders of APPS and LiveCodeBench put a header of imports before the program, and the start of a program that their
problems give relies on it. Here the names become built-ins of the program's process. So its own definitions win, and a
function that it lacks is not found in a library: an empty program does not have the gcd of `math`.
"""

import builtins
import re
import sys
from functools import cache
from importlib import import_module

STARRED = (
    "string re datetime collections heapq bisect copy math random statistics itertools functools operator io sys json"
)
"""Modules of LiveCodeBench's header (github.com/LiveCodeBench/LiveCodeBench, lcb_runner/evaluation), which imports them
and all their names."""
ALSO = {"time": "import time", "fractions": "import fractions", "np": "import numpy as np"}
"""The imports that the header of APPS adds (github.com/hendrycks/apps, eval/testing_util.py)."""
_WORD = re.compile(r"[^\W\d]\w*")
_OF_ONE_PROCESS = ("last_exc", "last_traceback", "last_type", "last_value", "ps1", "ps2", "tracebacklimit")


def imports_for(text: str) -> str:
    """Imports of the given names among the words of a Python text, one per line."""
    found = given_names()
    return "\n".join(found[word] for word in dict.fromkeys(_WORD.findall(text)) if word in found)


@cache
def given_names() -> dict[str, str]:
    """The import that gives each name; of two things with one name the later one of the headers, and modules last."""
    modules = STARRED.split()
    names = {name: f"from {module} import {name}" for module in (*modules, "typing") for name in _public(module)}
    return {**names, **{module: f"import {module}" for module in modules}, **ALSO}


def _public(module: str) -> list[str]:
    """Names of `from module import *`, without those that are built in."""
    names = getattr(import_module(module), "__all__", None) or [*vars(sys.modules[module])]
    return [name for name in names if not (name.startswith("_") or hasattr(builtins, name) or name in _OF_ONE_PROCESS)]
