"""Checks and questions before a sweep trains on a cluster, Slurm's or Ray's, and the next commands to type."""

import sys
from typing import TYPE_CHECKING

import typer

from ablations.cli.options import WRONG_INPUT, own_command, print_json
from ablations.cli.plan import cost_of
from ablations.errors import AblationsError
from ablations.home.started_sweep import StartedSweep
from ablations.running.on_ray import OnRay
from ablations.running.on_slurm import OnSlurm
from ablations.terminal.screen import Screen

if TYPE_CHECKING:
    from ablations.study.expand import Study

SEARCH_AT_ONCE = 8
"""Number of runs that a search keeps in flight on Slurm if resources.at_once is not set."""
NEXT = (("follow", "status --watch"), ("table", "compare"), ("end", "cancel"))


def on_slurm(
    study: "Study",
    sweep: StartedSweep,
    *,
    jobs: int | None,
    hold: bool,
    after: str | None,
    prune: bool,
    yes: bool,
    out: Screen,
) -> "OnSlurm":
    """The Slurm executor, checked against the cluster before anything is written."""
    from ablations.pools.placed import refuse_idle_devices, threads_of_node
    from ablations.slurm.limits import check_home_path, check_on_cluster

    check_home_path(sweep.home.path)
    resources, threads = study.resources, threads_of_node(study.reference.recipe, study.resources)
    if jobs is not None:
        resources = resources.model_copy(update={"at_once": jobs})
    partition = check_on_cluster(study.asked, threads=threads)
    refuse_idle_devices(study.asked, study.reference.recipe)

    def agree(num_jobs: int) -> None:
        cost = cost_of(num_jobs, resources, threads, partition)
        out.say(cost.text())
        if not cost.needs_confirmation or yes:
            return
        if not sys.stdin.isatty():
            raise AblationsError(f"{cost.question().removesuffix('submit?')}nothing submitted. Pass --yes to submit")
        if not typer.confirm(cost.question()):
            raise typer.Exit(WRONG_INPUT)

    return OnSlurm(
        resources=resources,
        threads=threads,
        jobs=resources.at_once or SEARCH_AT_ONCE,
        hold=hold,
        after=after,
        prune=prune,
        agree=agree,
    )


def on_ray(study: "Study", sweep: StartedSweep, jobs: int | None) -> OnRay:
    """The Ray executor, connected to a cluster and checked against it before anything else is written.

    Without `--jobs` as many runs train at a time as fit into the cluster. With `--jobs` Ray is asked for that many, so
    that a cluster that grows by itself does.
    """
    from ablations.pools.placed import refuse_idle_devices, threads_of_node
    from ablations.ray.capacity import runs_at_once, why_none
    from ablations.ray.driver_process import DriverProcess
    from ablations.ray.order import share_of

    recipe, resources = study.reference.recipe, study.resources
    refuse_idle_devices(study.asked, recipe)
    sweep.home.require_writable()
    share = share_of(resources, threads=threads_of_node(recipe, resources))
    driver = DriverProcess(sweep.folder / "ray" / "driver.log")
    nodes = [node.resources for node in driver.nodes]
    at_once = jobs or resources.at_once or runs_at_once(nodes, share)
    if not at_once:
        raise AblationsError(f"{why_none(nodes, share)}; change `resources:`, or pass --jobs if it grows")
    return OnRay(share=share, threads=recipe.threads, jobs=at_once, driver=driver)


def refuse_without_slurm(options: dict[str, object]) -> None:
    """Raise AblationsError for options that have no effect on this machine."""
    if given := [name for name, value in options.items() if value]:
        raise AblationsError(f"{', '.join(given)}: no effect without --executor slurm")


def where_next(sweep: StartedSweep, out: Screen, as_json: bool) -> None:
    """Print the commands to use while the jobs wait and train."""
    if as_json:
        from ablations.status.progress import run_rows, to_json

        print_json(to_json(sweep.plan, run_rows(sweep)))
        return
    lines = [f"{what:11}{own_command()} {name} {sweep.name} {sweep.home.option}" for what, name in NEXT]
    out.print("\n".join(lines), soft_wrap=True, highlight=False, markup=False)
