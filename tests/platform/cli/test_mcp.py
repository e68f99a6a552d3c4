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

ASKING = {"list_sweeps", "show", "dry_run", "design", "status", "compare", "forecast"}
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


async def names_of_tools(client: ClientSession) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.slow
def test_tools_return_what_the_commands_print(tmp_path):
    make_home(tmp_path)

    async def talk(client: ClientSession) -> dict[str, Any]:
        return {
            "list": answer(await client.call_tool("list_sweeps")),
            "show loo": answer(await client.call_tool("show", {"name": "loo"})),
            "status loo": answer(await client.call_tool("status")),
            "compare loo --paper": answer(await client.call_tool("compare", {"sweeps": ["loo"], "paper": True})),
            "compare loo": answer(await client.call_tool("compare", {"reference": "scalerl"})),
            "forecast loo --budget 2x --budget 3x": answer(
                await client.call_tool("forecast", {"budgets": ["2x", "3x"]})
            ),
        }

    for command, found in session(tmp_path, talk).items():
        assert found == json.loads(printed(tmp_path, *command.split(), "--json").stdout), command


def test_a_study_is_planned_before_it_trains(tmp_path):
    async def talk(client: ClientSession) -> tuple[set[str], Any, Any]:
        tools = await names_of_tools(client)
        plan = answer(await client.call_tool("dry_run", {"file": "sweeps/demo.yaml"}))
        asked = {"file": "sweeps/demo.yaml", "detect": 0.2, "budget": "1x"}
        return tools, plan, answer(await client.call_tool("design", asked))

    tools, plan, design = session(tmp_path, talk)
    assert tools == ASKING
    assert len(plan["runs"]) == 6
    assert (plan["left_gpu_hours"], plan["compute_name"]) == (6 * 1875, "modelled GPU-hours")
    assert (design["sweep"], design["detect"]) == ("demo", 0.2)
    assert not (tmp_path / "sweeps").exists()


def test_the_cost_of_a_search_has_the_trials_to_come(tmp_path):
    plan = json.loads(printed(tmp_path, "sweep", "sweeps/search_lr.yaml", "--dry-run", "--json").stdout)
    num_runs = (1 + 12) * 2  # the reference and the trials of the file, with two seeds
    assert plan["left_gpu_hours"] == num_runs * plan["budget_gpu_hours"]


def test_an_error_of_a_tool_has_the_words_of_the_command(tmp_path):
    make_home(tmp_path)

    async def talk(client: ClientSession) -> list[CallToolResult]:
        return [
            await client.call_tool("status", {"sweep": "lo"}),
            await client.call_tool("dry_run", {"file": "--version"}),
            await client.call_tool("forecast", {"score": 0}),
        ]

    commands = [["status", "lo"], ["sweep", "--dry-run", "--", "--version"], ["forecast", "--score", "0"]]
    for command, result in zip(commands, session(tmp_path, talk), strict=True):
        end = command.index("--") if "--" in command else len(command)
        line = [*PLATFORM, *command[:end], "--home", str(tmp_path), *command[end:]]
        said = subprocess.run(line, capture_output=True, text=True, check=False, cwd=REPOSITORY).stderr
        assert result.is_error
        assert f"error: {result.content[0].text}\n" == said


def test_a_comparison_without_a_fit_is_an_error_with_its_reasons(tmp_path):
    make_home(tmp_path, fraction=0.02)

    async def talk(client: ClientSession) -> CallToolResult:
        return await client.call_tool("compare")

    result = session(tmp_path, talk)
    document, said = (content.text for content in result.content)
    assert result.is_error
    assert json.loads(document)["reasons"]
    assert said.startswith("error: nothing is compared: scalerl has no fit")


def test_a_sweep_over_the_limit_is_refused_with_both_numbers(tmp_path):
    async def talk(client: ClientSession) -> tuple[set[str], CallToolResult]:
        return await names_of_tools(client), await client.call_tool("sweep", {"file": "sweeps/demo.yaml"})

    tools, result = session(tmp_path, talk, "--allow-sweeps", "--most-compute", "11249")
    assert tools == ASKING | {"sweep"}
    assert result.is_error
    assert "11250 modelled GPU-hours are left to train, and this server allows 11249;" in result.content[0].text
    assert not (tmp_path / "sweeps").exists()


@pytest.mark.slow
def test_a_sweep_within_the_limit_goes_on_without_the_server(tmp_path, empty_store):
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(empty_store, home / "mlflow.db")
    go = tmp_path / "go"
    waits = f"while not os.path.exists({str(go)!r}): time.sleep(0.05)\n"
    study = write_study(tmp_path / "study", f"{waits}go_on(10)")

    async def talk(client: ClientSession) -> dict[str, Any]:
        return answer(await client.call_tool("sweep", {"file": str(study)}))

    started = session(home, talk, "--allow-sweeps", "--most-compute", "400")  # four runs of 100 tokens
    assert started.keys() == {"sweep", "pid", "log"}
    assert os.getsid(started["pid"]) == started["pid"]
    go.touch()

    log = Path(started["log"])
    wait_until((home / "sweeps" / "own" / "report.html").exists, "the report", shown=log.read_text)
    status = json.loads(printed(home, "status", started["sweep"], "--json").stdout)
    assert [run["state"] for run in status["runs"]] == ["done"] * 4
    document, _ = json.JSONDecoder().raw_decode(log.read_text().partition("\n{")[2].join(["{", ""]))
    assert document["sweep"] == "own"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--allow-sweeps"], "--allow-sweeps: --most-compute is missing"),
        (["--most-compute", "9"], "--most-compute 9 has no effect without --allow-sweeps"),
        (["--allow-sweeps", "--most-compute", "nan"], "--most-compute: found nan; must be a number greater than 0"),
    ],
)
def test_sweeps_need_a_limit_and_a_limit_needs_sweeps(options, said, tmp_path):
    result = printed(tmp_path, "mcp", *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert said in result.stderr
