"""The command that writes a sweep file to start from: new."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ablations.cli.options import files_begun
from ablations.cli.output import console
from ablations.errors import AblationsError
from ablations.files.lookup import FileKind, files_of
from ablations.nearest_name import did_you_mean
from ablations.study.names import nameable
from ablations.terminal.own_command import own_command
from scalerl.durable import naming

AGENT_FILES = Path(__file__).parent / "agent"
"""Files of `--agent`."""
STUDY = """\
# A study: one reference, and variants that each differ from it in what is written here.
# All keys: python -m ablations.study.reference. All settings: python -m scalerl.recipe.reference.
# To see the runs without training them: platform sweep {file} --dry-run
name: {name}
doc: Do DAPO's loss or a token average change what ScaleRL reaches?   # the question above every result
reference: {recipe}                # `platform list --recipes`
scale: {scale}                     # model, tasks and cluster: `platform list --scales`
variants:
  dapo: {{loss.type: dapo}}
  token-average: {{aggregation: token}}
  both: {{loss.type: dapo, aggregation: token}}
# Instead of `variants`, every combination:
# grid: {{loss.type: [cispo, dapo], batch.prompts: [16, 32]}}
# or ScaleRL's choices, one at a time back at the baseline's:
# leave_one_out: {{revert_to: baseline, axes: {{loss: null, aggregation: null, off_policy: null}}}}
seeds: [0, 1, 2]                       # the spread between seeds is what differences are judged by
budget: {{compute: 1.0}}                 # per run, in the scale's unit; a larger one extends the same runs
"""


def new(
    file: Annotated[Path, typer.Argument(help="File to write, for example sweeps/mine.yaml; with --agent a folder.")],
    recipe: Annotated[
        str, typer.Option(help="Recipe of the reference.", autocompletion=files_begun("recipe"))
    ] = "scalerl",
    scale: Annotated[str, typer.Option(help="Scale of the runs.", autocompletion=files_begun("scale"))] = "smoke",
    agent: Annotated[
        bool, typer.Option("--agent", help="Write a folder for an agent: SKILL.md, and a study whose recipe it edits.")
    ] = False,
) -> None:
    """Write a commented sweep file to start from."""
    if agent:
        write_agent_folder(file)
        return
    if file.suffix not in (".yaml", ".yml"):
        raise AblationsError(f"{file}: a sweep file ends in .yaml; write {file.with_suffix('.yaml')}")
    try:
        nameable(file.stem)
    except ValueError as error:
        raise AblationsError(f"{file}: the study takes its name from the file, but {error}") from None
    if file.exists():
        raise AblationsError(f"{file} exists; name another file, or delete it")
    named: dict[FileKind, str] = {"recipe": recipe, "scale": scale}
    for kind, name in named.items():
        if name not in files_of(kind):
            raise AblationsError(f"unknown {kind} '{name}'; {did_you_mean(name, [*files_of(kind)], f'{kind}s')}")
    file.parent.mkdir(parents=True, exist_ok=True)
    with naming(file):
        file.write_text(STUDY.format(file=file, name=file.stem, recipe=recipe, scale=scale))
    shown = f"{own_command()} sweep {shlex.quote(str(file))} --dry-run"
    said = f"wrote {file}; to see its runs and their cost, run `{shown}`"
    console().print(said, markup=False, highlight=False, soft_wrap=True)


def write_agent_folder(folder: Path) -> None:
    """Write what an agent needs for a campaign of its own; AblationsError if a file of it exists."""
    texts = {one.name.replace(".txt", ".py"): one.read_text() for one in sorted(AGENT_FILES.iterdir())}
    if found := [name for name in texts if (folder / name).exists()]:
        raise AblationsError(f"{folder / found[0]} exists; name another folder, or delete it")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with naming(folder / name):
            (folder / name).write_text(text)
    said = f"wrote {', '.join(texts)} into {folder}; SKILL.md says how an agent goes on"
    console().print(said, markup=False, highlight=False, soft_wrap=True)
