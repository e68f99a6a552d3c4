"""A ledger: killed writers, edited lines, two processes at once."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from ablations.errors import AblationsError
from ablations.home.ledger import Ledger

WRITER = """
import sys
from pathlib import Path
from ablations.home.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    with ledger.locked() as known:
        ledger.add(known, [{"kind": "run", "of": sys.argv[2], "number": number, "text": "x" * 3000}])
    print(number, flush=True)
"""


def writer(ledger, name, times):
    command = [sys.executable, "-c", WRITER, str(ledger.path), name, str(times)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_lines_read_back_in_order(tmp_path):
    ledger = Ledger(tmp_path / "campaign" / "ledger.jsonl")
    with ledger.locked() as known:
        assert known == []
        ledger.add(known, [{"kind": "campaign"}, {"kind": "run", "score": 0.4}])
    with ledger.locked() as known:
        ledger.add(known, [{"kind": "run", "score": 0.5}])
    found = ledger.read()
    assert [one["line"] for one in found] == [1, 2, 3]
    assert [one.get("score") for one in found] == [None, 0.4, 0.5]


@pytest.mark.parametrize("edit", ["score", "delete", "swap", "hash"])
def test_an_edited_line_is_found(tmp_path, edit):
    ledger = Ledger(tmp_path / "ledger.jsonl")
    with ledger.locked() as known:
        ledger.add(known, [{"kind": "run", "score": 0.41 + number / 100} for number in range(4)])
    lines = ledger.path.read_text().splitlines()
    match edit:
        case "score":
            lines[1] = lines[1].replace("0.42", "0.52")
        case "delete":
            del lines[1]
        case "swap":
            lines[1], lines[2] = lines[2], lines[1]
        case "hash":
            lines[1] = json.dumps(json.loads(lines[1]) | {"sha256": "0" * 64})
    ledger.path.write_text("\n".join(lines) + "\n")
    with pytest.raises(AblationsError, match=r"ledger\.jsonl:2: changed since it was written"):
        ledger.read()


def test_a_line_that_a_killed_process_began_is_left_out_and_replaced(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl")
    with ledger.locked() as known:
        ledger.add(known, [{"kind": "run", "score": 0.4}])
    whole = ledger.path.read_bytes()
    for part in (b"{", b'{"line": 2, "kind": "run"}', whole[:-1]):
        ledger.path.write_bytes(whole + part)
        assert [one["score"] for one in ledger.read()] == [0.4]
    with ledger.locked() as known:
        ledger.add(known, [{"kind": "run", "score": 0.5}])
    assert ledger.path.read_bytes().startswith(whole)
    assert [one["score"] for one in ledger.read()] == [0.4, 0.5]


def test_two_processes_get_one_order(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl")
    processes = [writer(ledger, name, 25) for name in ("a", "b")]
    assert [one.wait(60) for one in processes] == [0, 0]
    for one in processes:
        one.communicate()
    found = ledger.read()
    assert [one["line"] for one in found] == list(range(1, 51))
    for name in ("a", "b"):
        assert [one["number"] for one in found if one["of"] == name] == list(range(25))


def test_a_ledger_reads_after_kill_9_and_holds_every_line_that_was_said_to_be_written(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl")
    said = 0
    for name in ("a", "b", "c", "d"):
        process = writer(ledger, name, 10_000)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.01 * (1 + said % 7))
        os.kill(process.pid, signal.SIGKILL)
        said += 1 + len(process.stdout.read().splitlines())
        process.wait()
        process.stdout.close()
        assert len(ledger.read()) >= said
    assert [one["line"] for one in ledger.read()] == list(range(1, len(ledger.read()) + 1))
