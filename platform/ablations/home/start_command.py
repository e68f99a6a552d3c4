"""The command that started a sweep, and the commands made from it, each as it can be given in the current folder.

>>> start_command(sweep)
'platform sweep sweeps/loo.yaml --scale smoke'
>>> longer_command(sweep, 4000.0)
'platform sweep sweeps/loo.yaml --scale smoke --budget 4000h'

One that was given in another folder begins with `cd`, because the paths in it and in its sweep file start there. The
home folder is named unless the command finds it without.
"""

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from ablations.files.lookup import files_of
from ablations.home.home import Home
from ablations.home.started_sweep import StartedSweep

OF_DESIGN = ("--scale", "--set", "--budget", "--home")
"""Options of `platform sweep` that `platform design` has too."""
OF_CHECK = ("--scale", "--set")
"""Options of `platform sweep` that `platform check` has too."""
OF_STUDY = ("--scale", "--home")
"""Options of `platform reproduce` that a sweep of the same study needs; it gets the budget of the plan."""
FOR_ONE_START = ("--after",)
"""Options that make sense once only: a job that has ended is unknown to Slurm."""


def folder_given(home: Home) -> str:
    """The current folder as plans keep it, relative to the home folder, so that both can be moved together."""
    return os.path.relpath(Path.cwd(), home.path)


def start_command(sweep: StartedSweep) -> str:
    """The command that started the sweep."""
    return _here(sweep, _words(sweep))


def longer_command(sweep: StartedSweep, budget_gpu_hours: float) -> str:
    """The command that started the sweep, with this budget instead of its own."""
    return _here(sweep, _with_budget(_words(sweep), budget_gpu_hours))


def more_seeds_command(sweep: StartedSweep) -> str:
    """The command that trains further seeds once they are in the file: the one that started the sweep, but a `platform
    reproduce` keeps the seeds that it has begun with, so its file is trained as a sweep."""
    return _here(sweep, _of_file(sweep))


def design_command(sweep: StartedSweep) -> str:
    """The command that shows what designs of the study could detect."""
    return _here(sweep, design_words(sweep))


def design_words(sweep: StartedSweep) -> list[str]:
    """The words of `design_command`, as given in `start_folder`."""
    return _about_file(sweep, "design", OF_DESIGN)


def check_command(sweep: StartedSweep) -> str:
    """The command that checks all that the study trains on, which needs no home folder."""
    return _in_folder(sweep, _about_file(sweep, "check", OF_CHECK))


def start_folder(sweep: StartedSweep) -> Path:
    """The folder in which the command was given; the current one if it is unknown or has no such sweep file."""
    plan = sweep.plan
    folder = Path(os.path.normpath(sweep.home.path / plan.folder))
    words = shlex.split(plan.command)[1:]
    is_there = bool(plan.folder and words) and (
        words[0] == "reproduce" or any(os.path.isfile(folder / word) for word in words[1:])
    )
    return folder if is_there and folder.is_dir() else Path.cwd()


def _words(sweep: StartedSweep) -> list[str]:
    words = shlex.split(sweep.plan.command) or ["platform", "sweep", "FILE"]
    return [*words[:2], *_without(words[2:], FOR_ONE_START)]


def _of_file(sweep: StartedSweep) -> list[str]:
    """The words that train the sweep from its file, also if `platform reproduce` started it."""
    words = _words(sweep)
    if words[:2] != ["platform", "reproduce"]:
        return words
    studies, folder = files_of("study"), start_folder(sweep)
    named = next((word for word in words[2:] if word in studies or word.endswith(".yaml")), sweep.name.split("@")[0])
    file = studies.get(named, Path(named))
    file = file.relative_to(folder) if file.is_relative_to(folder) else file
    kept = [word for option, word in _options(words[2:]) if option in OF_STUDY]
    return _with_budget(["platform", "sweep", str(file), *kept], sweep.plan.budget_gpu_hours)


def _about_file(sweep: StartedSweep, verb: str, options: Sequence[str]) -> list[str]:
    """The words of another command about the sweep's file, with these of its options."""
    return ["platform", verb, *(word for option, word in _options(_of_file(sweep)[2:]) if option in ("", *options))]


def _with_budget(words: Sequence[str], budget_gpu_hours: float) -> list[str]:
    return [*_without(words, ("--budget",)), "--budget", f"{budget_gpu_hours:.12g}h"]


def _here(sweep: StartedSweep, words: Sequence[str]) -> str:
    """The command line for a shell in the current folder, with the home folder."""
    folder, home = start_folder(sweep), sweep.home
    named = [word.removeprefix("--home=") for option, word in _options(words) if option == "--home"][-1:]
    if not named or Path(os.path.normpath(folder / named[0])) != home.path:
        words = [*_without(words, ("--home",)), *shlex.split(home.end_of_command_in(folder))]
    return _in_folder(sweep, words)


def _in_folder(sweep: StartedSweep, words: Sequence[str]) -> str:
    folder, line = start_folder(sweep), shlex.join(words)
    return line if folder == Path.cwd() else f"cd {shlex.quote(str(folder))} && {line}"


WITH_VALUE = (*OF_DESIGN, "--executor", "--jobs", "--after", "--tracking-uri")
"""Options of the commands that start a sweep whose value may be a word of its own."""


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each word with the option that it belongs to; arguments have none: `("--scale", "--scale"), ("--scale", "smoke"),
    ("", "loo.yaml")`."""
    rest = iter(words)
    for word in rest:
        option = word.partition("=")[0] if word.startswith("--") else ""
        yield option, word
        if option == word and option in WITH_VALUE:
            yield option, next(rest, "")


def _without(words: Sequence[str], options: Sequence[str]) -> list[str]:
    return [word for option, word in _options(words) if option not in options]
