"""Weights between agents: a keeper, a rank or a receiver is killed in the middle, and nothing torn is ever used."""

import os
import pickle
import signal
import socket
import threading
import time

import pytest
import torch
from trainer.processes.test_agents import meeting, unit
from trainer.processes.weight_units import LAYERS, RankUnit, ReaderUnit, large_weights
from waiting import wait_until

from scalerl.weights.broadcast import BroadcastStore
from scalerl.weights.store import UnusablePublication, names_of_rank

NOTICED_S = 10.0


def test_keepers_a_rank_and_a_receiver_are_killed_in_the_middle(tmp_path, monkeypatch, capfd):
    with meeting(tmp_path, 4, monkeypatch) as (coordinator, launcher, agents):
        store = BroadcastStore(large_weights(0), coordinator, tmp_path / "weights", ranks=(0, 1), readers=(2, 3))

        def start(node, work):
            return launcher.start(unit(node, node), pickle.dumps(work)).connect()

        rank = start(1, RankUnit(store=store, rank=1, ranks=2))
        readers = {node: start(node, ReaderUnit(store=store)) for node in (2, 3)}

        def publish(number):
            rank.send((number, False))
            weights = large_weights(number)
            own = {name: weights[name] for name in names_of_rank(weights, 0, 2)}
            store.publish(number, number, own, rank=0, ranks=2)
            assert rank.recv() == "published"

        def broadcast(number):
            began, told = time.monotonic(), []
            store.broadcast(number, number)
            for node in (2, 3):
                store.when_at(node, lambda node=node: told.append(node))
            wait_until(lambda: not store.is_broadcasting, "the end of the broadcast")
            assert sorted(told) == [2, 3]
            assert time.monotonic() - began < NOTICED_S

        def fetched(node, number):
            readers[node].send(number)
            return readers[node].recv()

        for number in (1, 2):
            publish(number)
            broadcast(number)
            assert [fetched(node, number) for node in (2, 3)] == ["whole", "whole"]
        # The keeper of node 2 is killed while it takes weights from this node; node 3 gets them all the same.
        give, given = coordinator.memory.give, []

        def give_and_kill(connection, share):
            if not given:
                os.kill(agents[1].pid, signal.SIGSTOP)
                threading.Timer(0.5, agents[1].kill).start()
            given.append(share)
            give(connection, share)

        monkeypatch.setattr(coordinator.memory, "give", give_and_kill)
        publish(3)
        broadcast(3)
        assert not coordinator.reaches(2)
        assert fetched(3, 3) == "whole"
        assert not store.folder.has(3)
        # The rank is killed between two tensors. The run would end; whoever reads on is told what is missing.
        rank.send((4, True))
        with pytest.raises((EOFError, OSError)):
            rank.recv()
        store.broadcast(4, 4)
        wait_until(lambda: not store.is_broadcasting, "the end of the broadcast")
        said = fetched(3, 4)
        assert said.startswith("publication 4 is incomplete: it lacks ")
        assert f"model.layers.{LAYERS - 2}.weight" in said, "the second tensor of the rank"
        assert fetched(3, 3) == "whole"
        # The keeper of the rank's node is killed while this node takes weights from it.
        take = coordinator.memory.take

        def kill_and_take(connection, share):
            os.kill(agents[0].pid, signal.SIGSTOP)
            threading.Timer(0.5, agents[0].kill).start()
            take(connection, share)

        monkeypatch.setattr(coordinator.memory, "take", kill_and_take)
        # Linux may take 32 MB for a reader that waits: all of the share, before the keeper is stopped.
        call = coordinator._keeper._call

        def with_a_small_buffer(host, port):
            connection = call(host, port)
            with socket.socket(fileno=os.dup(connection.fileno())) as ours:
                ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
            return connection

        monkeypatch.setattr(coordinator._keeper, "_call", with_a_small_buffer)
        # A keeper that has given everything before it is stopped has given it whole.
        found, said = None, ""
        try:
            found = store.fetch(3, 3)
        except UnusablePublication as error:
            said = str(error)
        if found is None:
            assert said.startswith("publication 3 did not arrive from fake1: ")
        else:
            expected = large_weights(3)
            assert found.keys() == expected.keys()
            assert all(torch.equal(found[name], expected[name]) for name in found)
        assert fetched(3, 3) == "whole"
        store.close()
    assert "takes weights from" not in capfd.readouterr().out
