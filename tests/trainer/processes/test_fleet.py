"""How long a process may owe an answer: silence counts from the order, not from the last message before it."""

import copy
from types import SimpleNamespace
from typing import Any

from trainer.engines import ListGenerator, ThreadLauncher
from waiting import wait_until

from scalerl.cluster.placement import PlacedUnit
from scalerl.processes import fleet
from scalerl.processes.fleet import Fleet
from scalerl.processes.messages import Pause

UNIT = PlacedUnit(role="generator", index=0, node=0, devices=())


def test_a_process_that_was_allowed_to_be_silent_has_its_whole_limit_from_the_order_on(monkeypatch):
    unused: Any = None
    one = Fleet(ThreadLauncher([ListGenerator([(5, 6)])], unused, {}), [UNIT], [b""])
    heard: list[Any] = []

    def hear():
        heard.extend(one.answers(wait_s=0.1))
        return heard

    clock = SimpleNamespace(now=fleet.running_s)
    monkeypatch.setattr(fleet, "running_s", lambda: clock.now())
    try:
        wait_until(hear, "its first message", limit_s=30)
        one.kill_if_silent(0, "", 300)
        now = clock.now()
        clock.now = lambda: now + 1000  # an optimiser step, during which nobody looks
        one.send(0, Pause())
        one.kill_if_silent(0, "pausing", 300)
        before = copy.copy(heard)
        assert not any("silent" in str(said) for _, said in before + list(one.answers(wait_s=0.5)))
        clock.now = lambda: now + 1301
        one.kill_if_silent(0, "pausing", 300)
        heard.clear()
        wait_until(
            lambda: any("silent for 301 s while pausing" in str(said) for _, said in hear()), "its end", limit_s=30
        )
    finally:
        one.close()
