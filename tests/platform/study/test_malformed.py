"""Every file in tests/data/malformed is refused with the right line, key, finding and advice."""

from pathlib import Path
from typing import NamedTuple

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


class Expected(NamedTuple):
    line: int
    key: str
    found: str
    right: str
    """The beginning of the advice."""


EXPECTED = {
    "alias_bomb.yaml": Expected(
        5,
        "variants.e.x.0.x.5.x.2.x.4.x.5",
        "aliases expand to more than 20000 values",
        "write out only the values you need",
    ),
    "axis_empty.yaml": Expected(5, "axes.rate", "found an empty mapping", "must have at least 1 entry"),
    "axis_is_a_word.yaml": Expected(
        5, "axes.loss", "found 'grpo'", "must be a list of values, or `name: {path: value}` for each of them"
    ),
    "axis_listed_twice.yaml": Expected(5, "axes.batch.prompts", "4 is listed twice; list each value once", ""),
    "axis_lists_mappings.yaml": Expected(
        5, "axes.loss.0", "found a mapping; must be a number or a word; give any other value a name", ""
    ),
    "axis_unknown_path.yaml": Expected(5, "axes.batch.promts.0", "unknown key 'promts'", "did you mean 'prompts'?"),
    "axis_value_badly_named.yaml": Expected(
        6,
        "axes.rate.a/b",
        "'a/b' is not a name; a name has up to 64 letters, digits and . _ + -, and starts with a letter or digit",
        "",
    ),
    "axis_value_empty.yaml": Expected(6, "axes.rate.low", "found nothing", "must be a mapping"),
    "axis_value_of_reference.yaml": Expected(
        5, "axes.batch.prompts.1", "no effect: this is 'scalerl' itself", "remove it, or set another value"
    ),
    "axis_without_effect.yaml": Expected(
        7,
        "leave_one_out.axes.length_control",
        "no effect: reference and revert_to agree on length_control",
        "remove it, or write the value to set",
    ),
    "binary.yaml": Expected(2, "", "not text: byte 0x89 is not UTF-8", "save the file as UTF-8 YAML"),
    "budget_infinite.yaml": Expected(7, "budget.compute", "found inf", "must be a finite number"),
    "budget_is_a_word.yaml": Expected(
        5, "budget", "found '300h'", "write `budget: {compute: 1}`, in the unit of the scale"
    ),
    "budget_misspelt.yaml": Expected(9, "budget.fit_no", "unknown key 'fit_no'", "did you mean 'fit_on'?"),
    "budget_total.yaml": Expected(
        7, "budget.total", "unknown key 'total'", "keys of budget are: compute, fit_from, fit_on"
    ),
    "budget_zero.yaml": Expected(7, "budget.compute", "found 0", "must be above 0"),
    "control_character.yaml": Expected(
        2, "", "not YAML: control character '\\x00'", "check the indentation, brackets and quotes around this line"
    ),
    "duplicate_key.yaml": Expected(8, "scale", "written twice", "first on line 3"),
    "duplicate_name.yaml": Expected(7, "variants.loo-logits", "a second variant is named 'loo-logits'", "rename one"),
    "empty.yaml": Expected(1, "", "the file is empty", "write `key: value` lines"),
    "exclude_unknown_axis.yaml": Expected(8, "exclude.0", "excludes nothing", "did you mean 'logits'?"),
    "exclude_unknown_value.yaml": Expected(9, "exclude.1", "excludes nothing", "did you mean 'bf16'?"),
    "exclude_without_grid.yaml": Expected(7, "exclude.0", "excludes nothing", "there are no axes of grid and zip"),
    "fit_on_above_one.yaml": Expected(7, "budget.fit_on", "found 1.5", "must be at most 1"),
    "fit_window_empty.yaml": Expected(7, "budget", "fit_from 0.5 must lie below fit_on 0.5", ""),
    "grid_empty.yaml": Expected(4, "grid", "found an empty mapping", "must have at least 1 entry"),
    "grid_is_a_list.yaml": Expected(
        4, "grid", "found a list", "write `grid: {loss.type: [cispo, dapo], batch.prompts: [16, 32]}`"
    ),
    "grid_is_the_reference.yaml": Expected(
        4, "grid", "every remaining combination equals the reference", "give an axis another value"
    ),
    "grid_sets_twice.yaml": Expected(
        7,
        "grid.size.big.batch.prompts",
        "batch.prompts is set twice",
        "first at tests/data/malformed/grid_sets_twice.yaml:5: grid.batch.prompts.0",
    ),
    "grid_too_large.yaml": Expected(4, "grid", "4096 combinations", "must be at most 1000"),
    "key_not_a_string.yaml": Expected(5, "variants", "the key 16 is not a string", 'write "16"'),
    "leave_one_out_misspelt.yaml": Expected(6, "leave_one_out.axs", "unknown key 'axs'", "did you mean 'axes'?"),
    "leave_one_out_word.yaml": Expected(4, "leave_one_out", "found 'baseline'", "must be a mapping"),
    "later_feature.yaml": Expected(
        7,
        "callbacks",
        "unknown key 'callbacks'",
        "keys are: name, doc, trainer, reference, scale, scales, fixed_scale, base, leave_one_out, axes, grid, zip,",
    ),
    "leave_one_out_empty.yaml": Expected(7, "leave_one_out", "found nothing; must be a mapping", ""),
    "missing_name.yaml": Expected(1, "name", "missing", "this setting has no default"),
    "missing_recipe_file.yaml": Expected(
        2, "reference", "no file recipes/unknown_kee.yaml", "did you mean 'recipes/unknown_key.yaml'?"
    ),
    "misspelt_axis.yaml": Expected(8, "leave_one_out.axes.losss", "unknown axis 'losss'", "did you mean 'loss'?"),
    "name_is_a_number.yaml": Expected(
        1, "name", "found 8", "must be a string; put it in quotes if it looks like a number"
    ),
    "name_with_slash.yaml": Expected(
        1,
        "name",
        "'../broken' is not a name; a name has up to 64 letters, digits and . _ + -, and starts with a letter or digit",
        "",
    ),
    "named_like_the_reference.yaml": Expected(
        5, "variants.scalerl", "no effect: this is 'scalerl' itself", "remove it, or set another value"
    ),
    "nested_too_deeply.yaml": Expected(1, "", "nested too deeply", "a dozen levels are plenty"),
    "not_yaml.yaml": Expected(
        4,
        "",
        "not YAML: while parsing a flow sequence (line 4): expected ',' or ']', but got '}'",
        "check the indentation, brackets and quotes around this line",
    ),
    "nothing_to_compare.yaml": Expected(
        1, "", "nothing to compare; add leave_one_out, axes, grid, zip, variants or search", ""
    ),
    "override_boolean_for_number.yaml": Expected(
        5, "variants.a.batch.prompts", "found true", "must be an integer, in digits only"
    ),
    "override_breaks_a_sum.yaml": Expected(
        5, "variants.a.model.heads", "hidden 32 must divide into 3 heads of even size", ""
    ),
    "override_empty.yaml": Expected(5, "variants.a.batch", "found an empty mapping", "write at least one setting"),
    "override_fills_no_slots.yaml": Expected(
        5,
        "variants.a.cluster.slots",
        "1600 decoding slots hold more than k + 1 = 9 batches of 8 x 4 rollouts, "
        "so most slots could never be filled; use at most 288",
        "",
    ),
    "override_inside_a_number.yaml": Expected(
        5,
        "variants.a.batch.prompts.tmes",
        "unknown key 'tmes': batch.prompts is 8 and has no keys",
        "write a number, or {times: x}",
    ),
    "override_inside_a_word.yaml": Expected(
        5,
        "variants.a.advantage.type",
        "unknown key 'type': advantage is 'batch' and has no keys",
        "write the value itself",
    ),
    "override_no_such_task.yaml": Expected(5, "variants.a.tasks.1.symbols", "no entry '1'", "entries are 0 to 0"),
    "override_not_a_number.yaml": Expected(
        5, "variants.a.optimiser.learning_rate", "found nan", "must be a finite number"
    ),
    "override_of_other_clock.yaml": Expected(
        5,
        "variants.a",
        "counts measured device-hours, but the reference counts modelled GPU-hours",
        "all runs of a sweep use one clock; start the sweep once per clock",
    ),
    "override_of_free_attention.yaml": Expected(
        5,
        "variants.a",
        "attention is free, but charged for the reference, so their compute is not comparable",
        "start the sweep once with each setting of attention, with --set",
    ),
    "override_of_other_type.yaml": Expected(
        5,
        "variants.a.loss.clip_low",
        "unknown key 'clip_low'",
        "keys of cispo are: type, min_ratio, max_ratio ('clip_low' belongs to dapo and gspo)",
    ),
    "override_off_is_a_word.yaml": Expected(
        5, "variants.a.zero_variance", "unknown value 'off'", "values are: drop, keep"
    ),
    "override_out_of_range.yaml": Expected(7, "variants.a.off_policy.k", "found 0", "must be at least 1"),
    "override_unknown_block.yaml": Expected(5, "variants.a.losss", "unknown key 'losss'", "did you mean 'loss'?"),
    "override_unknown_type.yaml": Expected(6, "variants.a.loss.type", "unknown type 'grppo'", "did you mean 'grpo'?"),
    "override_unknown_type_with_keys.yaml": Expected(
        6, "variants.a.loss.type", "unknown type 'dpao'", "did you mean 'dapo'?"
    ),
    "override_unknown_value.yaml": Expected(
        5, "variants.a.advantage", "unknown value 'btach'", "did you mean 'batch'?"
    ),
    "published_above_one.yaml": Expected(8, "published.rate=low.A", "found 61", "must be at most 1"),
    "published_unknown.yaml": Expected(8, "published.low", "unknown variant 'low'", "variants are: scalerl, rate=low"),
    "python_tag.yaml": Expected(
        5, "variants.a.batch.prompts", "the tag !!python/name:os.system", "write plain values without tags"
    ),
    "recipes/above_one.yaml": Expected(1, "curriculum.threshold", "found 1.5", "must be at most 1"),
    "recipes/infinite.yaml": Expected(1, "loss.max_ratio", "found inf", "must be a finite number"),
    "recipes/literal.yaml": Expected(1, "aggregation", "unknown value 'smaple'", "did you mean 'sample'?"),
    "recipes/order.yaml": Expected(1, "loss", "min_ratio 6.0 must lie below max_ratio 5.0", ""),
    "recipes/resources.yaml": Expected(
        2, "resources", "unknown key 'resources'", "this key belongs in a scale or a sweep"
    ),
    "recipes/scale_key.yaml": Expected(2, "batch", "unknown key 'batch'", "this key belongs in a scale"),
    "recipes/text_for_number.yaml": Expected(2, "off_policy.k", "found '8'", "must be an integer, in digits only"),
    "recipes/union_as_word.yaml": Expected(
        1, "loss", "found 'cispo'", "must be a mapping with a type, one of: cispo, grpo, dapo, gspo"
    ),
    "recipes/union_other_member.yaml": Expected(
        3,
        "loss.clip_low",
        "unknown key 'clip_low'",
        "keys of cispo are: type, min_ratio, max_ratio ('clip_low' belongs to dapo and gspo)",
    ),
    "recipes/union_unknown_type.yaml": Expected(
        1, "curriculum.type", "unknown type 'uniformly'", "did you mean 'uniform'?"
    ),
    "recipes/union_without_type.yaml": Expected(
        1, "loss", "no type", "must be a mapping with a type, one of: cispo, grpo, dapo, gspo"
    ),
    "recipes/unknown_key.yaml": Expected(2, "los", "unknown key 'los'", "did you mean 'loss'?"),
    "recursive_alias.yaml": Expected(4, "variants.again", "an alias that contains itself", "write the value out"),
    "resources_gpus_are_a_word.yaml": Expected(
        6,
        "resources.gpus",
        "found 'h100'; must be a number of GPUs, or a kind and a number, such as h100:8",
        "",
    ),
    "resources_in_a_variant.yaml": Expected(
        5,
        "variants.a.resources.gpus",
        "resources are not part of a recipe",
        "write `resources:` at the top of the sweep or scale file",
    ),
    "resources_misspelt.yaml": Expected(
        6, "resources.partion", "unknown key 'partion'", "did you mean 'partition'? keys of resources are: partition"
    ),
    "resources_option_is_a_list.yaml": Expected(
        7,
        "resources.sbatch.nice",
        "found a list; must be a number or a word, or true for an option without a value",
        "",
    ),
    "resources_option_of_the_platform.yaml": Expected(
        7, "resources.sbatch.job_name", "the platform sets job-name itself; remove it", ""
    ),
    "resources_option_that_waits.yaml": Expected(
        6, "resources.sbatch.wait", "wait would hide the jobs from the platform; remove it", ""
    ),
    "resources_option_twice.yaml": Expected(
        6, "resources.sbatch", "gpu-bind is written twice, with - and with _; remove one of them", ""
    ),
    "resources_option_with_a_key.yaml": Expected(
        7, "resources.sbatch.time", "time has its own key; write resources.time_min instead", ""
    ),
    "resources_other_gpus.yaml": Expected(
        6,
        "resources.sbatch",
        "gres: GPUs have their own key; write resources.gpus, such as 8 or h100:8",
        "",
    ),
    "resources_setup_is_a_word.yaml": Expected(6, "resources.setup", "found 'module load cuda'", "must be a list"),
    "resources_time_is_a_word.yaml": Expected(
        6,
        "resources.time_min",
        "found '4h'; must be a number of minutes or a time in Slurm's format, such as 4:00:00 or 1-12:00:00",
        "",
    ),
    "revert_to_itself.yaml": Expected(
        4,
        "leave_one_out.revert_to",
        "this recipe equals the reference on every axis",
        "name another recipe, or list axes with their values",
    ),
    "revert_to_unknown.yaml": Expected(
        5, "leave_one_out.revert_to", "unknown recipe 'basline'", "did you mean 'baseline'?"
    ),
    "scales/cluster_key.yaml": Expected(
        2,
        "cluster.tokens_stand_for",
        "unknown key 'tokens_stand_for'",
        "keys of wall are: type, generators, slots, generator_threads, evaluator "
        "('tokens_stand_for' belongs to virtual)",
    ),
    "scales/cluster_type.yaml": Expected(2, "cluster.type", "unknown type 'wal'", "did you mean 'wall'?"),
    "scales/fraction.yaml": Expected(1, "batch.prompts", "found 8.5", "must be an integer, in digits only"),
    "scales/heads.yaml": Expected(1, "model", "hidden 64 must divide into 7 heads of even size", ""),
    "scales/missing_value.yaml": Expected(1, "batch", "found nothing", "must be a mapping"),
    "scales/multiple.yaml": Expected(1, "model.hidden", "found 12", "must be a multiple of 8"),
    "scales/no_tasks.yaml": Expected(1, "tasks", "found an empty list", "must have at least 1 entry"),
    "scales/recipe_key.yaml": Expected(2, "loss", "unknown key 'loss'", "this key belongs in a recipe"),
    "scales/resources_key.yaml": Expected(2, "resources.mem", "unknown key 'mem'", "did you mean 'mem_gb'?"),
    "scales/resources_zero.yaml": Expected(2, "resources.nodes", "found 0", "must be at least 1"),
    "scales/slots.yaml": Expected(
        2,
        "cluster",
        "768 decoding slots hold more than k + 1 = 9 batches of 8 x 4 rollouts, "
        "so most slots could never be filled; use at most 288",
        "",
    ),
    "scales/task_key.yaml": Expected(
        3, "tasks.0.symbol", "unknown key 'symbol'", "did you mean 'symbols'? keys of k_smallest are: name"
    ),
    "scales/task_range.yaml": Expected(3, "tasks.0.symbols", "found 99", "must be at most 36"),
    "search_choice_named_badly.yaml": Expected(
        7, "search.space.size.choices.small.batch.promts", "unknown key 'promts'", "did you mean 'prompts'?"
    ),
    "search_choice_unknown.yaml": Expected(
        7, "search.space.loss.type.choices.1", "unknown type 'dapoo'", "did you mean 'dapo'?"
    ),
    "search_choices_beside_low.yaml": Expected(
        7, "search.space.batch.prompts", "low has no effect beside choices; write a range or choices", ""
    ),
    "search_cmaes_with_choices.yaml": Expected(
        4, "search", "sampler cmaes searches ranges only, and loss.type has choices; use tpe or gp", ""
    ),
    "search_dimension_is_a_list.yaml": Expected(7, "search.space.batch.prompts", "found a list", "must be a mapping"),
    "search_empty_space.yaml": Expected(6, "search.space", "found nothing", "must be a mapping"),
    "search_fraction_of_an_integer.yaml": Expected(
        7, "search.space.batch.prompts.high", "found 8.5", "must be a whole number, as batch.prompts is"
    ),
    "search_grid_without_step.yaml": Expected(
        8,
        "search.space.optimiser.learning_rate",
        "a grid needs a step or choices here",
        "add step, or use another sampler",
    ),
    "search_half_a_range.yaml": Expected(
        7, "search.space.batch.prompts", "must be a range, {low: x, high: y}, or {choices: [...]}", ""
    ),
    "search_log_of_zero.yaml": Expected(
        7, "search.space.optimiser.learning_rate", "low 0 has no logarithm; log: true needs a low above 0", ""
    ),
    "search_log_with_step.yaml": Expected(
        7, "search.space.batch.prompts", "log and step exclude each other; remove one of them", ""
    ),
    "search_low_above_high.yaml": Expected(7, "search.space.batch.prompts", "low 32 must lie below high 8", ""),
    "search_more_trials_than_points.yaml": Expected(
        5, "search.trials", "6 trials, but the space holds 3 recipes besides the reference", "must be at most 3"
    ),
    "search_named_like_a_trial.yaml": Expected(
        9, "variants.trial-000", "'trial-000' is reserved for a trial of the search", "rename it"
    ),
    "search_no_trials.yaml": Expected(4, "search.trials", "missing", "this setting has no default"),
    "search_objective_half.yaml": Expected(8, "search.objective.1.budget", "missing", "this setting has no default"),
    "search_objective_misspelt.yaml": Expected(
        8, "search.objective.type", "unknown type 'asymptot'", "did you mean 'asymptote'?"
    ),
    "search_objective_of_other.yaml": Expected(
        8,
        "search.objective.score",
        "unknown key 'score'",
        "keys of asymptote are: type, of ('score' belongs to compute_to_reach)",
    ),
    "search_one_choice.yaml": Expected(
        7, "search.space.loss.type", "one choice leaves nothing to search; write two or more", ""
    ),
    "search_range_of_a_word.yaml": Expected(
        7, "search.space.loss.type", "unknown type '1.0'", "types are: cispo, grpo, dapo, gspo"
    ),
    "search_refused_at_high.yaml": Expected(
        8, "search.space.loss.min_ratio", "min_ratio 6.0 must lie below max_ratio 5.0", ""
    ),
    "search_refused_inside.yaml": Expected(7, "search.space.model.hidden", "found 20", "must be a multiple of 8"),
    "search_refused_together.yaml": Expected(
        7,
        "search.space.off_policy.k",
        "with off_policy.k = 1, batch.prompts = 1: 16 decoding slots hold more than k + 1 = 2 batches of 1 x 4 "
        "rollouts, so most slots could never be filled; use at most 8",
        "",
    ),
    "search_set_twice.yaml": Expected(
        8,
        "search.space.size.choices.small.batch.prompts",
        "with batch.prompts = 4, size = small: batch.prompts is set twice",
        "first at tests/data/malformed/search_set_twice.yaml:7: search.space.batch.prompts",
    ),
    "search_step_misses_high.yaml": Expected(
        7, "search.space.batch.prompts", "steps of 8 from low 4 do not reach high 30; high must be 28 or 36", ""
    ),
    "search_unknown_path.yaml": Expected(
        7, "search.space.optimiser.learning_rat", "unknown key 'learning_rat'", "did you mean 'learning_rate'?"
    ),
    "search_unknown_sampler.yaml": Expected(5, "search.sampler", "unknown value 'tpee'", "did you mean 'tpe'?"),
    "notify_is_an_address.yaml": Expected(
        6,
        "notify.url",
        "must be an environment variable that holds the address, as $SLACK_WEBHOOK: the address is a secret",
        "",
    ),
    "notify_unknown_event.yaml": Expected(
        6, "notify.on.0", "unknown value 'failure'", "did you mean 'failed'? values are: failed, held, done, warning"
    ),
    "pairs_clash.yaml": Expected(
        7, "pairs.0", "'dapo' and 'capped' both set loss.type", "pair variants of different settings"
    ),
    "pairs_none_wanted.yaml": Expected(7, "pairs", "found 0", "must be at least 1"),
    "pairs_number.yaml": Expected(7, "pairs", "found 2, of 1 possible pair", "write true for all of them"),
    "pairs_word.yaml": Expected(
        7, "pairs", "found 'half'", "must be true, how many pairs to train, or a list: [[loo-loss, loo-curriculum]]"
    ),
    "pairs_of_nothing.yaml": Expected(6, "pairs", "no two variants change different settings", "remove it, or add one"),
    "pairs_unknown.yaml": Expected(7, "pairs.0", "unknown variant 'smal'", "did you mean 'small'?"),
    "scales_family_heads.yaml": Expected(
        3, "scales.model_size.1", "found 2, which turns 2 heads into 2.83", "write 1 or 2.25"
    ),
    "scales_family_key.yaml": Expected(
        3, "scales.size", "unknown key 'size'", "keys of scales are: of, model_size, length, batch"
    ),
    "scales_family_of.yaml": Expected(3, "scales.of", "unknown scale 'benhc'", "did you mean 'bench'?"),
    "scales_family_twice.yaml": Expected(3, "scales", "two scales are bench-batch4; list each once", ""),
    "scales_family_uneven.yaml": Expected(
        3, "scales", "3 of model_size and 2 of batch; write one number for every scale in each list", ""
    ),
    "scales_one.yaml": Expected(
        3, ("scales"), "found one scale; write `scale: smoke`, or add a larger one to `scales`", ""
    ),
    "scales_unknown.yaml": Expected(3, "scales.0", "unknown scale 'smokey'", "did you mean 'smoke'?"),
    "scales_word.yaml": Expected(
        3, "scales", "found 'bench'", "must be a list of scales, or a family: {of: bench, model_size: [1, 4]}"
    ),
    "scales_with_scale.yaml": Expected(1, "", "scales and scale exclude each other; write one of them", ""),
    "search_with_stop.yaml": Expected(
        8, "stop", "no effect on a search", "remove it; every trial trains for budget.compute"
    ),
    "seeds_as_text.yaml": Expected(7, "seeds.0", "found '0'", "must be an integer, in digits only"),
    "seeds_empty.yaml": Expected(7, "seeds", "found an empty list", "must have at least 1 entry"),
    "seeds_negative.yaml": Expected(9, "seeds.1", "found -1", "must be at least 0"),
    "seeds_repeated.yaml": Expected(7, "seeds", "0 is listed twice; list each value once", ""),
    "stop_collapse_unknown.yaml": Expected(7, "stop.collapse", "unknown value 'halt'", "values are: stop, flag"),
    "stop_dominated_unlikely.yaml": Expected(7, "stop.dominated", "found 0.05", "must be at least 0.5"),
    "stop_is_a_number.yaml": Expected(7, "stop", "found 0.01", "must be a mapping"),
    "stop_left_empty.yaml": Expected(7, "stop", "found nothing; must be a mapping", ""),
    "stop_misspelt.yaml": Expected(8, "stop.gain_bellow", "unknown key 'gain_bellow'", "did you mean 'gain_below'?"),
    "stop_probability_alone.yaml": Expected(
        7, "stop", "probability has no effect without gain_below; write both or neither", ""
    ),
    "tab.yaml": Expected(5, "", "a tab in the indentation", "indent with spaces"),
    "times_huge.yaml": Expected(
        5, "variants.a.batch.prompts", "found times: 1e+308", "must be a number above 0 and at most 1000000"
    ),
    "times_of_a_word.yaml": Expected(
        5, "variants.a.advantage", "{times: 2} cannot multiply 'batch'", "times needs a number"
    ),
    "times_out_of_range.yaml": Expected(5, "variants.a.tasks.0.symbols", "found 72", "must be at most 36"),
    "times_unknown_path.yaml": Expected(
        5, "variants.a.batch.promts", "unknown key 'promts'", "did you mean 'prompts'?"
    ),
    "times_with_more.yaml": Expected(
        5, "variants.a.batch.prompts", "unknown key 'plus' beside times", "write {times: x} alone"
    ),
    "times_zero.yaml": Expected(
        5, "variants.a.batch.prompts", "found times: 0", "must be a number above 0 and at most 1000000"
    ),
    "top_level_list.yaml": Expected(1, "", "found a list", "write `key: value` lines"),
    "two_documents.yaml": Expected(
        7,
        "",
        "not YAML: expected a single document in the stream (line 1): but found another document",
        "check the indentation, brackets and quotes around this line",
    ),
    "two_names_one_recipe.yaml": Expected(
        6, "variants.four", "'four' is the same recipe as 'half'", "remove one of them"
    ),
    "two_problems.yaml": Expected(7, "seeds.0", "found -1", "must be at least 0"),
    "unclosed_quote.yaml": Expected(
        8,
        "",
        "not YAML: while scanning a quoted scalar (line 4): found unexpected end of stream",
        "check the indentation, brackets and quotes around this line",
    ),
    "undefined_alias.yaml": Expected(
        4, "", "not YAML: found undefined alias 'rates'", "check the indentation, brackets and quotes around this line"
    ),
    "unknown_key.yaml": Expected(7, "bugdet", "unknown key 'bugdet'", "did you mean 'budget'?"),
    "unknown_reference.yaml": Expected(2, "reference", "unknown recipe 'scalrel'", "did you mean 'scalerl'?"),
    "unknown_scale.yaml": Expected(3, "scale", "unknown scale 'tinny'", "did you mean 'tiny'?"),
    "zip_uneven.yaml": Expected(
        6, "zip.batch.generations", "found 3 values", "must be 2, as many as batch.prompts has"
    ),
}


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
    error, expected = refusal(name), EXPECTED[name]
    problem = error.problems[0]
    assert problem.place.source == f"tests/data/malformed/{name}"
    assert (problem.place.line, problem.place.key, problem.found) == expected[:3]
    assert problem.right.startswith(expected.right)
    assert str(error).startswith(f"tests/data/malformed/{name}:{expected.line}: {expected.key}")


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
