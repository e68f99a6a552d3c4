"""The command that examines a run after it went wrong, or a machine or cluster before a sweep: doctor."""

import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from ablations.cli.exit_codes import NOT_FINISHED
from ablations.cli.findings import show_counts, shown_parts
from ablations.cli.options import HomeOption, JsonOption, TrackingOption, sweeps_and_runs
from ablations.cli.output import console
from ablations.errors import AblationsError, Place
from ablations.files.lookup import find_file
from ablations.home.home import find_home
from ablations.signals import handled
from ablations.tracking.sync_note import default_tracking_uri


def doctor(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN | SWEEP]",
            help="Run, variant or sweep to diagnose. Default: examine the machine.",
            autocompletion=sweeps_and_runs,
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the runs to diagnose. Default: every seed.")] = None,
    regime: Annotated[
        bool,
        typer.Option("--regime", help="Show how far the runs of a sweep are from the paper's regime, in 14 numbers."),
    ] = False,
    partition: Annotated[
        list[str] | None, typer.Option(help="Partition to examine; may be repeated. Default: the cluster's.")
    ] = None,
    no_job: Annotated[bool, typer.Option("--no-job", help="Submit no probe job; no node is examined.")] = False,
    wait_s: Annotated[float, typer.Option(min=0.0, help="Seconds a probe may wait for a node.")] = 120.0,
    setup: Annotated[
        list[str] | None, typer.Option(help="Shell line before the probe, like resources.setup; may be repeated.")
    ] = None,
    sbatch: Annotated[
        list[str] | None, typer.Option(help="sbatch option name=value, such as account=physics; may be repeated.")
    ] = None,
    ray: Annotated[
        bool, typer.Option("--ray", help="Examine a Ray cluster and each of its nodes instead of Slurm.")
    ] = False,
    train: Annotated[
        bool,
        typer.Option(
            "--train", help="Also train for about a minute, with two generators and two ranks, on probed nodes or here."
        ),
    ] = False,
    study: Annotated[
        str | None,
        typer.Option("--for", help="Also check that this study could be trained: a sweep file, or a name like fig7."),
    ] = None,
    scale: Annotated[str | None, typer.Option(help="Scale for that study instead of its own.")] = None,
    tracking_uri: TrackingOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Explain why a run went wrong; without a run, check that this machine, Slurm and a node are ready for a sweep.

    Each finding about a run gives the first step at which it holds, its certainty, and the setting to change. The exit
    code is 1 if this machine lacks something.
    """
    from ablations.ray.doctor import examine_ray
    from ablations.slurm.doctor import DoctorQuestion, examine
    from ablations.slurm.doctor.here import absolute

    if target is not None:
        if any((partition, no_job, setup, sbatch, ray, train, study, scale, tracking_uri)):
            raise AblationsError(f"{target!r} is diagnosed by its log; omit options about machines")
        from ablations.cli.diagnose import diagnose_all, show_regime

        if regime:
            show_regime(find_home(home), target, as_json=as_json)
        else:
            diagnose_all(find_home(home), target, seed=seed, as_json=as_json)
        return
    if regime:
        raise AblationsError("--regime belongs to a sweep; name it, as in `platform doctor loo --regime`")
    if seed is not None:
        raise AblationsError("--seed belongs to a run; name it, as in `platform doctor loo-loss --seed 1`")
    if ray and any((partition, no_job, setup, sbatch, train, study)):
        raise AblationsError("--ray examines a Ray cluster; omit the options about Slurm, --train and --for")
    if no_job and (setup or sbatch):
        raise AblationsError("--setup and --sbatch need a probe job and conflict with --no-job; omit one of them")
    if scale and not study:
        raise AblationsError("--scale belongs to --for STUDY and has no effect without it; omit --scale")
    file = find_file("study", study, named_at=Place(source=f"doctor --for {study}")) if study else None
    place = find_home(home)
    uri = absolute(tracking_uri) if tracking_uri else default_tracking_uri(place)
    out = console(stderr=as_json)
    try:
        with handled(signal.default_int_handler, signal.SIGTERM, signal.SIGHUP), saying(out) as say:
            question = DoctorQuestion(
                home=place,
                tracking_uri=uri,
                say=say,
                partitions=tuple(partition or ()),
                with_job=not no_job,
                setup=tuple(setup or ()),
                sbatch=tuple(sbatch or ()),
                wait_s=wait_s,
                trains=train,
                study=file,
                scale=scale,
            )
            with closing(examine_ray(place, uri, say) if ray else examine(question)) as lines:
                findings = shown_parts(out, lines, as_json)
    except KeyboardInterrupt:
        console(stderr=True).print("Stopped. No probe job is left behind.")
        raise typer.Exit(NOT_FINISHED) from None
    show_counts(out, findings, as_json)


@contextmanager
def saying(out: Console) -> Iterator[Callable[[str], None]]:
    """Show on the last line of a terminal what the command is waiting for; show nothing elsewhere."""
    if not out.is_terminal:
        yield lambda _: None
        return
    with out.status("looking around") as status:
        yield lambda text: status.update(escape(text))
