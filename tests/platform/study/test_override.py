import pytest
from trainer.own_functions import written

from ablations.errors import FileError, Place
from ablations.study.override import overrides_from, overrides_set, vary_recipe
from ablations.study.resolve import load_resolved
from scalerl.recipe import ResolvedRecipe
from scalerl.recipe.axes import Cispo, Dapo, Grpo, LengthPenalty, PpoOffPolicy

HERE = Place(source="sweeps/test.yaml", line=7, key="variants.a")
BASE = ResolvedRecipe()


def varied(**settings) -> ResolvedRecipe:
    return vary_recipe(
        BASE, overrides_from({path.replace("__", "."): value for path, value in settings.items()}, HERE)
    )[0]


def test_a_mapping_is_shorthand_for_the_paths_inside_it():
    assert varied(batch={"prompts": 64}) == varied(batch__prompts=64)
    assert varied(batch={"prompts": 64}).batch.generations == BASE.batch.generations


def test_another_type_starts_its_block_from_that_types_defaults():
    assert varied(loss__type="grpo").loss == Grpo(clip=0.2)
    assert varied(length_control={"type": "penalty"}).length_control == LengthPenalty(cache=1 / 7)


def test_another_type_takes_the_settings_given_with_it_in_any_order():
    assert varied(loss__clip_high=0.4, loss__type="dapo").loss == Dapo(clip_low=0.2, clip_high=0.4)


def test_the_same_type_keeps_the_other_settings_of_its_block():
    base = vary_recipe(BASE, overrides_from({"loss.max_ratio": 8}, HERE))[0]
    same, _ = vary_recipe(base, overrides_from({"loss": {"type": "cispo", "min_ratio": 0.5}}, HERE))
    assert same.loss == Cispo(min_ratio=0.5, max_ratio=8.0)


def test_entries_of_a_list_are_addressed_by_position():
    assert varied(tasks__0__symbols=20).tasks[0].symbols == 20
    assert varied(tasks=[{"type": "k_smallest", "symbols": 20}]) == varied(tasks__0__symbols=20)


def test_the_task_of_a_scale_with_one_task_needs_no_position():
    recipe, settings = vary_recipe(BASE, overrides_from({"task": {"symbols": 20}}, HERE))
    assert recipe == varied(tasks__0__symbols=20)
    assert settings == {"tasks.0.symbols": 20}
    with pytest.raises(FileError, match=r"tasks\.0\.symbols"):
        vary_recipe(BASE, overrides_from({"task.symbols": 20, "tasks.0.symbols": 10}, HERE))
    mix = varied(tasks=[{"type": "k_smallest", "name": name} for name in ("a", "b")])
    with pytest.raises(FileError, match="unknown key 'task'; did you mean 'tasks'"):
        vary_recipe(mix, overrides_from({"task.symbols": 20}, HERE))


def test_the_optimiser_may_be_spelt_with_a_z():
    recipe, settings = vary_recipe(BASE, overrides_from({"optimizer": {"learning_rate": 1e-5}}, HERE))
    assert recipe == varied(optimiser__learning_rate=1e-5)
    assert settings == {"optimiser.learning_rate": 1e-5}
    with pytest.raises(FileError, match=r"optimiser\.eps is set twice"):
        vary_recipe(BASE, overrides_from({"optimizer.eps": 1e-8, "optimiser.eps": 1e-7}, HERE))


@pytest.mark.parametrize(
    ("prompts", "times", "product"),
    [(48, 0.67, 32), (48, 2.67, 128), (5, 0.5, 3), (7, 0.5, 4), (3, 0.1, 1), (8, 2, 16)],
)
def test_times_rounds_integers_to_the_nearest_with_halves_up_and_one_at_least(prompts, times, product):
    base = vary_recipe(BASE, overrides_from({"batch.prompts": prompts, "cluster.generators": 1}, HERE))[0]
    recipe, settings = vary_recipe(base, overrides_from({"batch.prompts": {"times": times}}, HERE))
    assert recipe.batch.prompts == product
    assert settings == {"batch.prompts": product}


def test_times_multiplies_what_stood_there_before_the_type_changed():
    assert varied(optimiser={"learning_rate": {"times": 2}}).optimiser.learning_rate == 1e-6
    assert varied(off_policy={"type": "ppo_off_policy", "k": {"times": 2}}).off_policy == PpoOffPolicy(k=16)


@pytest.mark.parametrize("times", [0, -1, 1e308, 10**400, float("nan"), float("inf"), True, "2", None, [2], {}])
def test_times_takes_a_positive_number_within_reason(times):
    with pytest.raises(FileError, match=r"sweeps/test\.yaml:7: variants\.a: found times: .*; must be a number above 0"):
        varied(batch__prompts={"times": times})


def test_a_value_that_breaks_its_blocks_rule_points_at_the_override_responsible():
    elsewhere = Place(source="sweeps/test.yaml", line=9, key="variants.a.model.heads")
    overrides = overrides_from({"batch.prompts": 64}, HERE) + overrides_from({"model.heads": 7}, elsewhere)
    with pytest.raises(FileError, match=r"^sweeps/test\.yaml:9: variants\.a\.model\.heads: hidden 64 must divide"):
        vary_recipe(BASE, overrides)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("batch.prompts=0", "--set batch.prompts=0: found 0; must be at least 1"),
        ("batch.prompts", "--set batch.prompts: not a setting; write --set path=value"),
        ("logits=fp16", "--set logits=fp16: unknown value 'fp16'; did you mean 'bf16'? values are: fp32, bf16"),
        ("learner={type: deepspeed, zero: 5}", "--set learner={type: deepspeed, zero: 5}: found 5; values are: 2, 3"),
        ("batch.x.y=1", "--set batch.x.y=1: unknown key 'x'; keys are: prompts, generations"),
        ("tasks.first.symbols=9", "--set tasks.first.symbols=9: no entry 'first'; entries are 0 to 0"),
    ],
)
def test_an_error_of_a_command_line_setting_points_at_it(text, message):
    with pytest.raises(FileError) as caught:
        vary_recipe(BASE, overrides_set(text))
    assert str(caught.value) == message


def test_a_scale_whose_model_does_not_think_needs_the_setting_that_suits_it(tmp_path):
    scale = tmp_path / "answers.yaml"
    scale.write_text("generation: {thinking: none, answer: 8}\n")
    with pytest.raises(FileError, match="length_control 'interruption' cuts thinking short and has no effect"):
        load_resolved("scalerl", str(scale))
    assert load_resolved("scalerl", str(scale), ["length_control.type=none"]).length_control.type == "none"


def test_another_task_file_takes_its_own_hash(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"question": "{name}", "answer": "1"}}\n')
    base = ResolvedRecipe.model_validate({"tasks": [{"type": "math", "path": str(tmp_path / "a.jsonl")}]})
    changed, _ = vary_recipe(base, overrides_from({"tasks.0.path": str(tmp_path / "b.jsonl")}, HERE))
    direct = ResolvedRecipe.model_validate({"tasks": [{"type": "math", "path": str(tmp_path / "b.jsonl")}]})
    assert changed == direct
    assert changed.identity(0) != base.identity(0)


def test_problems_of_a_library_are_made_anew_when_a_setting_of_theirs_changes():
    config = {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}
    task = {"type": "reasoning_gym", "dataset": "chain_sum", "config": config, "size": 10}
    before = ResolvedRecipe.model_validate({"tasks": [task]})
    after, _ = vary_recipe(before, overrides_set("tasks.0.config.max_digits=2"))
    (old,), (new,) = before.tasks, after.tasks
    assert old.problems_sha256 != new.problems_sha256
    fresh = new.model_dump(exclude={"problems_sha256"})
    assert ResolvedRecipe.model_validate({"tasks": [fresh]}).tasks == (new,)


def own_in(folder):
    """A place in a file of a folder that has the function `my_ideas.losses:mine`."""
    written(folder)
    return Place(source=str(folder / "sweep.yaml"), line=7, key="variants.a")


def test_another_function_starts_with_its_own_files_and_without_parameters(tmp_path):
    here = own_in(tmp_path)
    written(tmp_path, file="other.py")
    function = {"type": "custom", "function": "my_ideas.losses:mine", "parameters": {"beta": 0.1}}
    base, said = vary_recipe(BASE, overrides_from({"loss": function}, here))
    assert base.loss.folder == str(tmp_path)
    assert said == {"loss.type": "custom", "loss.function": "my_ideas.losses:mine", "loss.parameters.beta": 0.1}
    same = vary_recipe(base, overrides_from({"loss.parameters.beta": 0.2}, here))[0]
    assert (same.loss.parameters, same.loss.files) == ({"beta": 0.2}, base.loss.files)
    other = vary_recipe(base, overrides_from({"loss.function": "other:mine"}, here))[0]
    assert (other.loss.parameters, list(other.loss.files)) == ({}, ["other.py"])
    assert vary_recipe(base, overrides_from({"loss.type": "cispo"}, here))[0] == BASE


def test_a_recipe_file_and_the_command_line_name_functions_from_their_own_folders(tmp_path, monkeypatch):
    own_in(tmp_path / "recipes")
    own_in(tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    file = tmp_path / "recipes/mine.yaml"
    file.write_text("loss: {type: custom, function: my_ideas.losses:mine}\n")
    assert load_resolved(str(file), "smoke").loss.folder == str(tmp_path / "recipes")
    set_here = load_resolved("scalerl", "smoke", ["loss={type: custom, function: 'my_ideas.losses:mine'}"])
    assert set_here.loss.folder == str(tmp_path / "here")


def test_a_word_gives_way_to_a_function_and_back(tmp_path):
    here = own_in(tmp_path)
    function = {"type": "custom", "function": "my_ideas.losses:mine", "parameters": {"beta": 0.1}}
    for axis in ("reward", "aggregation", "advantage", "zero_variance"):
        recipe, said = vary_recipe(BASE, overrides_from({axis: function}, here))
        assert recipe.own[axis].parameters == {"beta": 0.1}
        assert said[f"{axis}.parameters.beta"] == 0.1
        dotted = vary_recipe(recipe, overrides_from({f"{axis}.parameters.beta": 0.2}, here))[0]
        assert dotted.own[axis].parameters == {"beta": 0.2}
        assert vary_recipe(recipe, overrides_from({axis: getattr(BASE, axis)}, here))[0] == BASE


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"loss": {"type": "custom", "function": "my_ideas.loses:mine"}}, "found no file my_ideas/loses.py: looked"),
        ({"aggregation": {"type": "custom"}}, "missing"),
        ({"aggregation": {"type": "custom", "functon": "a:b"}}, "unknown key 'functon'; did you mean 'function'?"),
        ({"logits": {"type": "custom"}}, "found a mapping; values are: fp32, bf16"),
        ({"loss": {"type": "custom", "function": "mine"}}, "variants.a: found 'mine'; write module and name"),
    ],
)
def test_a_function_that_is_not_written_right_is_refused_in_words(settings, said, tmp_path):
    with pytest.raises(FileError) as caught:
        vary_recipe(BASE, overrides_from(settings, own_in(tmp_path)))
    assert said in str(caught.value)
    assert f"{tmp_path}/sweep.yaml:7" in str(caught.value)


def test_a_task_of_ones_own_in_a_sweep_file_is_found_beside_it(tmp_path):
    task = {"type": "custom", "function": "my_ideas.losses:mine"}
    recipe, _ = vary_recipe(
        BASE, overrides_from({"tasks": [task], "length_control": {"type": "none"}}, own_in(tmp_path))
    )
    assert recipe.tasks[0].folder == str(tmp_path)
    assert list(recipe.own) == ["tasks.0"]
