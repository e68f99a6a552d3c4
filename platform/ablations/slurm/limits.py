"""Checks that this cluster has what a job requests, before anything is submitted.

Slurm itself accepts a job that no node can ever run, and leaves it waiting for ever.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from ablations.errors import AblationsError, FileError, FileProblem
from ablations.nearest_name import did_you_mean
from ablations.slurm import commands
from ablations.slurm.commands import Partition
from ablations.study.resources import OWN_OPTIONS, SLURM_KEYS, UNFIT_OPTIONS, Asked
from ablations.text import MINUTE_S, counted, duration_text

UNFIT_IN_PATHS = {
    "%": "Slurm expands this character in the names of log files",
    "\\": "in the names of log files, Slurm stops expanding patterns at this character",
    ":": "this character separates the folders of PYTHONPATH, through which jobs find their code",
    "\n": "Slurm reads a batch script line by line",
}
LIFTS_TIME_LIMIT = "PartitionTimeLimit"
"""Flag of a quality of service whose jobs may exceed the partition's time limit."""


def check_on_cluster(asked: Asked, *, threads: int) -> str:
    """The partition that jobs go to; raises FileError with everything that this cluster lacks.

    Calls sinfo once. Calls sbatch once if the block has sbatch options, and once more per option not in its help.
    """
    qos = asked.resources.qos
    lifts_time_limit = qos is not None and LIFTS_TIME_LIMIT in commands.qos_flags(qos)
    partitions = commands.partitions()
    problems = option_problems(asked, _known_options(asked.resources.sbatch)) if asked.resources.sbatch else []
    problems += limit_problems(asked, partitions, threads=threads, lifts_time_limit=lifts_time_limit)
    if problems:
        raise FileError(*problems)
    return ",".join(partition.name for partition in _chosen(asked, partitions))


def check_home_path(home: Path) -> None:
    """Raise AblationsError if the path of the home folder has characters that break jobs."""
    for character, why in UNFIT_IN_PATHS.items():
        if character in str(home):
            raise AblationsError(
                f"home folder {str(home)!r}: jobs cannot use a path that contains {character!r} ({why}); choose "
                "another folder with --home or ABLATIONS_HOME"
            )


def _known_options(names: Iterable[str]) -> frozenset[str]:
    listed = commands.sbatch_options()
    # sbatch accepts abbreviated names, which could hide an option that has its own key.
    others = (name for name in names if not any(one.startswith(name) for one in listed))
    return listed.union(name for name in others if commands.takes_option(name))


def option_problems(asked: Asked, known: Collection[str]) -> list[FileProblem]:
    """One problem per option that sbatch does not know."""
    free = sorted(set(known) - set(SLURM_KEYS) - OWN_OPTIONS - UNFIT_OPTIONS)
    return [
        FileProblem(
            place=asked.place(f"sbatch.{option}"),
            found=f"unknown option '{option}'",
            right=did_you_mean(option, free, "options of this cluster's sbatch", most=None),
        )
        for option in asked.resources.sbatch
        if option not in known
    ]


def limit_problems(
    asked: Asked, partitions: Sequence[Partition], *, threads: int, lifts_time_limit: bool = False
) -> list[FileProblem]:
    """One problem per number that exceeds the partition's.

    `threads` are the default processors per run; with `lifts_time_limit` the quality of service allows more time than
    the partition.
    """
    names = [partition.name for partition in partitions]
    for wanted in (asked.resources.partition or "").split(","):
        if wanted and wanted not in names:
            right = did_you_mean(wanted, names, "partitions")
            return [FileProblem(place=asked.place("partition"), found=f"unknown partition '{wanted}'", right=right)]
    chosen = _chosen(asked, partitions)
    if not chosen:
        right = f"choose one of: {', '.join(names)}"
        return [FileProblem(place=asked.place("partition"), found="this cluster has no default partition", right=right)]
    of_time = [] if lifts_time_limit else _time_problems(asked, partitions, chosen)
    return [*of_time, *_size_problems(asked, partitions, chosen, threads)]


def _chosen(asked: Asked, partitions: Sequence[Partition]) -> list[Partition]:
    if asked.resources.partition is None:
        return [partition for partition in partitions if partition.is_default]
    names = asked.resources.partition.split(",")
    return [partition for partition in partitions if partition.name in names]


def _time_problems(asked: Asked, partitions: Sequence[Partition], chosen: Sequence[Partition]) -> list[FileProblem]:
    most, limit = max(partition.time_limit_min for partition in chosen), asked.resources.limit_min
    if limit <= most:
        return []
    enough = _elsewhere(partition.name for partition in partitions if partition.time_limit_min >= limit)
    found = f"found {duration_text(MINUTE_S * limit)}{_by_default(asked, 'time_min')}, "
    found += f"{_named(chosen)} allows {duration_text(MINUTE_S * most)}"
    right = f"write {most:g} or less: a run that needs longer saves a checkpoint, is requeued and resumes{enough}"
    return [FileProblem(place=asked.place("time_min"), found=found, right=right)]


def _size_problems(
    asked: Asked, partitions: Sequence[Partition], chosen: Sequence[Partition], threads: int
) -> list[FileProblem]:
    resources, of_node = asked.resources, f"the largest node of {_named(chosen)}"
    cpus, origin = (resources.cpus, "") if resources.cpus else (threads, ", the scale's threads")
    memory = f"{resources.mem_gb:g} GB per node{_by_default(asked, 'mem_gb')}"
    wanted = (
        ("nodes", "nodes", resources.nodes, counted(resources.nodes, "node"), _named(chosen)),
        ("gpus", "gpus", resources.num_gpus, f"{counted(resources.num_gpus, 'GPU')} per node", of_node),
        ("cpus", "cpus", cpus, f"{counted(cpus, 'processor')} per node{origin}", of_node),
        ("mem_gb", "memory_mb", resources.mem_mb, memory, of_node),
    )
    problems = []
    for key, attribute, number, found, owner in wanted:
        most = max(getattr(partition, attribute) for partition in chosen)
        if number > most:
            has = f"{math.floor(most / 1024 * 10) / 10:g} GB" if key == "mem_gb" else str(most)
            enough = _elsewhere(partition.name for partition in partitions if getattr(partition, attribute) >= number)
            problem = FileProblem(place=asked.place(key), found=f"found {found}", right=f"{owner} has {has}{enough}")
            problems.append(problem)
    return problems


def _named(chosen: Sequence[Partition]) -> str:
    names = ",".join(partition.name for partition in chosen)
    return f"partition {names}" if len(chosen) == 1 else f"partitions {names}"


def _by_default(asked: Asked, key: str) -> str:
    return "" if key in asked.resources.model_fields_set else " by default"


def _elsewhere(names: Iterable[str]) -> str:
    listed = ", ".join(names)
    return f"; partitions with enough: {listed}" if listed else ""
