"""The trainer's end of the process of environments: it is replaced when it ends or hangs, and nothing else is lost."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from trainer.own_games import own_task
from trainer.processes.agents import children_of, is_alive
from waiting import wait_until

from scalerl.environments.catalogue import EnvironmentUnusable
from scalerl.environments.hosting import Hosting
from scalerl.environments.protocol import Reply, Start
from scalerl.recipe.episodes import Episodes


@pytest.fixture
def hosting_of(tmp_path):
    made = []

    def make(name, **settings):
        made.append(Hosting(own_task(tmp_path, name, **settings)))
        return made[-1]

    yield make
    for one in made:
        one.close()


def begun(hosting, number):
    for key in range(number):
        hosting.start(key, Start(seed=key))
    return [reply.text for _, reply in hosting.replies()]


def answers(hosting, *texts):
    for key, text in enumerate(texts):
        hosting.act(key, text)
    return [reply for _, reply in hosting.replies()]


def test_what_an_environment_prints_or_reads_touches_nothing(hosting_of, capfd):
    hosting = hosting_of("Faulty")
    begun(hosting, 2)
    assert answers(hosting, "print", "x") == [Reply("read ''"), Reply("yes")]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("exit", Reply("its process ended with code 7", end="error")),
        ("swallow", Reply("took more than 2 s", end="timed_out")),
    ],
)
def test_an_episode_that_ends_its_process_or_never_gives_it_back_is_lost_alone(text, reply, hosting_of):
    hosting = hosting_of("Faulty", time_limit_s=2)
    begun(hosting, 3)
    assert answers(hosting, "a", "b", "c") == [Reply("yes")] * 3
    assert answers(hosting, "d", text, "e") == [Reply("yes"), reply, Reply("yes")]
    assert hosting.deaths == 1
    hosting.forget(1)
    hosting.act(0, "f")
    assert hosting.replies() == [(0, Reply("yes"))]


def test_episodes_are_played_again_in_another_process_to_the_same_texts(hosting_of):
    alone, hosting = hosting_of("Dice"), hosting_of("Dice")
    assert begun(alone, 3) == begun(hosting, 3)
    first = answers(alone, "a", "b", "c")
    assert answers(hosting, "a", "b", "c") == first
    hosting.close()
    assert answers(hosting, "d", "e", "f") == answers(alone, "d", "e", "f")


def test_a_resumed_episode_goes_on_where_it_was(hosting_of):
    alone, before, after = (hosting_of("Dice") for _ in range(3))
    assert begun(alone, 2) == begun(before, 2)
    assert answers(alone, "a", "b") == answers(before, "a", "b")
    after.load_state_dict(before.state_dict())
    assert answers(after, "c", "d") == answers(alone, "c", "d")


def test_sets_have_one_order_in_every_process(hosting_of):
    (first,) = begun(hosting_of("Sets"), 1)
    assert begun(hosting_of("Sets"), 1) == [first]
    assert sorted(first.split()) == sorted(map(str, range(99)))


def test_a_resumed_episode_is_told_all_that_it_had_not_heard(hosting_of):
    alone, before, after = (hosting_of("Dice") for _ in range(3))
    begun(alone, 1)
    for one in (alone, before):
        if one is before:
            one.start(0, Start(seed=0))  # nothing has been heard when the answer is there
        one.act(0, "a")
    after.load_state_dict(before.state_dict())
    assert [reply for _, reply in after.replies()][1:] == [reply for _, reply in alone.replies()]


def test_an_episode_that_is_not_the_same_when_played_again_is_lost_and_said(hosting_of):
    hosting = hosting_of("Faulty")
    begun(hosting, 2)
    answers(hosting, "count", "count")
    answers(hosting, "x", "count")
    answers(hosting, "count", "x")  # said 1, 2, 3, 4 over both
    hosting.close()  # played again one after the other, the count is another
    ends = [reply.end for reply in answers(hosting, "x", "x")]
    assert ends == ["error", "error"]


def test_an_environment_that_never_returns_ends_when_the_trainer_is_killed(tmp_path):
    own_task(tmp_path, "Faulty")
    program = f"""
from trainer.own_games import own_task
from pathlib import Path
from scalerl.environments.hosting import Hosting
from scalerl.environments.protocol import Start
hosting = Hosting(own_task(Path({str(tmp_path)!r}), "Faulty", time_limit_s=600))
hosting.start(0, Start(seed=0))
hosting.replies()
hosting.act(0, "swallow")
hosting.replies(wait_s=0.5)
print("waits", flush=True)
hosting.replies()
"""
    tests = Path(__file__).parents[2]
    trainer = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=tests)
    assert trainer.stdout is not None
    assert trainer.stdout.readline() == b"waits\n"
    (environment,) = children_of(trainer.pid)
    trainer.kill()
    trainer.wait()
    wait_until(lambda: not is_alive(environment), "the end of the environment's process")
    trainer.stdout.close()


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("NoAct", {}, r"task 'NoAct': .*my_games.py:\d+: NoAct has no method act"),
        ("NeedsLevel", {"level": 9}, r"my_games.py:\d+: NeedsLevel raised ValueError: level is 9; must be 1 to 3"),
        ("Leaver", {}, "task 'Leaver': environment Leaver: its process ended with code 3"),
    ],
)
def test_an_environment_that_cannot_be_made_is_refused_once(name, settings, says, hosting_of):
    hosting = hosting_of(name, settings=settings)
    hosting.start(0, Start(seed=0))
    with pytest.raises(EnvironmentUnusable) as refused:
        hosting.replies()
    assert re.search(says, str(refused.value)), refused.value


def test_settings_that_the_game_lacks_are_refused():
    hosting = Hosting(Episodes(environment="guess", settings={"number": 3}))
    hosting.start(0, Start(seed=0))
    with pytest.raises(EnvironmentUnusable, match=r"environment 'guess' with settings \{'number': 3\}: TypeError: "):
        hosting.replies()
    hosting.close()
