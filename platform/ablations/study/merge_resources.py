"""The `resources:` blocks of a sweep and its scale, merged, with the place of every key."""

from collections.abc import Mapping
from dataclasses import dataclass

from ablations.errors import Place
from ablations.files.source import Source
from ablations.study.resources import Resources


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Resources, with the place of each.

    >>> str(asked.place("sbatch.nice"))
    'sweeps/loo.yaml:9: resources.sbatch.nice'
    """

    resources: Resources
    places: Mapping[str, Place]
    """Places by key inside the block; `""` is the block itself."""
    root: Place
    """The file."""

    def place(self, key: str) -> Place:
        """The place of a key; for a default, the place where it could be written."""
        block = self.places.get("", self.root.inside("resources"))
        return self.places.get(key, block.inside(key))

    def over(self, other: "Asked") -> "Asked":
        """Every key of this block, and the other block's keys that this one does not write."""
        written = {
            name: getattr(block, name)
            for block in (other.resources, self.resources)
            for name in block.model_fields_set - {"sbatch"}
        }
        options = other.resources.sbatch | self.resources.sbatch
        resources = Resources(**written, sbatch={name: value for name, value in options.items() if value is not False})
        return Asked(resources=resources, places={**other.places, **self.places}, root=self.root)


def asked_in(source: Source, resources: Resources) -> Asked:
    """The `resources:` block of a parsed file; `resources` holds its values."""
    places = {}
    for path, place in source.places.items():
        if path[:1] == ("resources",):
            key = ".".join(map(str, path[1:]))
            places[key.replace("_", "-") if key.startswith("sbatch.") else key] = place
    return Asked(resources=resources, places=places, root=source.root)
