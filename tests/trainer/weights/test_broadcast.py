"""Weights from node to node: what arrives is what was published, and whatever breaks on the way is never used."""

import os
import pickle
import threading
from collections import Counter
from functools import partial

import pytest
from trainer.weights.test_stores import NAMES, assert_equal, part, weights_of
from waiting import wait_until

from scalerl.process_variables import environment_with
from scalerl.processes.authenticated import call, listen_on, serve_callers
from scalerl.weights import keeper as keeper_module
from scalerl.weights.broadcast import BroadcastStore
from scalerl.weights.keeper import TakeShare, WeightKeeper
from scalerl.weights.shared_memory import NODE_MEMORY
from scalerl.weights.store import UnusablePublication

KEY = b"k" * 32


class Nodes:
    """Keepers of several nodes, all in this process, with the lines of real ones; knows who gave to whom."""

    def __init__(self, count):
        self.keepers = [WeightKeeper(partial(call, key=KEY)) for _ in range(count)]
        self.listeners = [listen_on("127.0.0.1") for _ in range(count)]
        for node, listener in enumerate(self.listeners):
            serve = partial(self.give, node)
            threading.Thread(target=serve_callers, args=(listener, KEY, serve), daemon=True).start()
        self.memory, self.carried = self.keepers[0].memory, []
        self.gone, self.cut, self.after_cut = set(), {}, lambda: None
        """Nodes without a keeper; bytes after which (giver, taker) is cut off; what happens then."""

    def reaches(self, node):
        return node not in self.gone

    def node_name(self, node):
        return f"n{node}"

    def give(self, node, connection):
        share = pickle.loads(connection.recv_bytes())
        if node not in self.cut:
            self.keepers[node].give(connection, share)
            return
        with connection, open(self.keepers[node].memory.where, "rb") as memory:
            content = b"".join(os.pread(memory.fileno(), length, at) for at, length in (*share.tensors, *share.seals))
            assert self.cut[node] < len(content) == share.num_bytes
            os.write(connection.fileno(), content[: self.cut[node]])
            self.after_cut()

    def carry(self, share, giver, taker):
        self.carried.append((giver, taker))
        host, port = self.listeners[giver].getsockname()
        took = self.keepers[taker].take(TakeShare(number=1, host=host, port=port, share=share))
        if took.fault:
            raise ConnectionError(took.fault)

    def unit(self, node, store):
        """The store as a process of that node has it."""
        with environment_with({NODE_MEMORY: self.keepers[node].memory.where}):
            return pickle.loads(pickle.dumps(store))

    def close(self):
        for listener in self.listeners:
            listener.shutdown(2)
            listener.close()


@pytest.fixture
def make(tmp_path):
    """A store over so many nodes; node numbers of the ranks, and of the readers."""
    made = []

    def store_of(count, *, ranks=(0,), readers):
        nodes = Nodes(count)
        store = BroadcastStore(weights_of(0), nodes, tmp_path / "weights", ranks=ranks, readers=readers)
        made.append((nodes, store))
        return nodes, store, {node: nodes.unit(node, store) for node in range(count)}

    yield store_of
    for nodes, store in made:
        store.close()
        nodes.close()
    assert not (tmp_path / "weights").exists()


def publish(store, units, publication, version, *, ranks=(0,)):
    """Each rank publishes on its node, then the nodes of readers get it; returns the nodes told, in order."""
    weights, told = weights_of(version), []
    for rank, node in enumerate(ranks):
        units[node].publish(publication, version, part(weights, rank, len(ranks)), rank=rank, ranks=len(ranks))
    store.broadcast(publication, version)
    for node in store._readers:
        store.when_at(node, partial(told.append, node))
    wait_until(lambda: not store.is_broadcasting, "the end of the broadcast")
    return told


@pytest.mark.parametrize("ranks", [(0, 0, 1), (1, 2)])
def test_every_reader_gets_the_shares_of_all_nodes_and_is_told_once(make, ranks):
    readers = [0, 1, 2, 4]
    nodes, store, units = make(5, ranks=ranks, readers=readers)
    for publication, version in ((1, 7), (2, 8), (3, 9)):
        assert sorted(publish(store, units, publication, version, ranks=ranks)) == readers
        for node in readers:
            assert_equal(units[node].fetch(publication, version), weights_of(version))
    for node in readers:
        assert_equal(units[node].fetch(2, 8), weights_of(8))
    assert Counter(taker for _, taker in nodes.carried) == {
        node: 3 * len(set(ranks) - {node}) for node in readers if set(ranks) - {node}
    }
    assert not store.folder.has(3)


def test_nodes_pass_weights_on_in_a_tree(make):
    nodes, store, units = make(9, readers=range(1, 9))
    publish(store, units, 1, 1)
    for node in range(1, 9):
        assert_equal(units[node].fetch(1, 1), weights_of(1))
    giver_of = {taker: giver for giver, taker in nodes.carried}
    assert len(giver_of) == len(nodes.carried) == 8
    assert max(Counter(giver for giver, _ in nodes.carried).values()) == 4  # log2 of 9 nodes, rounded up

    def way(node):
        return 0 if node == 0 else 1 + way(giver_of[node])

    assert max(map(way, giver_of)) <= 4


@pytest.mark.parametrize("after", [1, 200])
def test_a_share_that_is_cut_off_is_refused_by_name_or_taken_from_the_folder(make, after, capfd):
    nodes, store, units = make(3, readers=(1, 2))
    publish(store, units, 1, 1)
    publish(store, units, 2, 2)
    nodes.cut[0] = after  # of 208 bytes: 112 of tensors, then four seals
    during = []

    def look():
        with pytest.raises(UnusablePublication, match=f"publication 3 is incomplete: it lacks {NAMES[0]}, {NAMES[1]},"):
            units[1].memory.fetch(3, 3)
        during.append(units[1].fetch(2, 2))

    nodes.after_cut = look
    assert sorted(publish(store, units, 3, 3)) == [1, 2]
    for node in (1, 2):
        with pytest.raises(UnusablePublication, match="publication 3 is incomplete"):
            units[node].memory.fetch(3, 3)
        assert_equal(units[node].fetch(3, 3), weights_of(3))
        assert_equal(units[node].fetch(2, 2), weights_of(2))
    assert len(during) == 4, "each node tried twice"
    said = capfd.readouterr().out
    assert "n1 cannot take weights from n0: EOFError: the other node closed the connection before the end" in said
    assert f"n2 takes weights from {store.folder.folder} from now on" in said
    nodes.carried.clear()
    nodes.cut.clear()
    publish(store, units, 4, 4)
    assert nodes.carried == [], "not tried again"
    assert_equal(units[2].fetch(4, 4), weights_of(4))


def test_a_share_that_is_overwritten_on_its_way_fails_its_checksum(make):
    nodes, store, units = make(2, readers=(1,))
    give = nodes.memory.give

    def overwritten(connection, share):
        units[0].memory.fetch(1, 1)[NAMES[1]].zero_()
        give(connection, share)

    nodes.memory.give = overwritten
    publish(store, units, 1, 1)
    with pytest.raises(UnusablePublication, match=f"publication 1 are damaged .*: {NAMES[1]}$"):
        units[1].fetch(1, 1)


def test_what_a_dead_node_was_to_pass_on_comes_from_where_it_was_published(make):
    nodes, store, units = make(4, readers=(1, 2, 3))
    nodes.cut[1] = 100  # it has been killed, and is known to be gone only later

    def gone():
        nodes.gone.add(1)

    nodes.after_cut = gone
    publish(store, units, 1, 1)
    assert set(nodes.carried) >= {(0, 1), (1, 2), (0, 2)}
    for node in (2, 3):
        assert_equal(units[node].memory.fetch(1, 1), weights_of(1))
    nodes.carried.clear()
    assert sorted(publish(store, units, 2, 2)) == [1, 2, 3]
    assert 1 not in {taker for _, taker in nodes.carried}
    assert not store.folder.has(2)


def test_the_first_node_fetches_what_ranks_of_other_nodes_have_published(make):
    ranks = (1, 2, 0)
    nodes, store, units = make(3, ranks=ranks, readers=(2,))
    publish(store, units, 1, 1, ranks=ranks)
    assert (1, 0) not in nodes.carried
    assert_equal(store.fetch(1, 1), weights_of(1))
    with pytest.raises(UnusablePublication, match="publication 1 holds version 1 of the weights, not 2"):
        store.fetch(1, 2)
    nodes.cut[1] = 5
    for rank, node in enumerate(ranks):
        units[node].publish(2, 2, part(weights_of(2), rank, 3), rank=rank, ranks=3)
    with pytest.raises(UnusablePublication, match=r"^publication 2 did not arrive from n1: EOFError"):
        store.fetch(2, 2)


def test_a_node_that_says_nothing_holds_a_transfer_up_only_for_a_while(make, monkeypatch):
    monkeypatch.setattr(keeper_module, "STALL_LIMIT_S", 1)
    nodes, store, units = make(2, readers=(1,))
    release = threading.Event()
    nodes.keepers[0].memory.give = lambda *_: release.wait(60)
    assert publish(store, units, 1, 1) == [1]
    release.set()
    assert_equal(units[1].fetch(1, 1), weights_of(1))
    assert store._cut_off == {1}
