"""The doctor: checks whether a cluster can run sweeps, and advises if it cannot. A map of the room:

here        Python, packages, home folder and MLflow on this machine
cluster     checks of Slurm's own configuration
examine_node  the program that examines a node from inside a job
probe_job   that job, from submission to removal, and why it may have sent no report
node        judges the probe's report, compared with this machine
training    a minute of training with two generators and two ranks, in a job or here
short_run   the program that trains for that minute
study       checks whether one study could be trained here
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ablations.errors import AblationsError
from ablations.home.home import Home
from ablations.nearest_name import did_you_mean
from ablations.slurm import commands
from ablations.slurm.commands import Partition
from ablations.slurm.doctor.cluster import (
    check_accounting,
    check_commands,
    check_controller,
    check_job_rules,
    check_partitions,
    check_preemption,
)
from ablations.slurm.doctor.examine_node import look_at_engines, look_at_modules
from ablations.slurm.doctor.here import check_here
from ablations.slurm.doctor.node import check_node
from ablations.slurm.doctor.probe_job import Probing, remove_left_probes
from ablations.slurm.doctor.study import check_files, check_jobs
from ablations.slurm.doctor.training import check_training, check_training_here
from ablations.study.resources import OWN_OPTIONS
from scalerl.checks.finding import Finding

__all__ = ["DoctorQuestion", "examine"]


@dataclass(frozen=True, kw_only=True)
class DoctorQuestion:
    """The scope of an examination."""

    home: Home
    tracking_uri: str
    partitions: tuple[str, ...] = ()
    """The partitions to probe; empty for the default one."""
    with_job: bool = True
    setup: tuple[str, ...] = ()
    """Shell lines before the probe, like `resources.setup`."""
    sbatch: tuple[str, ...] = ()
    """Options such as `account=physics`, like `resources.sbatch`."""
    wait_s: float = 120.0
    """Seconds that a probe may wait for a node."""
    trains: bool = False
    """True to train for a minute on each probed node, or here if there is none."""
    study: Path | None = None
    """The sweep file of a study to check."""
    scale: str | None = None
    """The scale of that study, if not its own."""

    @property
    def asks_for_cluster(self) -> bool:
        """True if the question names something that only a cluster has."""
        return bool(self.partitions or self.setup or self.sbatch)


def examine(question: DoctorQuestion, say: Callable[[str], None]) -> Generator[Finding]:
    """Run all checks, yielding one finding at a time; `say` gets a line about each slow step.

    Close the generator if you leave it early, so that its job is cancelled. A home folder created by the checks is
    removed again. Raises AblationsError for an unknown partition.
    """
    is_new = not question.home.path.exists()
    try:
        yield from all_findings(question, say)
    finally:
        if is_new:
            with suppress(OSError):
                question.home.path.rmdir()


def all_findings(question: DoctorQuestion, say: Callable[[str], None]) -> Iterator[Finding]:
    """All checks in order; stops if a failure makes further checks pointless."""
    installed = check_commands(is_asked_for=question.asks_for_cluster)
    here = check_here(question.home, question.tracking_uri)
    of_study = check_files(question.study, question.scale) if question.study else ()
    if commands.missing():
        yield from here
        yield from of_study
        yield installed
        if question.trains:
            yield check_training_here(look_at_engines(), say)
        return
    controller = check_controller(is_asked_for=question.asks_for_cluster)
    partitions = probed_partitions(question.partitions) if controller.level == "ok" else ()
    options = probe_options(question.sbatch)
    yield from here
    yield from of_study
    if question.trains and not question.with_job:
        yield check_training_here(look_at_engines(), say)
    yield installed
    yield controller
    if controller.level != "ok":
        return
    names = [partition.name for partition in partitions]
    try:
        yield from check_partitions(question.partitions, names)
        yield from check_preemption(names)
        yield from check_job_rules()
        yield check_accounting()
        yield from check_jobs(question.study, question.scale) if question.study else ()
        if question.with_job:
            yield from check_nodes(question, partitions, options, say)
    except commands.SlurmError as error:
        yield Finding(
            part="Slurm", check="controller", level="error", found=str(error), remedy="run `platform doctor` again"
        )


def check_nodes(
    question: DoctorQuestion, partitions: tuple[Partition, ...], options: tuple[str, ...], say: Callable[[str], None]
) -> Iterator[Finding]:
    """Probe one partition after the other, so that no probe waits for another."""
    try:
        question.home.require_writable()
    except AblationsError:
        return  # reported by another finding; a probe could not write its report
    remove_left_probes(question.home)
    probing = Probing(home=question.home, setup=question.setup, options=options, wait_s=question.wait_s, say=say)
    here = look_at_modules()
    for partition in partitions:
        yield from check_node(probing, partition, here)
        if question.trains:
            yield from check_training(probing, partition, look_at_engines())


def probed_partitions(names: tuple[str, ...]) -> tuple[Partition, ...]:
    """The partitions with these names, or the default one."""
    partitions = {partition.name: partition for partition in commands.partitions()}
    for name in names:
        if name not in partitions:
            raise AblationsError(f"unknown partition '{name}'; {did_you_mean(name, partitions, 'partitions')}")
    if names:
        return tuple(partitions[name] for name in dict.fromkeys(names))
    return tuple(partition for partition in partitions.values() if partition.is_default)


def probe_options(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Turn `account=physics` into `--account=physics`; AblationsError if the user cannot set the option."""
    if not texts:
        return ()
    valid = commands.sbatch_options() - OWN_OPTIONS
    for text in texts:
        if (name := text.partition("=")[0]) not in valid:
            if name in OWN_OPTIONS:
                raise AblationsError(f"--sbatch {text}: the platform sets '{name}' itself; omit this option")
            nearest = did_you_mean(name, sorted(valid), "options")
            raise AblationsError(f"--sbatch {text}: unknown option '{name}'; {nearest}")
    return tuple(f"--{text}" for text in texts)
