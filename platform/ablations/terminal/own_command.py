"""The name by which the user called `platform`, in every command that is printed, so that it can be pasted.

>>> as_called("Next: `platform sweep loo.yaml` continues dapo-s2.")  # called as .venv/bin/platform
'Next: `.venv/bin/platform sweep loo.yaml` continues dapo-s2.'
"""

import re
import shlex
import shutil
import sys
from functools import cache
from pathlib import Path

SCRIPT = "platform"
PRINTED = re.compile(rf"(`|`cd [^`\n]+ && ){SCRIPT}(?= [a-z])")
"""A command in a text, which may begin with `cd FOLDER`."""


def own_command() -> str:
    """`platform` if a shell finds it by this name, else the path by which it was called."""
    return shlex.quote(_called(sys.argv[0]))


def as_called(text: str) -> str:
    """The text with the name by which the user called `platform` in each of its commands."""
    called = _called(sys.argv[0])
    if called == SCRIPT:
        return text

    def named(found: re.Match[str]) -> str:
        from_elsewhere = found[1] != "`"  # where a relative path leads nowhere
        return found[1] + shlex.quote(str(Path(called).absolute()) if from_elsewhere else called)

    return PRINTED.sub(named, text)


@cache
def _called(name: str) -> str:
    path, found = Path(name), shutil.which(SCRIPT)
    is_path = path.name == SCRIPT and path.parent != Path()
    return SCRIPT if not is_path or (found and Path(found).absolute() == path.absolute()) else name
