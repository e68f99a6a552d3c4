"""The handshake between nodes: who lacks the key, speaks another protocol, or repeats what was said is refused."""

import hashlib
import socket
import threading
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection

import pytest

from scalerl.processes import authenticated
from scalerl.processes.authenticated import NONCE_BYTES, PROOF_BYTES, PROTOCOL, call, let_in, listen_on

KEY = b"k" * 32


@pytest.fixture
def listener():
    with listen_on("127.0.0.1") as ours:
        ours.settimeout(60)
        yield ours


class Listening(threading.Thread):
    """Lets one caller in; `found` is the connection or the error."""

    def __init__(self, listener):
        super().__init__(daemon=True)
        self.listener = listener
        self.found: Connection | Exception | None = None
        self.start()

    def run(self):
        try:
            self.found = let_in(self.listener.accept()[0], KEY)
        except Exception as error:
            self.found = error

    def result(self):
        self.join(60)
        return self.found


def call_with(listener, key):
    """A call of the listener by one that has this key."""
    host, port = listener.getsockname()
    return call(host, port, key)


def raw_connection(raw):
    """A connection on this socket that has not said anything."""
    raw.settimeout(None)
    return Connection(raw.detach())


def raw_call(listener):
    return raw_connection(socket.create_connection(listener.getsockname(), timeout=60))


def test_both_ends_that_know_the_key_can_talk_without_md5(listener, monkeypatch):
    """Machines in FIPS mode have no MD5, which the handshake of Python 3.11 needs."""
    monkeypatch.setattr(hashlib, "md5", lambda *_, **__: pytest.fail("MD5"))
    there = Listening(listener)
    with call_with(listener, KEY) as here:
        assert isinstance(there.result(), Connection)
        here.send_bytes(b"a" * 100_000)
        assert there.found.recv_bytes() == b"a" * 100_000
        there.found.close()


def test_another_key_is_refused_at_both_ends(listener):
    there = Listening(listener)
    with pytest.raises(AuthenticationError, match="does not know the key"):
        call_with(listener, b"other" * 6)
    assert isinstance(there.result(), AuthenticationError)
    assert "does not know the key" in str(there.found)


def test_another_protocol_is_named_at_both_ends(listener):
    there = Listening(listener)
    connection = raw_call(listener)
    assert connection.recv_bytes().startswith(PROTOCOL)
    connection.send_bytes(b"scalerl-nodes-9\n" + bytes(NONCE_BYTES + PROOF_BYTES))
    assert str(there.result()) == "the other node speaks 'scalerl-nodes-9', this one 'scalerl-nodes-3'"
    older = threading.Thread(target=lambda: raw_connection(listener.accept()[0]).send_bytes(b"#CHALLENGE#" + bytes(20)))
    older.start()
    with pytest.raises(AuthenticationError, match="the other node speaks '#CHALLENGE#"):
        call_with(listener, KEY)
    older.join(60)


def test_what_one_caller_has_said_lets_no_other_in(listener):
    """A proof is for one nonce of the listener."""
    there = Listening(listener)
    connection = raw_call(listener)
    said, own = connection.recv_bytes()[len(PROTOCOL) :], b"n" * NONCE_BYTES
    heard = PROTOCOL + own + authenticated._proof(KEY, b"caller", PROTOCOL + said + own)
    connection.send_bytes(heard)
    assert isinstance(there.result(), Connection)
    again = Listening(listener)
    connection = raw_call(listener)
    connection.recv_bytes()
    connection.send_bytes(heard)
    assert isinstance(again.result(), AuthenticationError)


@pytest.mark.parametrize("role", [b"listener", b""])
def test_a_proof_of_the_other_role_is_refused(listener, role):
    """What a listener has proved cannot be sent back to it."""
    there = Listening(listener)
    connection = raw_call(listener)
    said, own = connection.recv_bytes()[len(PROTOCOL) :], b"n" * NONCE_BYTES
    connection.send_bytes(PROTOCOL + own + authenticated._proof(KEY, role, PROTOCOL + said + own))
    assert isinstance(there.result(), AuthenticationError)


@pytest.mark.parametrize("garbage", [b"", b"GET / HTTP/1.1\r\n", PROTOCOL, PROTOCOL + b"x" * NONCE_BYTES, b"y" * 999])
def test_garbage_is_refused(listener, garbage):
    there = Listening(listener)
    connection = raw_call(listener)
    connection.recv_bytes()
    connection.send_bytes(garbage)
    assert isinstance(there.result(), AuthenticationError | OSError)
