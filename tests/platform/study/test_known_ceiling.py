"""The ceiling that a generated task knows: counted by hand, from prompts whose right answer is the text itself."""

from pathlib import Path

import pytest

from ablations.running.make_plan import make_plan
from ablations.study.expand import expand
from scalerl.tasks import all_tasks
from scalerl.tokens import make_tokenizer

FILE = """\
name: study
reference: scalerl
scale: smoke
variants: {more: {batch.prompts: 32}%s}
seeds: [0]
budget: {compute: 1}
%s
"""


def study(tmp_path: Path, variants="", more="", scale=None):
    path = tmp_path / "study.yaml"
    path.write_text(FILE % (variants, more))
    return expand(path, scale=scale)


def test_the_share_of_answers_that_fit_limits_the_pass_rate(tmp_path):
    found = study(tmp_path)
    recipe = found.reference.recipe
    task = all_tasks(recipe.tasks, (), make_tokenizer(recipe.model, thinks=True)).trained
    # The id of a prompt is `k:symbols`: k symbols and the end of the sequence are the answer.
    fits = [int(prompt.id.partition(":")[0]) + 1 <= recipe.generation.answer for prompt in task.validation]
    assert found.ceiling == sum(fits) / len(fits) == 0.73
    assert make_plan(found, "study", budget=None, command="").fit_settings.ceiling == 0.73


@pytest.mark.parametrize(
    ("variants", "more", "scale", "expected"),
    [
        ("", "fit: {ceiling: 0.8}", None, 0.8),  # the file's own word counts
        (", longer: {generation.answer: 12}", "", None, None),  # this one can answer everything
        ("", "search: {space: {generation.answer: {low: 3, high: 12}}, trials: 2}", None, None),  # nor of its trials
        ("", "", "bench_november", None),
        ("", "base: {tasks: [{type: reasoning_gym, dataset: chain_sum, size: 60, answer: stated}]}", None, None),
    ],
)
def test_what_is_stated_or_can_be_passed_is_no_limit(tmp_path, variants, more, scale, expected):
    assert study(tmp_path, variants, more, scale).ceiling == expected
