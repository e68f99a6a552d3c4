"""The functions on the page about functions of one's own pass the checks that a user's function must pass."""

import ast
import re

import pytest
import yaml
from places import REPOSITORY
from trainer.own_functions import written

from scalerl.checks.own_inputs import OWN_KINDS
from scalerl.checks.own_trial import tried
from scalerl.recipe import CustomTask, Own, Recipe
from scalerl.recipe.episodes import Episodes

PAGE = (REPOSITORY / "docs/own.md").read_text()
FILES = dict(re.findall(r"```python\n# (my_\w+(?:/\w+)?\.py)\n(.*?)```", PAGE, re.DOTALL))
VARIANTS = [
    (name, block)
    for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    for overrides in [*yaml.safe_load(text)["variants"].values(), yaml.safe_load(text).get("base", {})]
    for name, value in overrides.items()
    for block in (value if isinstance(value, list) else [value])
    if isinstance(block, dict)
]


@pytest.mark.parametrize(("setting", "block"), VARIANTS, ids=[name for name, _ in VARIANTS])
def test_an_example_passes_its_checks(setting, block, tmp_path):
    for file, text in FILES.items():
        written(tmp_path, text, head="", file=file)
    written_as = {**block, "folder": str(tmp_path)}
    if block["type"] == "episodes":
        environment = {**block["environment"], "folder": str(tmp_path)}
        answer = tried("environment", Episodes.model_validate({**block, "environment": environment}))
        assert answer["found"].startswith("plays "), answer
        return
    if setting == "tasks":
        own = CustomTask.model_validate(written_as)
    else:
        own = getattr(Recipe.model_validate({setting: written_as}), setting)
    assert isinstance(own, Own)
    answer = tried(setting, own)
    assert not answer["remedy"], answer


def test_each_kind_of_function_has_an_example_and_each_example_ten_lines_at_most():
    assert {setting for setting, _ in VARIANTS} == {*OWN_KINDS, "curriculum", "tasks"}
    written_down = [node for text in FILES.values() for node in ast.parse(text).body]
    functions = [node for node in written_down if isinstance(node, ast.FunctionDef)]
    classes = [node for node in written_down if isinstance(node, ast.ClassDef)]
    assert len(functions) + len(classes) == len(VARIANTS) + 1  # a task has a judge, too
    assert all((one.end_lineno or 0) - one.lineno < 10 for one in functions)
    assert [(one.end_lineno or 0) - one.lineno < 20 for one in classes] == [True]
