"""The command that serves the commands as tools for an agent: mcp."""

import importlib.util
from typing import Annotated

import typer

from ablations.cli.options import HomeOption
from ablations.errors import AblationsError
from ablations.home.home import find_home


def mcp(
    allow_sweeps: Annotated[
        bool, typer.Option("--allow-sweeps", help="Offer the tool sweep, which trains on this machine.")
    ] = False,
    most_compute: Annotated[
        float | None,
        typer.Option(
            help=(
                "With --allow-sweeps: reject a sweep with more compute left to train than this, in GPU-hours or the "
                "study's own unit."
            )
        ),
    ] = None,
    home: HomeOption = None,
) -> None:
    """Serve the commands as tools of the Model Context Protocol, on standard input and output, until they close.

    Each tool returns what its command prints with --json. Files are found from the folder in which the server starts.
    """
    if allow_sweeps and most_compute is None:
        raise AblationsError("--allow-sweeps: --most-compute is missing; write for example --most-compute 100")
    if most_compute is not None and not allow_sweeps:
        raise AblationsError(f"--most-compute {most_compute:g} has no effect without --allow-sweeps")
    if most_compute is not None and not most_compute > 0:
        raise AblationsError(f"--most-compute: found {most_compute:g}; must be a number greater than 0")
    if importlib.util.find_spec("mcp") is None:
        raise AblationsError("the server for agents is not installed; run `pip install 'ablations[mcp]'`")
    from ablations.cli.tools import Tools

    Tools(home=find_home(home), most_compute=most_compute).server().run()
