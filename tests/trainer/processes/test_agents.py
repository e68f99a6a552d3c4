"""Processes on other nodes: who is let in, who starts what, and what is noticed when something dies."""

import os
import pickle
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from multiprocessing import AuthenticationError

import pytest
from trainer.processes.agents import agents, echo, end_by_itself, is_alive, parent_of, place, with_a_child
from waiting import wait_until

from scalerl.cluster.placement import PlacedUnit
from scalerl.errors import Interrupted
from scalerl.processes import agent as agent_module
from scalerl.processes import coordinator as coordinator_module
from scalerl.processes.agent import serve_node
from scalerl.processes.authenticated import call, give_up_soon, interface_of, let_in, listen_on
from scalerl.processes.coordinator import Coordinator
from scalerl.processes.meeting_file import MeetingIsOver, read_meeting, write_ended
from scalerl.signals import TO_ALL_PROCESSES

NOTICED_S = 10.0


def unit(index, node, devices=()):
    return PlacedUnit(role="generator", index=index, node=node, devices=devices)


@contextmanager
def meeting(folder, nodes, monkeypatch):
    """A coordinator with all its agents, and a launcher."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "")  # given back after the test
    monkeypatch.delenv("GLOO_SOCKET_IFNAME")
    with (
        closing(Coordinator(folder, place(0, nodes), attempt=2, listen="127.0.0.1")) as coordinator,
        agents(folder, nodes) as processes,
    ):
        coordinator.await_agents()
        yield coordinator, coordinator, processes
        coordinator.close()
        for process in processes:
            process.wait(NOTICED_S)


@pytest.fixture(scope="module")
def three_nodes(tmp_path_factory):
    """The folder, the coordinator, a launcher and the agents of a meeting that the tests below leave as it was."""
    folder = tmp_path_factory.mktemp("meeting")
    with pytest.MonkeyPatch.context() as patch:
        with meeting(folder, 3, patch) as (coordinator, launcher, processes):
            yield folder, coordinator, launcher, processes
        assert [process.returncode for process in processes] == [0, 0]


def test_units_start_on_their_nodes_and_end_when_they_are_told(three_nodes, monkeypatch):
    _, coordinator, launcher, processes = three_nodes
    assert [coordinator.node_name(node) for node in range(3)] == ["fake0", "fake1", "fake2"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6")  # of this process, not of the agents
    bodies = [launcher.start(unit(node, node, (node,)), pickle.dumps(echo)) for node in range(3)]
    said = [body.connect().recv() for body in bodies]
    assert [visible for _, visible in said] == ["4", "1", "2"]
    assert [process for process, _ in said] == [body.process_id for body in bodies]
    assert [parent_of(process) for process, _ in said] == [os.getpid(), *(agent.pid for agent in processes)]
    # A long message arrives whole: what a unit is started with may hold a model.
    large = os.urandom(1 << 20) * 64
    bodies[1].connect().send(large)
    assert bodies[1].connect().recv() == large
    for body in bodies:
        body.kill()
    assert [body.bury() for body in bodies] == [-9, -9, -9]
    assert not any(is_alive(process) for process, _ in said)


def test_how_a_unit_ended_is_told_and_what_it_had_started_is_ended(three_nodes):
    _, _, launcher, _ = three_nodes
    by_itself = launcher.start(unit(0, 1), pickle.dumps(end_by_itself))
    assert by_itself.connect().recv() == "before"
    with pytest.raises(EOFError):
        by_itself.connect().recv()
    assert by_itself.bury() == 3
    killed = launcher.start(unit(0, 1), pickle.dumps(with_a_child))
    process, child = killed.connect().recv()
    os.kill(process, signal.SIGKILL)
    assert killed.bury() == -9
    wait_until(lambda: not is_alive(child), "the end of what the unit had started", limit_s=NOTICED_S)


def test_an_agent_that_dies_takes_its_units_with_it_and_the_others_go_on(tmp_path, monkeypatch):
    with meeting(tmp_path, 3, monkeypatch) as (coordinator, launcher, processes):
        lost, stays = (launcher.start(unit(node, node), pickle.dumps(with_a_child)) for node in (1, 2))
        process, child = lost.connect().recv()
        stays.connect().recv()
        stays.connect().recv()
        lost.connect().recv()
        killed = time.monotonic()
        processes[0].kill()
        with pytest.raises((EOFError, ConnectionError)):
            lost.connect().recv()
        assert lost.bury() is None, "nobody knows how it ended"
        assert time.monotonic() - killed < NOTICED_S
        wait_until(lambda: not is_alive(process) and not is_alive(child), "its processes' end", limit_s=NOTICED_S)
        assert not launcher.reaches(1)
        assert launcher.reaches(2)
        again = launcher.start(unit(0, 1), pickle.dumps(echo))
        with pytest.raises(EOFError):
            again.connect()
        assert again.bury() is None
        stays.connect().send("still here")
        assert stays.connect().recv() == "still here"
        with pytest.raises(Interrupted, match="of 3 nodes, these have no connected agent: 1;"):
            coordinator.await_agents()


def test_signals_of_a_job_end_neither_an_agent_nor_its_units(three_nodes):
    _, _, launcher, (agent, _) = three_nodes
    body = launcher.start(unit(0, 1), pickle.dumps(echo))
    process, _ = body.connect().recv()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2):
        for one in (agent.pid, process):
            os.kill(one, number)
        body.connect().send(f"there after {number}")
        assert body.connect().recv() == f"there after {number}"
    assert agent.poll() is None


def test_the_meeting_file_is_for_its_owner_alone_and_of_one_attempt(tmp_path):
    left_over = tmp_path / f".meeting.json.{os.getpid()}.tmp"  # by somebody who would read the key
    left_over.touch()
    left_over.chmod(0o666)
    with closing(Coordinator(tmp_path, place(0, 2, "17.0"), attempt=3, listen="127.0.0.1")):
        (path,) = tmp_path.iterdir()
        assert path.name == "meeting.json"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        point = read_meeting(tmp_path, "17.0")
        assert point is not None
        assert (point.hosts, point.attempt, len(point.key)) == (("127.0.0.1",), 3, 32)
        assert read_meeting(tmp_path, "17.1") is None, "a job that came back meets its own coordinator"
    with pytest.raises(MeetingIsOver):
        read_meeting(tmp_path, "17.0")
    assert b"key" not in path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_who_does_not_know_the_key_gets_nothing_and_holds_nobody_up(three_nodes, tmp_path, capfd):
    unpickled = tmp_path / "unpickled"
    folder, _, launcher, _ = three_nodes
    point = read_meeting(folder, "1.0")
    with pytest.raises(AuthenticationError, match="does not know the key"):
        call("127.0.0.1", point.port, b"another key")
    silent = socket.create_connection(("127.0.0.1", point.port))
    garbage = socket.create_connection(("127.0.0.1", point.port))
    garbage.sendall(b"\0\0\0\x04cos\n" + pickle.dumps(Touch(str(unpickled))))
    body = launcher.start(unit(0, 1), pickle.dumps(echo))
    assert body.connect().recv()
    assert silent.recv(1000)  # it was asked for the key
    wait_until(lambda: silent.recv(1000) == b"", "the end of the silent caller")
    garbage.close()
    silent.close()
    said: list[str] = []

    def num_rejected() -> int:
        said.append(capfd.readouterr().out)
        return "".join(said).count("rejected a connection")

    wait_until(lambda: num_rejected() == 3, "the end of the threads that turned a caller away")
    assert not unpickled.exists()


class Touch:
    """Pickled, it leaves a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_agents_that_come_late_go_home_and_those_that_wait_say_for_what(tmp_path, monkeypatch, capfd):
    ignored = {number: signal.getsignal(number) for number in TO_ALL_PROCESSES}
    try:
        write_ended(tmp_path, "1.0")
        serve_node(tmp_path, place(1, 2))
        assert "attempt 1.0" in capfd.readouterr().out
        monkeypatch.setattr(agent_module, "MEET_LIMIT_S", 0.5)
        with pytest.raises(Interrupted, match="within 0 s: no meeting file of this attempt"):
            serve_node(tmp_path, place(1, 2, "1.1"))
    finally:
        for number, handler in ignored.items():
            signal.signal(number, handler)


def test_nodes_that_do_not_come_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(coordinator_module, "AGENTS_LIMIT_S", 0.5)
    with (
        closing(Coordinator(tmp_path, place(0, 4), listen="127.0.0.1")) as coordinator,
        pytest.raises(Interrupted, match="of 4 nodes, these have no connected agent: 1, 2, 3;"),
    ):
        coordinator.await_agents()


FAR = """
import sys
from scalerl.processes.authenticated import call
connection = call(sys.argv[1], int(sys.argv[2]), b"k" * 32)
connection.recv_bytes()
"""


@pytest.fixture
def other_network():
    """The name of a network namespace at the other end of a cable; it needs root."""
    name, network = f"f{os.getpid()}", "10.201.7"
    commands = [
        f"ip netns add {name}",
        f"ip link add {name}a type veth peer name {name}b netns {name}",
        f"ip addr add {network}.1/24 dev {name}a",
        f"ip link set {name}a up",
        f"ip -n {name} addr add {network}.2/24 dev {name}b",
        f"ip -n {name} link set {name}b up",
    ]
    try:
        for command in commands:
            if shutil.which("ip") is None or subprocess.run(command.split(), capture_output=True).returncode:
                pytest.skip(f"this machine does not allow `{command}`")
        yield name, f"{network}.1"
    finally:
        if shutil.which("ip"):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def test_a_node_without_power_is_noticed_by_who_waits_and_by_who_sends(other_network):
    name, address = other_network
    with listen_on(address) as ours:
        ours.settimeout(60)
        command = ["ip", "netns", "exec", name, sys.executable, "-c", FAR, address, str(ours.getsockname()[1])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        far = [subprocess.Popen(command, env=environment) for _ in range(2)]
        try:
            waiting, sending = (let_in(ours.accept()[0], b"k" * 32) for _ in far)
            for connection in (waiting, sending):
                give_up_soon(connection)
            # Not a word comes through any more, not even that the connection is closed.
            subprocess.run(["ip", "-n", name, "link", "set", f"{name}b", "down"], check=True)
            cut = time.monotonic()
            sending.send_bytes(b"an order")
            for connection in (waiting, sending):
                with pytest.raises(OSError, match=r"timed out|No route"):
                    connection.recv_bytes()
            assert time.monotonic() - cut < NOTICED_S
        finally:
            for process in far:
                process.kill()
                process.wait()


def test_the_interface_of_an_address_is_found():
    assert interface_of("127.0.0.1") == "lo"
    assert interface_of("203.0.113.9") is None
