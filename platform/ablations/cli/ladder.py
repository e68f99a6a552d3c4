"""The command that shows whether differences carry over from one scale to the next: ladder."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ablations.cli.named_sweeps import find_sweeps, names_of_file
from ablations.cli.options import HomeOption, JsonOption, ReferenceOption, further_sweeps
from ablations.cli.output import console, print_json, warn
from ablations.errors import AblationsError
from ablations.home.home import find_home
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.terminal.progress_bar import progress_bar
from ablations.terminal.screen import Screen

if TYPE_CHECKING:
    from ablations.findings.results import Results
    from ablations.findings.scale_ladder import ScaleLadder


def ladder(
    sweeps: Annotated[
        list[str],
        typer.Argument(
            metavar="SWEEP",
            help="The same study at two scales or more: a sweep file with `scales:`, sweeps by name, or an imported "
            "table of curves with a column `scale`.",
            autocompletion=further_sweeps,
        ),
    ],
    at: Annotated[
        float | None,
        typer.Option(
            min=1.0, help="Model parameters of the scale to forecast. Default: one more step, as large as the last."
        ),
    ] = None,
    reference: ReferenceOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show which differences carry over from one scale to the next, which fade and which flip, and forecast a larger
    scale."""
    from ablations.findings.scale_ladder import scale_ladder
    from ablations.findings.several_sweeps import with_baseline

    started = [one for name in sweeps for one in find_sweeps(home, name)]
    if reference is not None:
        started = [with_baseline(one, reference) for one in started]
    found = scale_ladder(results_of(started), at=at)
    if as_json:
        print_json(found.to_json())
        return
    if not found.questions:
        raise AblationsError("no variant has an interval at two scales; two seeds at each scale give intervals")
    print_ladder(found, console())


def print_ladder(found: "ScaleLadder", out: Screen) -> None:
    from ablations.report.documents.ladder import ladder_document
    from ablations.report.writers.terminal import print_document

    print_document(ladder_document(found), out)


def results_of(sweeps: Sequence[StartedSweep]) -> "list[Results]":
    from ablations.findings.results import read_results

    found = []
    for sweep in sweeps:
        with progress_bar(f"fitting curves of {sweep.name}") as done:
            found.append(read_results(sweep, done=done))
    return found


def last_started(home: Path | None, name: str) -> str:
    """The sweep at the last started scale of a file with `scales`, or at its last scale; any other name unchanged."""
    names = names_of_file(name) or [name]
    started = set(find_home(home).sweep_names())
    return next((one for one in reversed(names) if one in started), names[-1])


def ladder_beside(*results: "Results") -> "ScaleLadder | None":
    """The study of a sweep at all its scales; None if it was started at only one, or its scales cannot be compared.

    Sweeps of the study that are passed in are not read again.
    """
    from ablations.findings.scale_ladder import ladders_of, scale_ladder

    own = results[0].sweep
    names = next((one for one in ladders_of(own.home).values() if own.name in one), [])
    if not names:
        return None
    try:
        given = [one.plan.sweep for one in results]
        others = results_of([read_sweep(own.home, name) for name in names if name not in given])
        ladder = scale_ladder([*results, *others])
    except AblationsError as error:
        warn(f"no comparison over scales: {error}")
        return None
    return ladder if ladder.questions else None
