"""Agent programs over HTTP: what the policy reads is exact, and what goes wrong costs the program's own episode."""

import json

import pytest
from trainer.agent_programs import played, programs_of, turn_of

from scalerl.environments.programs import Asking
from scalerl.environments.protocol import Reply, Start

EOS = 1


def ids(text):
    """Token ids of ASCII text: four special tokens stand before the bytes."""
    return tuple(byte + 4 for byte in text.encode())


@pytest.fixture
def made(tmp_path):
    programs = []

    def make(code, **settings):
        programs.append(programs_of(tmp_path, code, **settings))
        return programs[-1]

    yield make
    for one in programs:
        one.close()


def test_a_request_that_continues_a_conversation_adds_only_what_is_new(made):
    code = """
first = [("system", "Play."), ("user", "1-9")]
one = said(*first)
two = said(*first, ("assistant", one), ("tool", "+"), ("user", "on"))
end(0.5)
"""
    asked, ends = played(made(code), ["4", "6"])
    first, second = asked[0]
    assert (first.tokens, first.after) == (ids("Play.\n1-9"), None)
    assert (second.tokens, second.after) == (ids("+\non"), 0)  # "4" and its end are those that were sampled
    assert ends[0] == Reply("", 0.5, "won")


def test_a_turn_that_was_cut_is_ended_before_what_is_said_next(made):
    programs = made('one = said(("user", "a"))\nsaid(("user", "a"), ("assistant", one), ("user", "b"))\nend(0)')
    programs.start(0, Start(seed=0))
    programs.replies()
    programs.act(0, "xy", turn_of("xy", ends=False))
    assert [one.tokens for _, one in programs.replies()] == [(EOS, *ids("b"))]


def test_a_rewritten_history_begins_a_conversation_and_a_branch_shares_what_was_before_it(made):
    code = """
a = ("user", "a")
one = ("assistant", said(a))
two = ("assistant", said(a, one, ("user", "b")))
said(a, one, ("user", "c"))                 # a branch after the first turn
said(("user", "summary"), ("user", "d"))    # a history that was rewritten
said(a, ("assistant", "other"), ("user", "b"))
end(-1, end="rules_broken")
"""
    asked, ends = played(made(code, turns=9), ["1", "2", "3", "4", "5"])
    assert [(one.tokens, one.after) for one in asked[0]] == [
        (ids("a"), None),
        (ids("b"), 0),
        (ids("c"), 0),
        (ids("summary\nd"), None),
        (ids("a\nother\nb"), None),
    ]
    assert ends[0] == Reply("", -1.0, "rules_broken")


def test_the_answer_has_ids_log_probabilities_usage_and_the_reason_of_its_end(made, tmp_path):
    code = """
models = json.load(urllib.request.urlopen(os.environ["OPENAI_BASE_URL"] + "/models"))
answer = ask(("user", "a"), logprobs=True, max_tokens=3, model=models["data"][0]["id"])
open("answer.json", "w").write(json.dumps(answer))
end(1)
"""
    programs = made(code)
    programs.start(0, Start(seed=0))
    [(_, asking)] = programs.replies()
    assert asking == Asking(tokens=ids("a"), after=None, most=3)
    programs.act(0, "xy", turn_of("xy", ends=False))
    assert programs.replies() == [(0, Reply("", 1.0, "won"))]
    told = json.loads((tmp_path / "answer.json").read_text())
    assert told["prompt_token_ids"] == list(ids("a"))
    assert told["usage"] == {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    [choice] = told["choices"]
    assert choice["token_ids"] == list(ids("xy"))
    assert [(one["token"], one["logprob"]) for one in choice["logprobs"]["content"]] == [("x", -0.5), ("y", -1.5)]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("xy", "length")


def test_a_stream_has_the_same_answer_in_events(made, tmp_path):
    code = """
events = ask(("user", "a"), stream=True, stream_options={"include_usage": True})
open("events.txt", "w").write(events)
end(1)
"""
    programs = made(code)
    played(programs, ["xy"])
    *events, last = (tmp_path / "events.txt").read_text().strip().split("\n\n")
    assert last == "data: [DONE]"
    first, second, usage = [json.loads(one.removeprefix("data: ")) for one in events]
    assert first["object"] == "chat.completion.chunk"
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": "xy"}
    assert second["choices"][0]["finish_reason"] == "stop"
    assert (usage["choices"], usage["usage"]["total_tokens"]) == ([], 4)


def test_nonsense_is_refused_with_a_sentence_and_the_program_goes_on(made, tmp_path):
    code = """
user = ("user", "a")
refused = [
    ask(user, key="sk-none"), ask(user, path="/completions"), ask(user, content=b"{"), ask(user, content=b"[]"),
    ask(), ask(("robot", "a")), ask(("user", 7)), ask(user, temperature=0.2), ask(user, n=2), ask(user, max_tokens=0),
    ask(user, tools=[{"type": "function"}]), ask(user, stop=["x"]), ask(("user", "a" * 300)),
]
said(("user", [{"type": "text", "text": "a"}]), temperature=1, n=1, tools=[])
open("refused.json", "w").write(json.dumps(refused))
end(1)
"""
    programs = made(code)
    asked, ends = played(programs, ["1"])
    assert [one.tokens for one in asked[0]] == [ids("a")]
    assert ends[0].end == "won"
    found = json.loads((tmp_path / "refused.json").read_text())
    expected = [
        (401, "the key is none of"), (404, "no page /v1/completions"), (400, "the body is not JSON"),
        (400, "the body is not a JSON object"), (400, "messages is []"), (400, "must be one of system"),
        (400, "content is 7"), (400, "temperature is 0.2; must be absent or 1.0"), (400, "n is 2"),
        (400, "max_tokens is 0"), (400, "tools is"), (400, "stop is"), (400, "more than the context of 200"),
    ]  # fmt: skip
    for (status, message), (right_status, right_message) in zip(found, expected, strict=True):
        assert status == right_status
        assert right_message in message


FAULTS = {
    "import time\nsaid(('user', 'a'))\ntime.sleep(60)": ("timed_out", "took more than 1 s"),
    "said(('user', 'a'))\nraise KeyError('lost')": ("error", "the program ended with code 1: KeyError: 'lost'"),
    "said(('user', 'a'))\nos.kill(os.getpid(), 9)": ("error", "the program ended with code -9"),
    "said(('user', 'a'))\nprint('{')": ("error", "the last line that the program printed is '{'"),
    "said(('user', 'a'))\nend(float('nan'))": ("error", "the last line"),
    "said(('user', 'a'))\nend(True)": ("error", "the last line"),
    "said(('user', 'a'))\nend(1, end='fine')": ("error", "the last line"),
    "end(1)": ("error", "the program ended without asking the policy"),
    "while True: said(('user', 'a'))": ("too_many_turns", "after it had met this limit"),
    "t = 'a' * 30\nwhile True: said(('user', t)); t += t": ("too_long", "after it had met this limit"),
}


@pytest.mark.parametrize("code", FAULTS)
def test_a_program_that_hangs_dies_or_prints_nonsense_ends_with_the_reason(made, code):
    end, why = FAULTS[code]
    limit = 1 if "sleep" in code else 20
    _, ends = played(made(code, time_limit_s=limit), ["1"] * 9)
    assert ends[0].end == end
    assert why in ends[0].text


def test_a_program_that_does_not_start_is_named(tmp_path):
    programs = programs_of(tmp_path, "")
    programs.program = programs.program.model_copy(update={"command": ("no-such-program",)})
    programs.start(0, Start(seed=0))
    [(_, reply)] = programs.replies()
    assert reply.end == "error"
    assert "'no-such-program' does not start" in reply.text


def test_ten_agents_work_at_once_and_are_told_in_order(made):
    code = """
import time
time.sleep(0.05 * (9 - episode["seed"]))  # the last one asks first
end(float(said(("user", f"{episode['seed']} {episode['row']['level']}"))))
"""
    programs = made(code)
    for key in range(10):
        programs.start(key, Start(seed=key, row={"level": -key}))
    found = programs.replies()
    assert [(key, one.tokens) for key, one in found] == [(key, ids(f"{key} {-key}")) for key in range(10)]
    for key in reversed(range(10)):
        programs.act(key, str(key), turn_of(str(key)))
    assert programs.replies() == [(key, Reply("", float(key), "won" if key else "lost")) for key in range(10)]


REPEATED = """
one = said(("user", "a"))
ask(("user", "x" * 300))  # refused, and again when it is repeated
two = said(("user", "a"), ("assistant", one), ("user", WORD))
end(float(two))
"""


@pytest.mark.parametrize("is_equal", [True, False])
def test_a_program_started_again_gets_its_answers_or_is_lost_if_it_asks_something_else(made, is_equal):
    before = made(f"WORD = 'b'\n{REPEATED}")
    before.start(0, Start(seed=0))
    before.replies()
    before.act(0, "7", turn_of("7"))
    [(_, pending)] = before.replies()
    assert pending == Asking(tokens=ids("b"), after=0, most=8)
    state = before.state_dict()
    before.close()
    after = made(f"WORD = {'b' if is_equal else 'c'!r}\n{REPEATED}")
    after.load_state_dict(state)
    assert after.replies() == []  # nothing is asked twice
    after.act(0, "3", turn_of("3"))  # the generator ends the turn that it was in
    [(_, reply)] = after.replies()
    lost = "started again, the program asked something else than before"
    assert reply == (Reply("", 3.0, "won") if is_equal else Reply(lost, end="error"))
