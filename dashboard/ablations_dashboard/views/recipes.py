"""Two recipes side by side, differences first, each setting with its meaning and source."""

import shlex
from contextlib import suppress
from typing import Any

import pandas as pd
import streamlit as st

from ablations.errors import AblationsError
from ablations.files.lookup import files_of
from ablations.home.home import Home, find_home
from ablations.home.started_sweep import read_sweep
from ablations.study.recipe_differences import ABSENT, recipe_settings
from ablations.study.resolve import load_resolved
from ablations.terminal.visible import made_visible
from ablations_dashboard.escape import in_code, in_markdown, with_code
from ablations_dashboard.selection.url import pick, switch
from ablations_dashboard.views.run import recipe_of
from ablations_dashboard.widgets.message import errors_on_page
from ablations_dashboard.widgets.table import offer_csv
from scalerl.recipe import Recipe, ResolvedRecipe
from scalerl.recipe.command import AnyRecipe
from scalerl.recipe.meaning import Meaning, meaning_of

FILE, VARIANT = "recipe", "variant"
"""First word of a name: `recipe scalerl`, `variant loo/loo-loss`."""
ONLY_IN_CSV = ("unit", "allowed", "of")
"""Columns for which the page has no room."""


@errors_on_page()
def show() -> None:
    """Choose two recipes; show the settings in which they differ, or all settings."""
    st.title("Recipes")
    home = find_home(None)
    words, scales = recipe_words(home), sorted(files_of("scale"))
    if imported := [name for name in home.sweep_names() if is_of_logs(home, name)]:
        st.caption(f"Imported runs have no recipe, so variants of {', '.join(map(in_code, imported))} are not listed.")
    names = list(words)
    shipped = (name for name in (f"{FILE} scalerl", f"{FILE} baseline") if name in words)
    first, second = (*shipped, *names, *names)[:2]
    left_column, right_column, scale_column = st.columns(3)
    left = pick("left", "Left", names, default=first, widget=left_column.selectbox)
    right = pick("right", "Right", names, default=second, widget=right_column.selectbox)
    scale = pick("scale", "Scale of recipe files", scales, default="laptop", widget=scale_column.selectbox)
    ours, theirs = (
        load_resolved(words[name], scale) if name.startswith(f"{FILE} ") else recipe_of(home.run(words[name]))
        for name in (left, right)
    )
    lines = setting_lines(ours, theirs)
    num = sum(line["differs"] for line in lines)
    st.markdown(in_markdown(f"{num} of {len(lines)} settings differ." if num else "They have the same settings."))
    if not switch("all", "All settings") and num:
        lines = [line for line in lines if line["differs"]]
    heads = {"left": f"{left} (left)", "right": f"{right} (right)"}
    table = pd.DataFrame({made_visible(heads.get(name, name)): cell for name, cell in line.items()} for line in lines)
    seen = table.drop(columns=["differs", *ONLY_IN_CSV]).map(with_code).rename(columns=in_markdown)
    st.table(seen, hide_index=True)
    offer_csv(table, name="recipes")
    command = f"{shlex.join(['platform', 'diff', words[left], words[right], '--scale', scale])} {home.option}"
    st.caption(f"{in_code(command)} prints what differs.")


def recipe_words(home: Home) -> dict[str, str]:
    """The word for `platform diff` of every recipe by its name on the page: recipe files, then the first run of each
    variant of the readable sweeps that were trained here, the last started sweep first."""
    found = {f"{FILE} {name}": name for name in sorted(files_of(FILE))}
    for name in home.sweep_names():
        with suppress(AblationsError):  # the page of sweeps reports the error
            plan = read_sweep(home, name).plan
            variants = () if plan.imported else plan.variants
            found |= {f"{VARIANT} {name}/{variant.name}": variant.runs[0].id for variant in variants if variant.runs}
    return found


def is_of_logs(home: Home, name: str) -> bool:
    """True if the sweep was imported from logs; False for an unreadable sweep."""
    with suppress(AblationsError):
        return read_sweep(home, name).plan.imported
    return False


def setting_lines(left: AnyRecipe, right: AnyRecipe) -> list[dict[str, Any]]:
    """A line for every setting of either recipe, differing ones first, otherwise in recipe order."""
    ours, theirs = recipe_settings(left), recipe_settings(right)
    lines = []
    for path in {**ours, **theirs}:
        meaning = _meaning(left if path in ours else right, path)
        values = ours.get(path, ABSENT), theirs.get(path, ABSENT)
        lines.append(
            {
                "differs": values[0] != values[1],
                "setting": path,
                "left": made_visible(values[0]),
                "right": made_visible(values[1]),
                "meaning": meaning.text,
                "source": meaning.source,
                "unit": meaning.unit,
                "allowed": meaning.allowed.replace("`", ""),
                "of": "recipe" if path.partition(".")[0] in Recipe.model_fields else "scale",
            }
        )
    return sorted(lines, key=lambda line: not line["differs"])


def _meaning(recipe: AnyRecipe, path: str) -> Meaning:
    """Empty for a setting of a program, which alone knows its meaning, and inside a setting that is a free mapping."""
    if isinstance(recipe, ResolvedRecipe):
        with suppress(KeyError):
            return meaning_of(recipe, path)
    return Meaning(text="", unit="", allowed="", source="")
