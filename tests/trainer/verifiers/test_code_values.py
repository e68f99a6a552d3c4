"""Equality of returned and expected values, in a time that grows with their size alone."""

import json
import time
from itertools import product

import pytest
from trainer.verifiers.test_code_tests import VALUES

from scalerl.verifiers.programs.code_values import same
from scalerl.verifiers.programs.python_test_wire import to_wire

NAN, INF = float("nan"), float("inf")
OTHER = object()


def wire_of(value):
    """A value as it comes out of the sandbox."""
    return json.loads(json.dumps(to_wire(value, lambda other: {"other": type(other).__name__})))


# Ordinary numbers and texts are in `programs.jsonl`.
SAME = [
    (1e20, 1e20 * (1 + 5e-10)), (0.25, 0.25 * (1 + 5e-7)), (1.0, True), ({"a": 0.1 + 0.2}, {"a": 0.3}), ([NAN], [NAN]),
    (1e-10, 0.0), (NAN, NAN), (INF, INF), (10**308, 1e308), ([], ()), ({1: "a"}, {"1": "a"}),
    ({(1, 2): 3}, {(1, 2): 3}), ({1, 2}, frozenset({2, 1})), (None, None), (bytearray(b"a"), b"a"), (4, 4 + 0j),
    ({"a": 1}.keys(), {"a"}), ({"a": 1}.items(), {("a", 1)}), ({1: 2}, {True: 2}), ({(1, 2.0): [3]}, {(1, 2): (3,)}),
    ({frozenset({1, (2, "x")})}, {frozenset({(2, "x"), 1})}), ({10**5000: 1, 0.5: 2}, {10**5000: 1, 0.5: 2}),
    ({-0.0: {}}, {0: {}}), ({None: b""}, {None: b""}), ({"\ud800": 1}, {"\ud800": 1}), ({2**53: 1}, {2.0**53: 1}),
]  # fmt: skip
DIFFERENT = [
    ("4", 4), (None, 0), (None, False), (1e20, 1e20 * (1 + 5e-9)), ("4.0", 4.0), (INF, NAN), (INF, 10.0), (1e-8, 0.0),
    (NAN, 1.0), (1.0, NAN), (10**400, INF), (10**400, 1.0), (1.0, 10**400), (NAN, 10**400), (-INF, INF),
    (1.7e308, -1.7e308), ({10**5000: 1}, {"1": 1}), ([1, 2], [2, 1]), ([1], [1, 1]), ([1, 1], [1]), ([1], {1}),
    ({1}, [1]), ("ab", ["a", "b"]), ({"a": 1}, {"a": 1, "b": 2}), ({"a": 1, "b": 2}, {"a": 1}), ({1: 1}, {2: 1}),
    ({}, []), ({}, set()), (set(), {}), (OTHER, None), (OTHER, "object"), ("", None), ({"1": 1}, {1: 1}), ({"1"}, {1}),
    ({1}, {"1"}), ({1.0: 1}, {"1.0": 1}), ({True: 1}, {"True": 1}), ({b"a"}, {"a"}), ({(1, 2)}, {(2, 1)}),
    ({("a", "b")}, {("ab",)}), ({("a,b",)}, {("a", "b")}), ({(1, (2,))}, {(1, 2)}), ({2**53 + 1: 1}, {2.0**53: 1}),
    ({0.1 + 0.2}, {0.3}), ({frozenset({1})}, {(1,)}), ({"a": 1}.values(), [1]), (range(2), [0, 1]), ("None", None),
]  # fmt: skip


def test_values_are_the_same_up_to_rounding_and_the_kind_of_list():
    assert [pair for pair in SAME if not same(wire_of(pair[0]), pair[1])] == []
    assert [pair for pair in DIFFERENT if same(wire_of(pair[0]), pair[1])] == []


def test_two_different_values_are_never_the_same_and_comparing_them_never_raises():
    for i, answer in enumerate(VALUES):
        wire = wire_of(answer)
        for j, expected in enumerate(VALUES):
            equal = i == j or (answer in (0, -0.0) and expected in (0, -0.0))
            assert same(wire, expected) == equal, (answer, expected)


KEYS = [
    0, 1, True, -1, 0.5, 2.0, 2, 3 + 0j, 3, 1j, -1j, "", "1", "x", b"", b"x", None, (), (1,), (1.0,), ("1",), (1, 2),
    ((1,), 2), frozenset(), frozenset({1}), frozenset({1.0, 2}), frozenset({2, True}), INF, -INF, 10**30, 1e30, -0.0,
    (None, "x"),
]  # fmt: skip


def test_members_and_keys_are_equal_exactly_where_python_calls_them_equal():
    for answer, expected in product(KEYS, KEYS):
        assert same(wire_of({answer}), {expected}) == (answer == expected), (answer, expected)
        is_text_of = expected == str(answer) and type(answer) is int
        assert same(wire_of({answer: 1}), {expected: 1}) == (answer == expected or is_text_of), (answer, expected)


COLLIDING = 2**61 - 1
"""Its multiples all have the hash 0."""


@pytest.mark.parametrize("kind", ["set", "dict", "frozenset in a set", "tuples", "keys"])
def test_keys_that_all_collide_take_no_more_than_their_number(kind):
    def forged(count):
        keys = [{"int": hex(COLLIDING * n)} for n in range(count)]
        tuples = [{"tuple": [key]} for key in keys]
        return {
            "set": {"set": keys},
            "dict": {"dict": [[key, 1] for key in keys]},
            "frozenset in a set": {"set": [{"frozenset": keys}]},
            "tuples": {"set": tuples},
            "keys": {"keys": keys},
        }[kind]

    def seconds(count):
        wire, began = forged(count), time.thread_time()
        assert not same(wire, {0: 1} if kind == "dict" else {0})
        return time.thread_time() - began

    small, large = (min(seconds(count) for _ in range(2)) for count in (2_000, 16_000))
    # Eight times the keys: 8 times the time, and 64 if each were compared with all others.
    assert large < 24 * small + 0.05


@pytest.mark.parametrize("wire", [{"set": [{"list": []}]}, {"set": [{"set": []}]}, {"dict": [[{"bytearray": ""}, 1]]}])
def test_what_cannot_be_a_key_is_no_key(wire):
    with pytest.raises(TypeError, match="is no key"):
        same(wire, {1: 1} if "dict" in wire else {1})
