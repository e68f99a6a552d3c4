"""The doctor: checks whether a cluster can run sweeps, and advises if it cannot. A map of the room:

question      the scope of an examination
here          Python, packages, home folder and MLflow on this machine
cluster       checks of Slurm's own configuration
examine_node  the program that examines a node from inside a job
training      a minute of training with two generators and two ranks, in that job or here
probe_job     that job, from submission to removal, and why it may have sent no report
node          what is right on a node, compared with this machine
"""

from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ablations.errors import AblationsError
from ablations.nearest_name import did_you_mean
from ablations.pools.placed import refuse_idle_devices, threads_of_node
from ablations.slurm import commands
from ablations.slurm.commands import Partition
from ablations.slurm.doctor.cluster import SLURM_PART, check_commands, check_configuration, check_controller
from ablations.slurm.doctor.examine_node import look_at_machine
from ablations.slurm.doctor.here import check_here
from ablations.slurm.doctor.node import check_node
from ablations.slurm.doctor.probe_job import remove_left_probes
from ablations.slurm.doctor.question import DoctorQuestion
from ablations.slurm.doctor.training import check_training_here
from ablations.slurm.limits import check_on_cluster
from ablations.study.expand import expand
from ablations.study.resources import OWN_OPTIONS
from ablations.text import at_scale, counted
from scalerl.checks.examine import examine_recipes
from scalerl.checks.finding import Finding, judged
from scalerl.recipe.command import own_recipes

__all__ = ["DoctorQuestion", "examine"]
STUDY_PART = "study"


def examine(question: DoctorQuestion) -> Generator[Finding]:
    """Run all checks, yielding one finding at a time.

    Close the generator if you leave it early, so that its job is cancelled. A home folder created by the checks is
    removed again. Raises AblationsError for an unknown partition.
    """
    is_new = not question.home.path.exists()
    try:
        yield from all_findings(question)
    finally:
        if is_new:
            with suppress(OSError):
                question.home.path.rmdir()


def all_findings(question: DoctorQuestion) -> Iterator[Finding]:
    """All checks in order; stops if a failure makes further checks pointless."""
    findings = [check_commands(is_asked_for=question.asks_for_cluster)]
    has_slurm = not commands.missing()
    if has_slurm:
        findings.append(check_controller(is_asked_for=question.asks_for_cluster))
    answers = has_slurm and findings[-1].level == "ok"
    partitions = probed_partitions(question.partitions) if answers else ()
    if has_slurm:
        refuse_unfit_options(question.sbatch)
    here = look_at_machine()
    yield from check_here(question.home, question.tracking_uri, here)
    if question.study:
        yield from check_files(question.study, question.scale)
    if question.trains and not (has_slurm and question.with_job):
        yield check_training_here(here["engines"], question.say)
    yield from findings
    if not answers:
        return
    try:
        yield from check_configuration(question.partitions, [partition.name for partition in partitions])
        if question.study:
            yield from check_jobs(question.study, question.scale)
        if question.with_job:
            yield from check_nodes(question, partitions, here)
    except commands.SlurmError as error:
        yield judged(SLURM_PART, "controller", str(error), "", "run `platform doctor` again")


def check_nodes(question: DoctorQuestion, partitions: tuple[Partition, ...], here: dict[str, Any]) -> Iterator[Finding]:
    """Probe one partition after another, so that no probe waits for another."""
    try:
        question.home.require_writable()
    except AblationsError:
        return  # reported by another finding; a probe could not write its report
    remove_left_probes(question.home)
    for partition in partitions:
        yield from check_node(question, partition, here)


def probed_partitions(names: tuple[str, ...]) -> tuple[Partition, ...]:
    """The partitions with these names, or the default one."""
    partitions = {partition.name: partition for partition in commands.partitions()}
    for name in names:
        if name not in partitions:
            raise AblationsError(f"unknown partition '{name}'; {did_you_mean(name, partitions, 'partitions')}")
    if names:
        return tuple(partitions[name] for name in dict.fromkeys(names))
    return tuple(partition for partition in partitions.values() if partition.is_default)


def refuse_unfit_options(texts: tuple[str, ...]) -> None:
    """Raise AblationsError if one of `account=physics`, ... is an option that the user cannot set."""
    valid = commands.sbatch_options() - OWN_OPTIONS if texts else ()
    for text in texts:
        name = text.partition("=")[0]
        if name in OWN_OPTIONS:
            raise AblationsError(f"--sbatch {text}: the platform sets '{name}' itself; omit this option")
        if name not in valid:
            nearest = did_you_mean(name, sorted(valid), "options")
            raise AblationsError(f"--sbatch {text}: unknown option '{name}'; {nearest}")


def check_files(file: Path, scale: str | None) -> Iterator[Finding]:
    """Check that every variant can be created; yields problems found by the quick checks of `platform check`."""
    try:
        study = expand(file, scale=scale)
    except AblationsError as error:  # whose message includes advice
        yield judged(STUDY_PART, file.stem, str(error), "", "")
        return
    runs = f"{counted(len(study.runs), 'run')} of {counted(len(study.variants), 'variant')}{at_scale(study.scale)}"
    yield Finding(part=STUDY_PART, check=file.stem, level="ok", found=runs)
    recipes = own_recipes({variant.name: variant.recipe for variant in study.variants})
    for one in examine_recipes(recipes, quick=True, say=lambda _: None):
        if one.level != "ok":
            yield replace(one, part=STUDY_PART, found=f"{one.part}: {one.found}", faults=(), variants=())


def check_jobs(file: Path, scale: str | None) -> Iterator[Finding]:
    """Check that this cluster has what each run requests, and that each run uses all of it."""
    try:
        study = expand(file, scale=scale, with_files=False)
    except AblationsError:
        return  # reported by `check_files`
    resources, problem = study.resources, ""
    try:
        check_on_cluster(study.asked, threads=threads_of_node(study.reference.recipe, resources))
        refuse_idle_devices(study.asked, study.reference.recipe)
    except commands.SlurmError:
        raise  # reported by the doctor itself
    except AblationsError as error:
        problem = str(error)
    gpus = f"{counted(resources.num_gpus, 'GPU')}, " if resources.num_gpus else ""
    found = f"each run: {counted(resources.nodes, 'node')}, on each {gpus}{resources.mem_gb:g} GB"
    yield judged(STUDY_PART, "jobs", problem, found, "change `resources:` in the sweep or its scale (docs/slurm.md)")
