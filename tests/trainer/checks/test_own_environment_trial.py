"""An environment of the user's own is tried before anything trains: each fault is refused with its file and line."""

import re

import pytest
from trainer.own_games import own_task
from trainer.tiny import tiny_recipe

from scalerl.checks.examine import examine_recipes
from scalerl.checks.own_process import try_own
from scalerl.checks.own_trial import tried
from scalerl.recipe import Own

COUNTS = """
class Counts(Faulty):
    def act(self, text):
        return super().act("count")


class Drawn(Faulty):
    def start(self, seed, row):
        return str(time.monotonic())


class OnlyNumbers(Faulty):
    def act(self, text):
        return Reply(str(int(text)))


class Ends(Faulty):
    def act(self, text):
        return Reply("no", reward=-1.0, end="rules_broken")


class Leaves(Faulty):
    def act(self, text):
        os._exit(7)
"""


def test_an_environment_that_repeats_is_accepted_with_the_time_of_a_turn(tmp_path):
    answer = tried("environment", own_task(tmp_path, "Dice"))
    assert not answer["remedy"], answer
    assert re.fullmatch(r"plays \d+ turns; one takes [\d.e-]+ ms", answer["found"])


def test_an_environment_that_ends_with_every_answer_is_accepted(tmp_path):
    assert not tried("environment", own_task(tmp_path, "Ends", COUNTS))["remedy"]


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("Counts", {}, "Counts says something else when the same seed and answers are repeated"),
        ("Drawn", {}, "Drawn says something else when the same seed and answers are repeated"),
        ("OnlyNumbers", {}, r"my_games.py:\d+: OnlyNumbers raised ValueError: invalid literal for int\(\)"),
        ("NoAct", {}, r"my_games.py:\d+: NoAct has no method act"),
        ("NumberFirst", {}, "NumberFirst raised TypeError: start returned a int; must return the first text"),
        ("NeedsLevel", {"level": 9}, r"my_games.py:\d+: NeedsLevel raised ValueError: level is 9; must be 1 to 3"),
        ("Faulty", {"at_start": "sleep"}, "my_games.py.*Faulty took more than 0.3 s"),
    ],
)
def test_a_broken_environment_is_refused(name, settings, says, tmp_path):
    limit_s = 0.3 if "took more than 0.3 s" in says else 60
    answer = tried("environment", own_task(tmp_path, name, COUNTS, settings=settings, time_limit_s=limit_s))
    assert answer["remedy"]
    assert re.search(says, answer["found"]), answer["found"]
    assert answer["found"].startswith(f"{tmp_path}/my_games.py:")


def test_an_environment_that_ends_the_process_of_its_trial_is_refused(tmp_path):
    task = own_task(tmp_path, "Leaves", COUNTS)
    assert isinstance(task.environment, Own)
    finding = try_own("environment", task.environment, 60.0, task)
    assert finding.level == "error"
    assert "the process that tries Leaves ended without a result: exit code 7" in finding.found


def test_the_checks_try_the_environment_of_a_task_with_its_settings(tmp_path):
    task = own_task(tmp_path, "NeedsLevel", COUNTS, settings={"level": 9}, name="mine", train=8, validation=4)
    recipe = tiny_recipe(model={"tokenizer": "characters"}, tasks=[task.model_dump(mode="json")])
    found = list(examine_recipes({"mine": recipe}, quick=True, say=lambda line: None))
    errors = [one for one in found if one.level == "error"]
    assert [one.part for one in errors] == ["own", "data"]
    assert errors[0].check == "environment my_games:NeedsLevel"
    assert all("NeedsLevel raised ValueError: level is 9; must be 1 to 3" in str(one) for one in errors)
