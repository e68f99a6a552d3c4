"""The sweeps, variants and runs that the names on a command line refer to."""

import shlex
from pathlib import Path

from ablations.errors import AblationsError
from ablations.fit.table_file import is_curve_file
from ablations.home.home import Home, find_home
from ablations.home.labels import run_of_name
from ablations.home.plan import Plan, PlannedVariant
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.nearest_name import did_you_mean
from ablations.terminal.short_names import meant

YAML = (".yaml", ".yml")
FILES_AND_SWEEPS = "YAML files and sweeps here"


def known_variant(name: str, plan: Plan, what: str = "variant") -> PlannedVariant:
    """The variant of this name, which may be shortened in a grid; AblationsError names the variants."""
    variants = {variant.name: variant for variant in plan.variants}
    if (found := meant(name, variants)) not in variants:
        raise AblationsError(
            f"unknown {what} '{found}' of sweep '{plan.sweep}'; {did_you_mean(found, variants, 'variants')}"
        )
    return variants[found]


def find_sweep(home_option: Path | None, name: str | None) -> StartedSweep:
    """The started sweep given by `--home` and a name, a sweep file, a table of curves, or None for the last one."""
    home = find_home(home_option)
    if name is not None and is_curve_file(name):
        from ablations.imports.orders import Foreign  # NumPy takes a while to load

        return Foreign(names=(name,)).opened_one(home)
    return read_sweep(home, find_sweep_name(home, name))


def find_sweeps(home_option: Path | None, name: str | None) -> list[StartedSweep]:
    """The sweep as in `find_sweep`; for a file, table or study with several scales, one sweep for each started
    scale."""
    home = find_home(home_option)
    if name is not None and is_curve_file(name):
        from ablations.imports.orders import Foreign

        return Foreign(names=(name,)).opened(home)
    known = home.sweep_names()
    scales = names_of_file(name or "") or [one for one in reversed(known) if one.startswith(f"{name}@")]
    if name not in known and (started := [one for one in scales if one in known]):
        return [read_sweep(home, one) for one in started]
    return [find_sweep(home_option, name)]


def find_sweep_name(home: Home, name: str | None) -> str:
    """The name of the sweep given by a name, a sweep file, or None; AblationsError lists the sweeps if unknown."""
    known = home.sweep_names()
    if name is not None and name not in known and _is_sweep_file(name):
        from ablations.study.sweep import load_sweep  # loads the recipes, which a name does not need

        file, names = name, names_of_file(name)
        if any(one in known for one in names):
            raise AblationsError(
                f"{file} has one sweep per scale; name one: {', '.join(names)}; to compare the scales, run "
                f"`platform ladder {shlex.quote(file)}{home.end_of_command}`"
            )
        name = load_sweep(Path(file)).name
        if name not in known:
            command = f"platform sweep {shlex.quote(file)}{home.end_of_command}"
            raise AblationsError(f"{file} has not been started in {home.path}; to start it, run `{command}`")
    if name is not None and name not in known and name.endswith(YAML):
        raise AblationsError(
            f"no file {name} in {Path.cwd()}; {did_you_mean(name, _files_and_sweeps(home), FILES_AND_SWEEPS)}"
        )
    if name and name not in home.sweep_names() and Path(name).exists() and not _is_sweep_file(name):
        raise AblationsError(
            f"{name} is a file or folder, not a sweep; `platform import` turns folders written by ablations.start "
            "into a sweep, and logs with --log TRAINER --gpus N or with --score and --compute"
        )
    return home.find_sweep(name)


def find_run(home: Home, run: str, sweep: str | None, seed: int | None) -> str:
    """Find a run by its id, its first digits, its name, or a variant's name."""
    matches = [run_id for run_id in home.run_ids() if run_id.startswith(run)]
    if len(matches) == 1:
        return matches[0]
    plan = read_sweep(home, find_sweep_name(home, sweep)).plan
    if named := run_of_name(plan.variants, run):
        return named.id
    variant = known_variant(run, plan, "run or variant")
    if found := next((one.id for one in variant.runs if seed in (None, one.seed)), None):
        return found
    seeds = ", ".join(str(one.seed) for one in variant.runs)
    raise AblationsError(f"variant '{variant.name}' has no seed {seed}; seeds are: {seeds}")


def names_of_file(name: str) -> list[str]:
    """The sweeps of a sweep file with `scales`; empty for anything else."""
    if not _is_sweep_file(name):
        return []
    from ablations.study.family import scale_stem
    from ablations.study.sweep import load_sweep

    sweep = load_sweep(Path(name))
    return [f"{sweep.name}@{scale_stem(scale)}" for scale in sweep.named_scales]


def scales_of(file: Path, scale: str | None) -> tuple[str | None, ...]:
    """The scales at which to run a sweep file: the one in `--scale`, else each of `scales`, else its own (None).

    Raises FileError for a mistake in any of them, so that none trains before it is found.
    """
    from ablations.study.expand import expand
    from ablations.study.sweep import load_sweep

    if scale is not None:
        return (scale,)
    names = load_sweep(file).named_scales
    for name in names:
        expand(file, scale=name, with_files=False)
    return names or (None,)


def _is_sweep_file(name: str) -> bool:
    return name.endswith(YAML) and Path(name).exists()


def _files_and_sweeps(home: Home) -> list[str]:
    """The YAML files beside a missing one, and the sweeps."""
    return [*sorted(path.name for path in Path().iterdir() if path.name.endswith(YAML)), *home.sweep_names()]
