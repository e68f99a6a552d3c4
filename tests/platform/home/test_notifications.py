"""What a sweep's webhook is told: everything once, in a body that chat services take, and never its own address."""

from dataclasses import replace

import pytest
from fixtures_home import make_home, planned_run

from ablations.errors import AblationsError
from ablations.home.notifications import MOST_CHARACTERS, require_address, tell_webhook
from ablations.home.state import RunState, State

ALL = ("failed", "held", "done", "warning")


@pytest.fixture
def sweep(tmp_path):
    """A sweep of three runs with a webhook that wants everything."""
    made = make_home(tmp_path)
    return replace(made, plan=replace(made.plan, notify={"url": "$HOOK", "on": ALL}))


def states(**changed):
    found = dict.fromkeys(("scalerl", "loo-loss", "loo-curriculum"), RunState(state=State.RUNNING, attempt=1))
    found |= {name.replace("_", "-"): state for name, state in changed.items()}
    return {planned_run(name, 0).id: state for name, state in found.items()}


FAILED = RunState(state=State.FAILED, attempt=1, message="loss is not finite at step 12")
DONE = RunState(state=State.DONE, attempt=1)


def test_every_event_is_told_once_and_a_new_attempt_anew(hook, sweep):
    assert tell_webhook(sweep, states()) == ""
    assert hook.bodies == []
    for _ in range(2):
        assert tell_webhook(sweep, states(loo_loss=FAILED)) == ""
    (body,) = hook.bodies
    assert body["text"] == body["content"] == "loo: loo-loss-s0 failed: loss is not finite at step 12"
    assert body["sweep"] == "loo"
    assert [one["kind"] for one in body["events"]] == ["failed"]
    tell_webhook(sweep, states(loo_loss=replace(FAILED, attempt=2)))
    assert len(hook.bodies) == 2
    tell_webhook(sweep, states(scalerl=DONE, loo_loss=DONE, loo_curriculum=DONE))
    assert hook.bodies[2]["text"].startswith("loo: all 3 runs have ended")


def test_only_what_was_asked_for_is_told(hook, sweep):
    few = replace(sweep, plan=replace(sweep.plan, notify={"url": "$HOOK", "on": ["held"]}))
    tell_webhook(few, states(loo_loss=FAILED), "3 runs in a row failed: CUDA error")
    assert [body["text"] for body in hook.bodies] == ["loo: waiting runs are held: 3 runs in a row failed: CUDA error"]
    without = replace(sweep, plan=replace(sweep.plan, notify=None))
    assert tell_webhook(without, states(loo_loss=FAILED)) == ""


def test_a_long_message_is_cut_to_what_chats_take_and_a_warning_whose_figures_change_is_one(hook, sweep):
    tell_webhook(sweep, states(loo_loss=replace(FAILED, message="x" * 5000)))
    (body,) = hook.bodies
    assert len(body["content"]) == MOST_CHARACTERS
    assert len(body["events"][0]["text"]) > 5000
    for share in ("12", "14.5"):
        warned = RunState(state=State.RUNNING, attempt=1, warnings=(f"{share}% of answers are cut off",))
        tell_webhook(sweep, states(scalerl=warned))
    assert [body["text"] for body in hook.bodies[1:]] == ["loo: scalerl-s0: warning: 12% of answers are cut off"]


@pytest.mark.parametrize("status", [302, 500])
def test_what_a_webhook_refuses_is_told_at_the_next_look(hook, sweep, status):
    hook.status = status
    assert tell_webhook(sweep, states(loo_loss=FAILED)) == f"could not tell $HOOK: HTTP status {status}"
    hook.status = 200
    assert tell_webhook(sweep, states(loo_loss=FAILED)) == ""
    assert len(hook.bodies) == 1


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/secret", "http://[secret", "ftp://secret/x", ""])
def test_an_address_that_leads_nowhere_costs_nothing_and_is_never_said(monkeypatch, sweep, address):
    monkeypatch.setenv("HOOK", address)
    said = tell_webhook(sweep, states(loo_loss=FAILED))
    assert said.startswith("could not tell $HOOK: ")
    assert "secret" not in said
    assert not (sweep.folder / "notified.json").exists()


def test_a_sweep_is_refused_whose_address_is_not_set(monkeypatch, sweep):
    monkeypatch.delenv("HOOK", raising=False)
    with pytest.raises(AblationsError, match=r"notify.url is \$HOOK, which is not set; export it"):
        require_address(sweep)
    monkeypatch.setenv("HOOK", "https://example.org")
    require_address(sweep)
