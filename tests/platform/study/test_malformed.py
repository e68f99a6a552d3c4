"""Every file in tests/data/malformed is refused with the right line, key, finding and advice."""

from pathlib import Path

import pytest
from places import DATA, REPOSITORY

from ablations.errors import FileError
from ablations.files.source import read_yaml
from ablations.files.validation import validated
from ablations.study.expand import expand
from ablations.study.resolve import resolve
from ablations.study.sweep import load_sweep
from scalerl.recipe import Scale

MALFORMED = DATA / "malformed"

EXPECTED = {
    "alias_bomb.yaml": (
        "5: variants.e.x.0.x.5.x.2.x.4.x.5: aliases expand to more than 20000 values; write out only the values "
        "you need"
    ),
    "axis_empty.yaml": "5: axes.rate: found an empty mapping; must have at least 1 entry",
    "axis_is_a_word.yaml": (
        "5: axes.loss: found 'grpo'; must be a list of values, or `name: {path: value}` for each of them"
    ),
    "axis_listed_twice.yaml": "5: axes.batch.prompts: 4 is listed twice; list each value once",
    "axis_value_of_reference.yaml": (
        "5: axes.batch.prompts.1: no effect: this is 'scalerl' itself; remove it, or set another value"
    ),
    "axis_without_effect.yaml": (
        "7: leave_one_out.axes.length_control: no effect: reference and revert_to agree on length_control; remove "
        "it, or write the value to set"
    ),
    "budget_is_a_word.yaml": "5: budget: found '300h'; write `budget: {compute: 1}`, in the unit of the scale",
    "budget_misspelt.yaml": "9: budget.fit_no: unknown key 'fit_no'; did you mean 'fit_on'?",
    "control_character.yaml": (
        "2: not YAML: control character '\\x00'; check the indentation, brackets and quotes around this line"
    ),
    "duplicate_key.yaml": "8: scale: written twice; first on line 3",
    "duplicate_name.yaml": "7: variants.loo-logits: a second variant is named 'loo-logits'; rename one",
    "empty.yaml": "1: the file is empty; write `key: value` lines",
    "exclude_unknown_axis.yaml": "8: exclude.0: excludes nothing; did you mean 'logits'?",
    "fit_window_empty.yaml": "7: budget: fit_from 0.5 must lie below fit_on 0.5",
    "grid_is_a_list.yaml": "4: grid: found a list; write `grid: {loss.type: [cispo, dapo], batch.prompts: [16, 32]}`",
    "grid_sets_twice.yaml": (
        "7: grid.size.big.batch.prompts: batch.prompts is set twice; first at "
        "tests/data/malformed/grid_sets_twice.yaml:5: grid.batch.prompts.0"
    ),
    "grid_too_large.yaml": "4: grid: 4096 combinations; must be at most 1000",
    "key_not_a_string.yaml": '5: variants: the key 16 is not a string; write "16"',
    "leave_one_out_word.yaml": "4: leave_one_out: found 'baseline'; must be a mapping",
    "later_feature.yaml": (
        "7: callbacks: unknown key 'callbacks'; keys are: name, doc, trainer, reference, scale, scales, "
        "fixed_scale, base, leave_one_out, axes, grid, zip,"
    ),
    "missing_name.yaml": "1: name: missing; this setting has no default",
    "missing_recipe_file.yaml": (
        "2: reference: no file recipes/unknown_kee.yaml; did you mean 'recipes/unknown_key.yaml'?"
    ),
    "misspelt_axis.yaml": "8: leave_one_out.axes.losss: unknown axis 'losss'; did you mean 'loss'?",
    "name_is_a_number.yaml": "1: name: found 8; must be a string; put it in quotes if it looks like a number",
    "nested_too_deeply.yaml": "4: variants: nested more than 50 deep; a dozen levels are plenty",
    "not_yaml.yaml": (
        "4: not YAML: while parsing a flow sequence (line 4): expected ',' or ']', but got '}'; check the "
        "indentation, brackets and quotes around this line"
    ),
    "nothing_to_compare.yaml": "1: nothing to compare; add leave_one_out, axes, grid, zip, variants or search",
    "override_breaks_a_sum.yaml": "5: variants.a.model.heads: hidden 32 must divide into 3 heads of even size",
    "override_inside_a_number.yaml": (
        "5: variants.a.batch.prompts.tmes: unknown key 'tmes': batch.prompts is 8 and has no keys; write a number, "
        "or {times: x}"
    ),
    "override_no_such_task.yaml": "5: variants.a.tasks.1.symbols: no entry '1'; entries are 0 to 0",
    "override_not_a_number.yaml": "5: variants.a.optimiser.learning_rate: found nan; must be a finite number",
    "override_of_other_clock.yaml": (
        "5: variants.a: counts measured device-hours, but the reference counts modelled GPU-hours; all runs of a "
        "sweep use one clock; start the sweep once per clock"
    ),
    "override_of_free_attention.yaml": (
        "5: variants.a: attention is free, but charged for the reference, so their compute is not comparable; "
        "start the sweep once for each setting of attention, with --set"
    ),
    "override_of_other_type.yaml": (
        "5: variants.a.loss.clip_low: unknown key 'clip_low'; keys of cispo are: type, min_ratio, max_ratio "
        "('clip_low' belongs to dapo and gspo)"
    ),
    "override_out_of_range.yaml": "7: variants.a.off_policy.k: found 0; must be at least 1",
    "override_of_another_block.yaml": (
        "5: variants.warm.optimiser.temperature: unknown key 'temperature'; did you mean 'generation.temperature'?"
    ),
    "override_without_its_block.yaml": (
        "5: variants.slow.learning_rate: unknown key 'learning_rate'; did you mean 'warm_start.learning_rate' or "
        "'optimiser.learning_rate' or 'critic.learning_rate'?"
    ),
    "override_unknown_type.yaml": "6: variants.a.loss.type: unknown type 'grppo'; did you mean 'grpo'?",
    "override_unknown_type_with_keys.yaml": "6: variants.a.loss.type: unknown type 'dpao'; did you mean 'dapo'?",
    "override_unknown_value.yaml": "5: variants.a.advantage: unknown value 'btach'; did you mean 'batch'?",
    "python_tag.yaml": "5: variants.a.batch.prompts: the tag !!python/name:os.system; write plain values without tags",
    "recipes/resources.yaml": "2: resources: unknown key 'resources'; this key belongs in a scale or a sweep",
    "recipes/text_for_number.yaml": "2: off_policy.k: found '8'; must be an integer, in digits only",
    "recipes/unknown_key.yaml": "2: los: unknown key 'los'; did you mean 'loss'?",
    "recursive_alias.yaml": "4: variants.again: an alias that contains itself; write the value out",
    "resources_in_a_variant.yaml": (
        "5: variants.a.resources.gpus: resources are not part of a recipe; write `resources:` at the top of the "
        "sweep or scale file"
    ),
    "resources_option_of_the_platform.yaml": (
        "7: resources.sbatch.job_name: the platform sets job-name itself; remove it"
    ),
    "resources_option_twice.yaml": (
        "6: resources.sbatch: gpu-bind is written twice, with - and with _; remove one of them"
    ),
    "resources_option_with_a_key.yaml": (
        "7: resources.sbatch.time: time has its own key; write resources.time_min instead"
    ),
    "resources_other_gpus.yaml": (
        "6: resources.sbatch: gres: GPUs have their own key; write resources.gpus, such as 8 or h100:8"
    ),
    "revert_to_itself.yaml": (
        "4: leave_one_out.revert_to: this recipe equals the reference on every axis; name another recipe, or list "
        "axes with their values"
    ),
    "scales/no_tasks.yaml": "1: tasks: found an empty list; must have at least 1 entry",
    "scales/recipe_key.yaml": "2: loss: unknown key 'loss'; this key belongs in a recipe",
    "scales/task_key.yaml": (
        "3: tasks.0.symbol: unknown key 'symbol'; did you mean 'symbols'? keys of k_smallest are: name"
    ),
    "search_cmaes_with_choices.yaml": (
        "4: search: sampler cmaes searches ranges only, and loss.type has choices; use tpe or gp"
    ),
    "search_fraction_of_an_integer.yaml": (
        "7: search.space.batch.prompts.high: found 8.5; must be a whole number, as batch.prompts is"
    ),
    "search_grid_without_step.yaml": (
        "8: search.space.optimiser.learning_rate: a grid needs a step or choices here; add step, or use another sampler"
    ),
    "search_log_of_zero.yaml": (
        "7: search.space.optimiser.learning_rate: low 0 has no logarithm; log: true needs a low above 0"
    ),
    "search_more_trials_than_points.yaml": (
        "5: search.trials: 6 trials, but the space holds 3 recipes besides the reference; must be at most 3"
    ),
    "search_named_like_a_trial.yaml": (
        "9: variants.trial-000: 'trial-000' is reserved for a trial of the search; rename it"
    ),
    "search_refused_together.yaml": (
        "7: search.space.off_policy.k: with off_policy.k = 1, batch.prompts = 1: 16 decoding slots hold more than "
        "k + 1 = 2 batches of 1 x 4 rollouts, so most slots could never be filled; use at most 8"
    ),
    "search_step_misses_high.yaml": (
        "7: search.space.batch.prompts: steps of 8 from low 4 do not reach high 30; high must be 28 or 36"
    ),
    "notify_is_an_address.yaml": (
        "6: notify.url: must be an environment variable that holds the address, as $SLACK_WEBHOOK: the address is "
        "a secret"
    ),
    "pairs_clash.yaml": (
        "7: pairs.0: 'dapo' and 'capped' both set loss.type; pair variants that change different settings"
    ),
    "pairs_number.yaml": "7: pairs: found 2, of 1 possible pair; write true for all of them",
    "pairs_unknown.yaml": "7: pairs.0: unknown variant 'smal'; did you mean 'small'?",
    "scales_family_heads.yaml": "3: scales.model_size.1: found 2, which turns 2 heads into 2.83; write 1 or 2.25",
    "scales_family_key.yaml": "3: scales.size: unknown key 'size'; keys of scales are: of, model_size, length, batch",
    "scales_family_twice.yaml": "3: scales: two scales are bench-batch4; list each once",
    "scales_one.yaml": "3: scales: found one scale; write `scale: smoke`, or add a larger one to `scales`",
    "search_with_stop.yaml": "8: stop: no effect on a search; remove it; every trial trains for budget.compute",
    "tab.yaml": "5: a tab in the indentation; indent with spaces",
    "times_of_a_word.yaml": "5: variants.a.advantage: {times: 2} cannot multiply 'batch'; times needs a number",
    "times_out_of_range.yaml": "5: variants.a.tasks.0.symbols: found 72; must be at most 36",
    "two_names_one_recipe.yaml": "6: variants.four: 'four' is the same recipe as 'half'; remove one of them",
    "two_problems.yaml": "7: seeds.0: found -1; must be at least 0",
    "unknown_key.yaml": "7: bugdet: unknown key 'bugdet'; did you mean 'budget'?",
    "zip_uneven.yaml": "6: zip.batch.generations: found 3 values; must be 2, as many as batch.prompts has",
}
"""The line, the key and the words of each message, or how they begin."""


def load(path: Path) -> None:
    """Reads a malformed sweep, recipe or scale as the command line would."""
    match path.parent.name:
        case "recipes":
            resolve(path, DATA / "recipes/scales/tiny.yaml")
        case "scales":
            resolve(REPOSITORY / "recipes/scalerl.yaml", path)
        case _:
            for scale in load_sweep(path).named_scales or (None,):
                expand(path, scale=scale)


def refusal(name: str) -> FileError:
    with pytest.raises(FileError) as caught:
        load(MALFORMED / name)
    return caught.value


@pytest.mark.parametrize("name", EXPECTED)
def test_a_malformed_file_is_refused_in_words_that_say_what_would_be_right(name, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    assert str(refusal(name)).startswith(f"tests/data/malformed/{name}:{EXPECTED[name]}")


def test_every_malformed_file_has_an_expectation():
    assert {path.relative_to(MALFORMED).as_posix() for path in MALFORMED.rglob("*.yaml")} == set(EXPECTED)


def test_one_message_lists_every_problem_one_line_each():
    error = refusal("two_problems.yaml")
    assert [problem.place.key for problem in error.problems] == ["seeds.0", "budget.compute"]
    assert str(error).splitlines() == [str(problem) for problem in error.problems]


def test_a_problem_reads_place_finding_advice(monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    assert str(refusal("misspelt_axis.yaml")) == (
        "tests/data/malformed/misspelt_axis.yaml:8: leave_one_out.axes.losss: unknown axis 'losss'; "
        "did you mean 'loss'? "
        "axes are: off_policy, kv, loss, correction, reward, aggregation, critic, advantage, logits, parameters, "
        "zero_variance, curriculum, length_control, truncated, kl, entropy_bonus, epochs"
    )


def test_a_default_that_hangs_on_a_refused_setting_is_not_a_second_problem(tmp_path):
    # Whether a scale has a warm start by default depends on its model.
    path = tmp_path / "scale.yaml"
    path.write_text("model: {type: pretrained, path: nowhere}\n")
    with pytest.raises(FileError) as caught:
        validated(read_yaml(path), Scale)
    (problem,) = caught.value.problems
    assert (problem.place.line, problem.place.key) == (1, "model")
    assert "nowhere is not a folder" in problem.found
