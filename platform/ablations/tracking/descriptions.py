"""The description of a variant and of its runs in MLflow: tags, params, data sets, and names that MLflow accepts.

>>> description_of(plan, loo_loss, code_versions=["4f1c2d"], recipe={}).tags
{'kind': 'variant', 'sweep': 'loo', 'scale': 'laptop', 'reference': 'scalerl', 'variant': 'loo-loss', 'axis': 'loss',
 'changes': 'loss.type = dapo', 'code': '4f1c2d', 'seed': '0, 1'}
"""

import hashlib
import html
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from ablations.home.notes import Notes
from ablations.home.plan import Plan, PlannedRun, PlannedVariant
from ablations.terminal.visible import made_visible
from ablations.text import cut_message

OF_A_VARIANT, OF_A_SEED = "variant", "seed"
"""Values of the tag `kind`."""
MAX_NAME = 250
"""Limit of MLflow on the characters in the name of a metric or param."""
MAX_DATASET_NAME = 500
MAX_TAG = 5000
"""Limit of MLflow's tables on the characters of a tag."""
TRAINED_ON, MEASURED_ON = "training", "evaluation"
NOTES_TAG, TAGS_TAG = "notes", "tags"
MARKDOWN = re.compile(r"[\\`*_{}\[\]()#!|~]")
"""Characters that MLflow's page would read as Markdown, which could load an image from anywhere."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """Tags and params of a run in MLflow: `Description(tags={"variant": "loo-loss"}, params={"loss.type": "dapo"})`."""

    tags: dict[str, str]
    params: dict[str, str]

    @property
    def name(self) -> str:
        return self.tags["variant"]

    @property
    def fingerprint(self) -> str:
        return fingerprint(asdict(self))


@dataclass(frozen=True, kw_only=True)
class DescribedDataset:
    """A task on which a run is trained or evaluated: its name, its settings as JSON, and its purpose."""

    name: str
    source: str
    context: str

    @property
    def digest(self) -> str:
        """12 hex digits of the settings: two runs have the same data if their digests are equal."""
        return fingerprint({"source": self.source})


def description_of(
    plan: Plan,
    variant: PlannedVariant,
    code_versions: Iterable[str],
    recipe: Mapping[str, Any],
    run: PlannedRun | None = None,
) -> Description:
    """The description of a variant's run in MLflow, which groups its seeds, or of the run with one seed's curves.

    `recipe` is the variant's resolved one.
    """
    settings = varied_settings(plan, recipe) | flatten(variant.overrides)
    tags = {
        "kind": OF_A_SEED if run else OF_A_VARIANT,
        "seed": ", ".join(str(one.seed) for one in ([run] if run else variant.runs)),
        "sweep": plan.sweep,
        "scale": plan.scale,
        "reference": plan.reference,
        "variant": variant.name,
        "axis": axis_of(variant),
        "changes": variant.changes or "nothing",
        "code": ", ".join(sorted(set(code_versions))) or "not said",
    }
    return Description(
        tags={name: made_visible(value) for name, value in tags.items()},
        params={metric_name(path): made_visible(str(value)) for path, value in settings.items()},
    )


def tags_of_notes(notes: Notes) -> dict[str, str]:
    """Notes and tags of people as two tags in MLflow; a tag without content is left out."""
    said = {NOTES_TAG: cut_message(made_visible(notes.text), MAX_TAG), TAGS_TAG: ", ".join(notes.tags)[:MAX_TAG]}
    return {name: text for name, text in said.items() if text}


def varied_settings(plan: Plan, recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The values in a resolved recipe of all settings that any variant of the study changes, if the recipe has them."""
    of_recipe = flatten(recipe)
    paths = dict.fromkeys(path for variant in plan.variants for path in flatten(variant.overrides))
    return {path: of_recipe[path] for path in paths if path in of_recipe}


def axis_of(variant: PlannedVariant) -> str:
    """The settings that a variant varies: `loss`, `batch.prompts, curriculum`, or `none` for the reference."""
    return ", ".join(sorted({path.removesuffix(".type") for path in variant.overrides})) or "none"


def datasets_of(recipe: Mapping[str, Any]) -> list[DescribedDataset]:
    """The tasks of a resolved recipe and of its downstream evaluations."""
    downstream = recipe.get("evaluation", {}).get("downstream", [])
    told = [(task, TRAINED_ON) for task in recipe.get("tasks", [])] + [(task, MEASURED_ON) for task in downstream]
    return [
        DescribedDataset(
            name=made_visible(str(task.get("name") or task.get("type") or "task"))[:MAX_DATASET_NAME],
            source=json.dumps(task, sort_keys=True),
            context=context,
        )
        for task, context in told
    ]


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings under dotted names: {"loss": {"type": "dapo"}} gives {"loss.type": "dapo"}."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = json.dumps(value) if isinstance(value, list) else value
    return flat


@lru_cache(maxsize=4096)
def metric_name(name: str) -> str:
    """A name that MLflow accepts for a metric or param: rejected characters become `_`, and the name is cut to 250.

    Different names stay different: a changed name ends with eight hex digits of the original.
    """
    parts = (re.sub(r"[^\w.\- :]", "_", part, flags=re.ASCII) for part in name.split("/"))
    accepted = "/".join("_" if part in ("", ".", "..") else part for part in parts)
    if accepted == name and len(name) <= MAX_NAME:
        return name
    return f"{accepted[: MAX_NAME - 9]}.{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def as_markdown(text: str) -> str:
    """Text escaped so that MLflow's page shows it literally, without links, images or HTML."""
    return MARKDOWN.sub(r"\\\g<0>", html.escape(made_visible(text), quote=False))


def fingerprint(content: Mapping[str, Any]) -> str:
    """12 hex digits that change with the content."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
