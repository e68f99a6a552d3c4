"""Checks whether one study could be trained: its files, its recipes without a model, and the requests of its jobs."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ablations.errors import AblationsError
from ablations.pools.placed import refuse_idle_devices, threads_of_node
from ablations.slurm.commands import SlurmError
from ablations.slurm.limits import check_on_cluster
from ablations.study.expand import Study, expand
from ablations.text import at_scale, counted
from scalerl.checks.examine import examine_recipes
from scalerl.checks.finding import Finding, judged
from scalerl.recipe.command import own_recipes

STUDY_PART = "study"


def check_files(file: Path, scale: str | None) -> Iterator[Finding]:
    """Check that every variant can be created; yields problems found by the quick checks of `platform check`."""
    check = file.stem
    try:
        study = expand(file, scale=scale)
    except AblationsError as error:  # whose message includes advice
        yield Finding(part=STUDY_PART, check=check, level="error", found=str(error))
        return
    runs = f"{counted(len(study.runs), 'run')} of {counted(len(study.variants), 'variant')}{at_scale(study.scale)}"
    yield Finding(part=STUDY_PART, check=check, level="ok", found=runs)
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
    remedy = "change `resources:` in the sweep or its scale (docs/slurm.md)"
    yield judged(STUDY_PART, "jobs", _refused(study), _asks(study), remedy)


def _refused(study: Study) -> str:
    try:
        check_on_cluster(study.asked, threads=threads_of_node(study.reference.recipe, study.resources))
        refuse_idle_devices(study.asked, study.reference.recipe)
    except SlurmError:  # reported by the doctor itself
        raise
    except AblationsError as error:
        return str(error)
    return ""


def _asks(study: Study) -> str:
    resources = study.resources
    gpus = f"{counted(resources.num_gpus, 'GPU')}, " if resources.num_gpus else ""
    return f"each run: {counted(resources.nodes, 'node')}, on each {gpus}{resources.mem_gb:g} GB"
