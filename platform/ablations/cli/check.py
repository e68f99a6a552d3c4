"""The command that says before training what can be known: check. Its quick part begins every sweep."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ablations.cli.options import FAILED, JsonOption, SetOption, console, print_json
from ablations.errors import AblationsError
from ablations.terminal.progress_bar import SILENT_S
from ablations.text import counted

if TYPE_CHECKING:
    from scalerl.checks.examine import Examined
    from scalerl.checks.finding import Checked, Fault
    from scalerl.recipe import ResolvedRecipe

DEFAULT_SCALE = "laptop"
CHECK_STYLES = {"ok": "green", "warning": "yellow", "refused": "red"}
WIDTH, INDENT = 120, 1
MOST_FAULTS = 10
"""Rows that are printed of one finding; `--json` has them all."""
MOST_VARIANTS_NAMED = 3
SANDBOX = "sandbox"
"""The part of a finding that is about this machine and not about what is trained."""


def check(
    recipe: Annotated[str, typer.Argument(help="Recipe, by name or path; or a sweep file, for all its variants.")],
    scale: Annotated[
        str | None, typer.Option(help=f"Scale, by name or path; by default {DEFAULT_SCALE}, or the sweep file's.")
    ] = None,
    set_: SetOption = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only what needs no model, as `platform sweep` does.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check data, answers, tokenizer, lengths, sandbox, memory and one step before training. Exit code 1 if a run would
    be refused."""
    from scalerl.checks.examine import examine_recipes

    recipes = recipes_of(recipe, scale, set_ or ())
    out, found = console(stderr=as_json), []
    with saying_after(SILENT_S, out) as say:
        readings = readings_of(recipe, scale, set_ or ()) if is_sweep(recipe) else ()
        for one in chain(examine_recipes(recipes, quick=quick, say=say), readings):
            if not as_json:
                show_examined(out, one, after=found[-1] if found else None, num_recipes=len(recipes))
            found.append(one)
    number = count_levels(found)
    if as_json:
        print_json({"refused": number["refused"], "warnings": number["warning"], "checks": list(map(as_plain, found))})
    else:
        text = f"{number['ok']} ok, {counted(number['warning'], 'warning')}, {number['refused']} refused"
        style = CHECK_STYLES[next((level for level in ("refused", "warning") if number[level]), "ok")]
        out.print(f"\n[{style}]{text}[/{style}]", highlight=False)
    if number["refused"]:
        raise typer.Exit(FAILED)


def recipes_of(recipe: str, scale: str | None, sets: Iterable[str]) -> "dict[str, ResolvedRecipe]":
    """The recipe, or every variant if it is a sweep file, by name."""
    from ablations.study.resolve import load_resolved

    if is_sweep(recipe):
        from ablations.study.expand import expand

        return {variant.name: variant.recipe for variant in expand(Path(recipe), scale=scale, sets=sets).variants}
    return {Path(recipe).stem: load_resolved(recipe, scale or DEFAULT_SCALE, sets)}


def readings_of(file: str, scale: str | None, sets: Iterable[str]) -> "Iterator[Examined]":
    """Whether runs of a sweep file will have enough readings to be fitted, and move until their budget is spent."""
    from ablations.study.expand import expand
    from ablations.study.fittable import too_few_readings
    from scalerl.checks.examine import Examined
    from scalerl.checks.finding import Checked

    study = expand(Path(file), scale=scale, sets=sets)
    names = tuple(variant.name for variant in study.variants)
    if problem := too_few_readings(study):
        found, right = f"{problem.place}: {problem.found}", problem.right
        refused = Checked(part="evaluation", name="readings", level="refused", found=found, remedy=right)
        yield Examined(names=names, checked=refused)
    for variant in study.variants:
        try:
            variant.recipe.check_budget(study.sweep.budget.compute)
        except ValueError as error:
            found, _, right = str(error).partition("; ")
            refused = Checked(part="evaluation", name="learning rate", level="refused", found=found, remedy=right)
            yield Examined(names=(variant.name,), checked=refused)


def is_sweep(file: str) -> bool:
    """Whether a path names a sweep file: it says which recipe is its reference."""
    from ablations.files.source import read_yaml

    path = Path(file)
    return file.endswith((".yaml", ".yml")) and path.is_file() and "reference" in read_yaml(path).data


def refuse_early(recipes: "Mapping[str, ResolvedRecipe]", out: Console, *, trains_here: bool = True) -> None:
    """The quick checks at the start of a sweep or run: prints warnings, raises AblationsError with what is refused.

    Runs that train on another machine may find a sandbox there, so a missing one here is only a warning.
    """
    from scalerl.checks.examine import examine_recipes

    with saying_after(SILENT_S, out) as say:
        found = [one for one in examine_recipes(recipes, quick=True, say=say) if one.checked.level != "ok"]
    refusing = [one for one in found if one.checked.level == "refused" and (trains_here or one.checked.part != SANDBOX)]
    warned = [one for one in found if one not in refusing]
    refused = [line for one in refusing for line in lines_of(one, len(recipes))]
    for one in warned:
        text = "\n  ".join(lines_of(one, len(recipes), most_faults=0))
        out.print(f"warning: {text}", markup=False, highlight=False, soft_wrap=True, style=CHECK_STYLES["warning"])
    if warned:
        out.print("`platform check` lists every row concerned.", highlight=False, markup=False)
    if refused:
        raise AblationsError("nothing was started: " + "\n  ".join(refused))


def lines_of(one: "Examined", num_recipes: int, most_faults: int = MOST_FAULTS) -> list[str]:
    """A finding as lines of plain text."""
    checked = one.checked
    lines = [f"{checked.part}, {checked.name}: {checked.found}"]
    for faults, more in by_kind(checked, most_faults):
        lines += [f"  {fault.where}: {fault_text(fault)}" for fault in faults]
        lines += [f"  {more}"] if more else []
    if concerned := variants_text(one, num_recipes):
        lines.append(f"  {concerned}")
    return [*lines, f"  -> {checked.remedy}"] if checked.remedy else lines


def show_examined(out: Console, one: "Examined", after: "Examined | None", num_recipes: int) -> None:
    """One finding, under the title of its part."""
    checked = one.checked
    if after is None or after.checked.part != checked.part:
        out.print(f"{'' if after is None else chr(10)}[bold]{checked.part}[/bold]")
    style, table = CHECK_STYLES[checked.level], Table.grid(padding=(0, 1))
    for width in (INDENT, len("warning"), 16):
        table.add_column(width=width)
    table.add_column(overflow="fold")
    # Texts, not markup: that would read `:100:` of `train.jsonl:100:` as the name of an emoji.
    table.add_row("", Text(checked.level, style), Text(checked.name), Text(checked.found))
    if concerned := variants_text(one, num_recipes):
        table.add_row("", "", "", Text(concerned, "dim"))
    for faults, more in by_kind(checked, MOST_FAULTS):
        for fault in faults:
            table.add_row("", "", "", Text.assemble((f"{fault.where}:", "dim"), " ", fault_text(fault)))
        if more:
            table.add_row("", "", "", Text(f"{more}; --json lists all", "dim"))
    if checked.remedy:
        table.add_row("", "", "", Text(f"-> {checked.remedy}", style))
    out.print(table, width=min(out.width, WIDTH), highlight=False)


def by_kind(checked: "Checked", most: int) -> "Iterator[tuple[tuple[Fault, ...], str]]":
    """The first faults of each kind, so that many of one do not hide another, and how many more there are."""
    for kind in dict.fromkeys(fault.kind for fault in checked.faults):
        of_kind = [fault for fault in checked.faults if fault.kind == kind]
        more = len(of_kind) - most
        yield tuple(of_kind[:most]), f"and {more:,} more {kind}".rstrip() if most and more > 0 else ""


def fault_text(fault: "Fault") -> str:
    """`duplicate: the same problem as train.jsonl:3`."""
    return f"{fault.kind}: {fault.what}" if fault.kind else fault.what


def variants_text(one: "Examined", num_recipes: int) -> str:
    """`variants: loo-loss, loo-logits and 3 more`; empty if a finding is about all recipes."""
    if len(one.names) == num_recipes:
        return ""
    more = len(one.names) - MOST_VARIANTS_NAMED
    return f"variants: {', '.join(one.names[:MOST_VARIANTS_NAMED])}{f' and {more} more' if more > 0 else ''}"


def as_plain(one: "Examined") -> dict[str, object]:
    """A finding for scripts."""
    return {"variants": list(one.names), **asdict(one.checked)}


def count_levels(found: "Iterable[Examined]") -> dict[str, int]:
    """How many findings have each level."""
    levels = [one.checked.level for one in found]
    return {level: levels.count(level) for level in CHECK_STYLES}


@contextmanager
def saying_after(silent_s: float, out: Console) -> Iterator[Callable[[str], None]]:
    """Prints what is being done once the block has taken `silent_s` seconds, and nothing in a block that is quicker."""
    began, lock = time.monotonic(), threading.Lock()
    doing: list[str] = []

    def tell() -> None:
        with lock:
            for text in doing:
                out.print(f"checking: {text}", markup=False, highlight=False, soft_wrap=True)
            doing.clear()

    def say(text: str) -> None:
        doing[:] = [text] if text else []
        if time.monotonic() - began >= silent_s:
            tell()

    timer = threading.Timer(silent_s, tell)
    timer.daemon = True
    timer.start()
    try:
        yield say
    finally:
        timer.cancel()
