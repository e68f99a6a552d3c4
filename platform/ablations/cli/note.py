"""The command for notes and tags on sweeps, variants and runs: note."""

import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated

import typer

from ablations.cli.named_sweeps import find_run, find_sweep
from ablations.cli.options import HomeOption, JsonOption, refuse_idle, started_sweeps, sweeps_and_runs
from ablations.cli.output import console, print_json, tell
from ablations.errors import AblationsError
from ablations.home.home import Home, find_home
from ablations.home.notes import Notes, NoteSubject, notes_by_name
from ablations.home.started_sweep import StartedSweep
from ablations.report.documents.notes import note_rows, notes_as_table
from ablations.report.writers.terminal import print_document
from ablations.terminal.short_names import meant


def note_(
    about: Annotated[
        str | None,
        typer.Argument(
            help="Sweep, variant or run, such as loo, loo-loss or loo-loss-s0. Default: the last sweep started.",
            autocompletion=sweeps_and_runs,
        ),
    ] = None,
    text: Annotated[str | None, typer.Argument(help="Note to add. Default: print the notes.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Tag to add, one word; may be repeated.")] = None,
    untag: Annotated[str | None, typer.Option("--untag", help="Tag to remove.")] = None,
    remove: Annotated[int | None, typer.Option("--remove", help="Number of a note to remove.")] = None,
    sweep: Annotated[
        str | None,
        typer.Option(
            help="Sweep of the variant or run. Default: the last sweep started.", autocompletion=started_sweeps
        ),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a note or tags on a sweep, a variant or a run, or print those that there are.

    Reports, `platform status`, the pages and MLflow show them. They change no result and no run's identity.
    """
    place = find_home(home)
    of_sweep = about is not None and sweep is None and names_a_sweep(place, about)
    started, named = (find_sweep(home, about), None) if of_sweep else (find_sweep(home, sweep), about)
    name, subject = subject_of(started, named)
    changes = {"--tag": tag and tag[0], "--untag": untag, "--remove": remove}
    if text is not None or tag:
        refuse_idle("a note or tag to add", {"--untag": untag, "--remove": remove})
        subject.add(text=text, tags=tuple(tag or ()), at=time.time())
    if untag is not None:
        subject.untag(untag)
    if remove is not None:
        subject.remove(remove)
    is_all = named is None and text is None and not any(changes.values())
    notes = [*notes_by_name(started)] if is_all else [(name, subject.read())]
    if as_json:
        print_json([{"about": one, **asdict(found)} for one, found in notes])
    else:
        show_notes(notes, none=f"There are no notes on {name}.")


def names_a_sweep(home: Home, name: str) -> bool:
    """True for the name of a started sweep, and for a sweep file."""
    return name in home.sweep_names() or name.endswith((".yaml", ".yml"))


def subject_of(sweep: StartedSweep, name: str | None) -> tuple[str, NoteSubject]:
    """What a note is about, with its name: the sweep, or its variant or run of this name."""
    home, names = sweep.home, [one.name for one in sweep.plan.variants]
    if name is None:
        return sweep.name, NoteSubject(home=home, folder=sweep.folder)
    if (variant := meant(name, names)) in names:
        return variant, NoteSubject(home=home, folder=sweep.folder, variant=variant)
    try:
        run = home.run(find_run(home, name, sweep.name, None))
    except AblationsError as error:
        raise AblationsError(f"{error}; sweeps are: {', '.join(home.sweep_names())}") from error
    if not run.read_status().has_started:
        raise AblationsError(f"run {name} has not started; write the note on its variant")
    return name, NoteSubject(home=home, folder=run.path)


def show_notes(notes: Iterable[tuple[str, Notes]], *, none: str) -> None:
    """Print the notes under their names as a table; `none` if there are none."""
    rows = [row for name, one in notes for row in note_rows(name, one)]
    if rows:
        print_document([notes_as_table(rows)], console())
    else:
        tell(none)
