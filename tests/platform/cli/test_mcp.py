"""`platform mcp` as an agent sees it: the official client over standard input and output."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fixtures_home import make_home
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.types import CallToolResult
from own_programs import write_study
from places import REPOSITORY
from waiting import wait_until

from ablations.cli.mcp_tools import Tools, shell_words

PLATFORM = [sys.executable, "-m", "ablations.cli"]


def session(home: Path, talk: Callable[[ClientSession], Awaitable[Any]], *options: str) -> Any:
    """What `talk` returns of a session with the server; what is no message of the protocol fails the test."""
    strays = []

    async def keep(message: object) -> None:
        if isinstance(message, Exception):
            strays.append(message)

    async def run() -> Any:
        arguments = [*PLATFORM[1:], "mcp", *options, "--home", str(home)]
        server = StdioServerParameters(command=PLATFORM[0], args=arguments, env=dict(os.environ), cwd=REPOSITORY)
        async with stdio_client(server) as (read, write), ClientSession(read, write, message_handler=keep) as client:
            await client.initialize()
            return await talk(client)

    found = asyncio.run(run())
    assert not strays
    return found


def answer(result: CallToolResult) -> Any:
    assert not result.is_error, result.content
    return json.loads(result.content[0].text)


def printed(home: Path, *command: str) -> subprocess.CompletedProcess[str]:
    line = [*PLATFORM, *command, "--home", str(home)]
    return subprocess.run(line, capture_output=True, text=True, check=False, cwd=REPOSITORY)


def test_tools_give_the_documents_and_the_errors_of_the_commands(tmp_path):
    make_home(tmp_path)

    async def talk(client: ClientSession) -> tuple[set[str], list[CallToolResult]]:
        calls = [
            ("compare", {"sweeps": ["loo"], "reference": "scalerl", "paper": True}),
            ("dry_run", {"file": "sweeps/demo.yaml", "budget": "3"}),
            ("status", {"sweep": "lo"}),
            ("compare", {"sweep": "loo"}),
            ("sweep", {"file": "sweeps/demo.yaml"}),
        ]
        names = {tool.name for tool in (await client.list_tools()).tools}
        return names, [await client.call_tool(*call) for call in calls]

    names, (compared, planned, unknown, misnamed, refused) = session(
        tmp_path, talk, "--allow-sweeps", "--most-compute", "11249"
    )
    assert names == {"list_sweeps", "show", "dry_run", "design", "status", "compare", "forecast", "sweep"}
    assert answer(compared) == json.loads(printed(tmp_path, "compare", "loo", "--paper", "--json").stdout)
    plan = answer(planned)
    assert (len(plan["runs"]), plan["left_gpu_hours"], plan["compute_name"]) == (6, 6 * 1875, "modelled GPU-hours")
    assert unknown.is_error
    assert f"error: {unknown.content[0].text}\n" == printed(tmp_path, "status", "lo").stderr
    assert misnamed.is_error
    assert "sweep\n  Extra inputs are not permitted" in misnamed.content[0].text
    assert refused.is_error
    assert "11250 modelled GPU-hours are left to train, and this server allows 11249;" in refused.content[0].text
    assert [path.name for path in (tmp_path / "sweeps").iterdir()] == ["loo"]


def test_a_tool_for_sweeps_needs_a_limit(tmp_path):
    async def talk(client: ClientSession) -> set[str]:
        return {tool.name for tool in (await client.list_tools()).tools}

    assert "sweep" not in session(tmp_path, talk)


def test_a_comparison_without_a_fit_is_an_error_with_its_reasons(tmp_path):
    home = make_home(tmp_path, fraction=0.02).home
    result = Tools(home=home, most_compute=None).compare()
    document, said = (content.text for content in result.content)
    assert result.is_error
    assert json.loads(document)["reasons"]
    assert said.startswith("error: nothing is compared: scalerl has no fit")


def test_words_of_a_command_line_are_never_taken_for_options():
    words = shell_words(["--version", None], budget=["2x", "10x"], score=None, paper=True, json=False)
    assert words == ["--budget=2x", "--budget=10x", "--paper", "--", "--version"]


@pytest.mark.slow
def test_a_sweep_within_the_limit_goes_on_without_the_server(tmp_path, empty_store):
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(empty_store, home / "mlflow.db")
    go = tmp_path / "go"
    waits = f"while not os.path.exists({str(go)!r}): time.sleep(0.05)\n"
    study = write_study(tmp_path / "study", f"{waits}go_on(10)", seeds="[0]")

    async def talk(client: ClientSession) -> dict[str, Any]:
        return answer(await client.call_tool("sweep", {"file": str(study)}))

    started = session(home, talk, "--allow-sweeps", "--most-compute", "200")  # two runs of 100 tokens
    assert started.keys() == {"sweep", "pid", "log"}
    assert os.getsid(started["pid"]) == started["pid"]
    go.touch()

    log = Path(started["log"])
    wait_until((home / "sweeps" / "own" / "report.html").exists, "the report", shown=log.read_text)
    status = json.loads(printed(home, "status", started["sweep"], "--json").stdout)
    assert [run["state"] for run in status["runs"]] == ["done"] * 2
    document, _ = json.JSONDecoder().raw_decode(log.read_text().partition("\n{")[2].join(["{", ""]))
    assert document["sweep"] == "own"
