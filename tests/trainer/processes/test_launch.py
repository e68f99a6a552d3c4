"""Started processes see the devices of their unit, and what they start ends with them."""

import os
import pickle
from functools import partial

import pytest

from scalerl.cluster.placement import PlacedUnit
from scalerl.processes import LocalLauncher
from scalerl.processes.launch import visible


def tell(name, connection):
    connection.send_bytes(os.environ[name].encode())


@pytest.mark.parametrize(
    ("devices", "outer", "expected"),
    [
        ((0, 1), None, "0,1"),
        ((1, 2), "4,5,6", "5,6"),
        ((0,), "GPU-8f3e,GPU-77aa", "GPU-8f3e"),
        ((3,), "4,5", ""),
        ((), "4,5", ""),
    ],
)
def test_devices_are_counted_among_those_that_are_visible_to_the_coordinator(devices, outer, expected):
    assert visible(devices, outer) == expected


def test_a_process_sees_the_devices_of_its_unit_alone(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6")
    launcher = LocalLauncher()
    unit = PlacedUnit(role="generator", index=1, node=0, devices=(2,))
    body = launcher.start(unit, pickle.dumps(partial(tell, "CUDA_VISIBLE_DEVICES")))
    try:
        assert body.connect().recv_bytes() == b"6"
        assert body.bury() == 0
    finally:
        body.kill()
        launcher.close()
