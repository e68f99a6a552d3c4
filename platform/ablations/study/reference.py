"""Every key of a sweep file as Markdown, generated from the models: the site's page `sweep_file`.

python -m ablations.study.reference      # the page, in the terminal
"""

from typing import Any, get_args, get_origin

from pydantic import BaseModel, Discriminator
from pydantic.fields import FieldInfo

from ablations.study.sweep import Sweep
from scalerl.recipe.reference import default_of, models_of, range_of, said, sections, table

SWEEP_FILE_PREAMBLE = """\
# Every key of a sweep file

Made by `make docs` from the models of `platform/ablations/study/`; a test fails if this page is out of date.

A sweep file is one study: a *reference* recipe, a *scale*, and the changes of its variants. To check a file without
training, run `platform check FILE`. A mistake is reported with file, line, key, and advice.

    name: batches                          # its folder in the home folder, its experiment in MLflow
    doc: Does a larger batch raise the ceiling?
    reference: scalerl                     # recipes/scalerl.yaml
    scale: laptop                          # recipes/scales/laptop.yaml
    axes:
      batch.prompts: [24, 96]
    seeds: [0, 1, 2]
    budget: {compute: 1.0}

## Changes of a variant

A variant is a set of overrides: dotted paths into [the settings](recipes.md) of recipe and scale, and their values.
`{times: x}` multiplies the reference's value, so that one file serves every scale. A mapping is shorthand for the
paths inside it; a different `type` resets its block to the defaults of the new type.

| form | variants |
|---|---|
| `axes: {batch.prompts: [24, 96]}` | one for each value, one axis at a time: `batch.prompts=24`, `batch.prompts=96` |
| `axes: {batch: {small: {batch.prompts: 24}}}` | one for each named value: `batch=small` |
| `grid: {loss.type: [cispo, dapo], batch.prompts: [24, 96]}` | one for each combination except the reference's |
| `zip: {batch: {...}, rate: {...}}` | one for each position: all first values, all second values, and so on |
| `leave_one_out: {revert_to: baseline}` | one for each axis in which the recipes differ: `loo-loss`, `loo-logits` |
| `variants: {warm: {optimiser.warmup_steps: 50}}` | as written |
| `exclude: [{loss.type: dapo, batch.prompts: 96}]` | grid and zip without these combinations |
| `search: {space: {...}, trials: 12}` | one for each trial of a sampler: `trial-000`, `trial-001`, ... |

A file may combine several forms. The reference is always trained too. Sweeps of one home folder that have the same run
train it once."""


def sweep_reference() -> str:
    parts = [SWEEP_FILE_PREAMBLE, "## Keys", said(Sweep), keys_table(Sweep)]
    for name, field in Sweep.model_fields.items():
        for model in models_in(field.annotation):
            parts += sections(name, model, keys_table, models_in)
    return "\n\n".join(parts) + "\n"


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models that a value of this type may be or hold, including those in a mapping."""
    if get_origin(annotation) is dict:
        return [*models_of(annotation.__args__[1])]
    return [*models_of(annotation)]


def keys_table(model: type[BaseModel]) -> str:
    return table(model, "key", {"default": written_default, "range": written_range})


def written_default(field: FieldInfo) -> str:
    """The default as written in YAML; "none" for an empty mapping, list or text."""
    value = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, dict | tuple | str) and not value:
        return "none"
    if isinstance(value, tuple) and not isinstance(value[0], BaseModel):
        return f"`{list(value)}`"
    return default_of(field)


def written_range(field: FieldInfo) -> str:
    """The allowed values; "mapping" if the user chooses the keys, "list" for a list."""
    origins = {get_origin(part) for part in (field.annotation, *getattr(field.annotation, "__args__", ()))}
    if dict in origins:
        return "mapping"
    if tuple in origins:
        return "list"
    if field.annotation == float | None:
        return "number"
    if any(isinstance(mark, Discriminator) for mark in field.metadata):
        return ", ".join(_kind(get_args(member)[0]) for member in get_args(field.annotation))
    return "list or mapping" if "Discriminator" in str(field.annotation) else range_of(field)


def _kind(annotation: Any) -> str:
    """How a member of a union is written."""
    if get_origin(annotation) is tuple:
        return "list"
    return {bool: "true, false", int: "number"}.get(annotation, "mapping")


if __name__ == "__main__":
    print(sweep_reference(), end="")
