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

from ablations.cli import mcp_tools
from ablations.cli.mcp_tools import Tools, shell_words
from ablations.findings.campaign import CampaignTerms, new_campaign
from ablations.findings.fair_runs import NewRun
from ablations.home.home import Home

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
            ("status", {"sweeps": ["lo"]}),
            ("compare", {"sweep": "loo"}),
            ("compare", {"sweep": "loo", "referense": "scalerl"}),
            ("forecast", {"score": "high"}),
            ("sweep", {"file": "sweeps/demo.yaml"}),
        ]
        names = {tool.name for tool in (await client.list_tools()).tools}
        return names, [await client.call_tool(*call) for call in calls]

    names, (compared, planned, unknown, singular, misnamed, mistyped, refused) = session(
        tmp_path, talk, "--most-compute", "11249"
    )
    campaigns = {"campaign_new", "campaign_propose", "campaign_decide"}
    assert names - campaigns == {
        *("list_sweeps", "show", "dry_run", "design", "status", "compare", "forecast", "note", "sweep")
    }
    assert campaigns < names
    assert answer(compared) == json.loads(printed(tmp_path, "paper", "loo", "--json").stdout)
    plan = answer(planned)
    assert (len(plan["runs"]), plan["left_gpu_hours"], plan["compute_name"]) == (6, 6 * 1875, "modelled GPU-hours")
    assert unknown.is_error
    assert f"error: {unknown.content[0].text}\n" == printed(tmp_path, "status", "lo").stderr
    assert answer(singular) == json.loads(printed(tmp_path, "compare", "loo", "--json").stdout)
    assert misnamed.is_error
    assert misnamed.content[0].text == (
        "compare has no argument 'referense'; did you mean 'reference'? arguments are: sweeps, reference, task, paper"
    )
    assert mistyped.is_error
    assert mistyped.content[0].text.startswith("score: found 'high'; Input should be a valid number")
    assert refused.is_error
    assert "11250 modelled GPU-hours are left to train, and this server allows 11249;" in refused.content[0].text
    assert [path.name for path in (tmp_path / "sweeps").iterdir()] == ["loo"]


def test_a_note_by_a_tool_is_that_of_the_command_and_its_text_is_no_path(tmp_path):
    make_home(tmp_path)
    tools = Tools(home=Home(tmp_path), most_compute=None)
    text = "-see /etc/passwd or ../x " + "y" * 300
    (written,) = json.loads(tools.note("loo-loss", text, ["keep"]).content[0].text)
    assert ([one["text"] for one in written["texts"]], written["tags"]) == ([text], ["keep"])
    assert json.loads(tools.note("loo-loss").content[0].text) == [written]
    assert json.loads(printed(tmp_path, "note", "loo-loss", "--json").stdout) == [written]
    assert "unknown run or variant" in tools.note("dapo", "text").content[0].text


def test_a_tool_for_sweeps_needs_a_limit(tmp_path):
    async def talk(client: ClientSession) -> set[str]:
        return {tool.name for tool in (await client.list_tools()).tools}

    assert "sweep" not in session(tmp_path, talk)


def test_a_campaign_by_tools_says_what_to_do_next(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = tmp_path / "settings.yaml"
    tools = Tools(home=Home(tmp_path / "home"), most_compute=None)

    def said(result: CallToolResult) -> list[str]:
        assert not result.is_error, result.content
        lines = result.content[0].text.splitlines()
        assert len(lines) <= 10
        return lines

    assert "4 runs of what you start from" in said(tools.campaign_new("night", proposals=20))[-1]
    assert said(tools.campaign_decide("night", "start", [0.40, 0.41, 0.39]))[-1].startswith("Next: 1 more run of it")
    assert said(tools.campaign_decide("night", "start", [0.405]))[-1].startswith("Next: propose a change")
    code.write_text("rate: 0.1")
    assert "Next: 1 more run of wider" in said(tools.campaign_propose("night", "wider", ["settings.yaml"]))[-1]
    assert said(tools.campaign_propose("night", "again", ["settings.yaml"]))[0].startswith("Same as before")
    assert said(tools.campaign_decide("night", "wider", [0.1]))[0].startswith("Discard: wider")
    assert said(tools.campaign_decide("night", "wider", withdraw=0.1))[0].startswith("Run again: wider")
    assert tools.campaign_propose("night", "outside", ["/etc/hostname"]).is_error
    unknown = tools.campaign_decide("day", "best", [0.4]).content[0].text
    assert "unknown campaign 'day'" in unknown
    assert "one of another folder needs its --home" in unknown


def test_compute_of_campaigns_counts_towards_the_limit(tmp_path):
    home = Home(tmp_path)
    campaign = new_campaign(home, "night", CampaignTerms())
    campaign.add("start", [NewRun(score=0.4, source="1f0c", compute=9.0, conditions={"scale": "smoke"})])
    (refused,) = Tools(home=home, most_compute=9.0).campaign_propose("night", "wider", ["sweeps"]).content
    assert "campaigns have spent 9 of compute, and this server allows 9" in refused.text
    (refused,) = Tools(home=home, most_compute=11255.0).sweep("sweeps/demo.yaml", budget="3").content
    assert "campaigns have spent 9, and this server allows 11255" in refused.text


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
def test_a_sweep_within_the_limit_goes_on_without_the_server(tmp_path, empty_store, monkeypatch):
    monkeypatch.setenv("ABLATIONS_READ_FROM", str(tmp_path))
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(empty_store, home / "mlflow.db")
    go = tmp_path / "go"
    waits = f"while not os.path.exists({str(go)!r}): time.sleep(0.05)\n"
    study = write_study(tmp_path / "study", f"{waits}go_on(10)", seeds="[0]")

    async def talk(client: ClientSession) -> dict[str, Any]:
        return answer(await client.call_tool("sweep", {"file": str(study)}))

    started = session(home, talk, "--most-compute", "200")  # two runs of 100 tokens
    assert started.keys() == {"sweep", "pid", "log"}
    assert os.getsid(started["pid"]) == started["pid"]
    go.touch()

    log = Path(started["log"])
    wait_until((home / "sweeps" / "own" / "report.html").exists, "the report", shown=log.read_text)
    status = json.loads(printed(home, "status", started["sweep"], "--json").stdout)
    assert [run["state"] for run in status["runs"]] == ["done"] * 2
    document, _ = json.JSONDecoder().raw_decode(log.read_text().partition("\n{")[2].join(["{", ""]))
    assert document["sweep"] == "own"


SCALED = (
    *("cluster.device.tflops=1e9", "cluster.tokens_stand_for=1", "cluster.generators=1", "evaluation.samples=1000"),
    *("evaluation.every=0.001", "compute_unit_gpu_hours=1", "warm_start.steps=100000", "checkpoint_every_s=0"),
    *("tasks.0.validation_prompts=1000", "threads=64"),
)


def test_an_agent_cannot_change_the_price_of_compute(tmp_path, monkeypatch):
    tools = Tools(home=Home(tmp_path), most_compute=1e9)
    planned = tools.dry_run("sweeps/demo.yaml", scale="smoke")
    assert not planned.is_error
    monkeypatch.setattr(Tools, "dry_run", lambda *_: planned)  # whatever the setting, its runs could be planned
    for setting in SCALED:
        (refused,) = tools.sweep("sweeps/demo.yaml", scale="smoke", set=[setting]).content
        assert refused.text.startswith(f"set: {setting.partition('=')[0]}: this server fixes"), setting
    assert not (tmp_path / "sweeps").exists()


def test_the_refusal_says_what_an_agent_may_set(tmp_path):
    tools = Tools(home=Home(tmp_path), most_compute=1e9)
    (content,) = tools.sweep("sweeps/demo.yaml", set=["cluster.device.tflops=1e9"]).content
    assert content.text.startswith(
        "set: cluster.device.tflops: this server fixes settings that change the price of compute, or cost none; "
        "an agent may set "
    )


def test_settings_of_the_recipe_are_an_agents_to_choose(tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(mcp_tools, "start_in_background", lambda *given, **limits: begun.append(limits) or {})
    tools = Tools(home=Home(tmp_path), most_compute=1e9, most_hours=2.0)
    settings = ["loss.max_ratio=4", "batch.prompts=8", "optimiser.learning_rate=1e-4"]
    assert not tools.sweep("sweeps/demo.yaml", set=settings).is_error
    assert begun == [{"most_hours": 2.0}]


def test_settings_of_a_program_need_a_limit_in_hours(tmp_path, monkeypatch):
    monkeypatch.setattr(mcp_tools, "start_in_background", lambda *given, **limits: {})
    monkeypatch.chdir(tmp_path)
    study = str(write_study(tmp_path / "study", "go_on(10)"))
    (refused,) = Tools(home=Home(tmp_path), most_compute=1e9).sweep(study, set=["rate=0.3"]).content
    assert "restart `platform mcp` with --most-hours" in refused.text
    assert not Tools(home=Home(tmp_path), most_compute=1e9).sweep(study).is_error
    assert not Tools(home=Home(tmp_path), most_compute=1e9, most_hours=1.0).sweep(study, set=["rate=0.3"]).is_error


SECRET = "only-for-its-owner"
REST = "seeds: [0]\nscale: smoke\naxes: {loss.type: [dapo]}\nbudget: {compute: 1}\n"


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """Files that the server must not quote; it starts in a folder beside them."""
    for name, text in {
        "words.txt": f"{SECRET}:x:0:0",
        "sweep.yaml": f"{SECRET}: 1\n",
        "list.yaml": f"- {SECRET}\n",
        "curves.csv": f"{SECRET}\n1\n",
        "rows.jsonl": f"{SECRET}\n",
    }.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path / "own")
    return tmp_path


def test_tools_quote_no_file_outside_of_their_folders(outside):
    tools = Tools(home=Home(outside / "own" / "home"), most_compute=None)
    (outside / "own" / "link.yaml").symlink_to(outside / "sweep.yaml")
    (outside / "own" / "study.yaml").write_text(f"name: x\nreference: {outside / 'sweep.yaml'}\n{REST}")
    demo = REPOSITORY / "sweeps" / "demo.yaml"
    task = f"tasks=[{{type: math, name: x, path: {outside / 'rows.jsonl'}}}]"
    answers = [
        *(
            tools.dry_run(str(outside / name))
            for name in ("words.txt", "sweep.yaml", "list.yaml", "../own/../list.yaml")
        ),
        *(tools.dry_run("link.yaml"), tools.dry_run("study.yaml"), tools.dry_run("../sweep.yaml")),
        *(tools.design(str(outside / "curves.csv")), tools.compare([str(outside / "curves.csv")])),
        *(tools.dry_run(str(demo), scale=str(outside / "sweep.yaml")), tools.show(str(outside / "words.txt"))),
        tools.status(str(outside / "sweep.yaml")),
    ]
    assert all(answer.is_error for answer in answers)
    texts = [content.text for answer in answers for content in answer.content]
    assert not [text for text in texts if SECRET in text]
    refused = "outside the folders that this server may read"
    assert [refused in text for text in texts] == [True] * len(texts), texts
    assert not tools.dry_run(str(demo)).is_error
    assert SECRET not in tools.dry_run(str(demo), set=[task]).content[0].text


def test_folders_that_the_server_is_given_are_read(outside, monkeypatch):
    monkeypatch.setenv("ABLATIONS_READ_FROM", str(outside))
    (content,) = (
        Tools(home=Home(outside / "own" / "home"), most_compute=None).dry_run(str(outside / "sweep.yaml")).content
    )
    assert "unknown key" in content.text


@pytest.mark.slow
def test_a_sweep_ends_after_its_hours(tmp_path, empty_store, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(empty_store, home / "mlflow.db")
    monkeypatch.setenv("ABLATIONS_READ_FROM", str(tmp_path))
    study = write_study(tmp_path / "study", "go_on(10)\ntime.sleep(3600)", seeds="[0]", budget="{compute: 200}")

    async def talk(client: ClientSession) -> dict[str, Any]:
        return answer(await client.call_tool("sweep", {"file": str(study)}))

    options = ("--most-compute", "1e9", "--most-hours", str(20 / 3600))
    started = session(home, talk, *options)
    wait_until(
        lambda: "Stopped. Run the same" in Path(started["log"]).read_text(),
        "its end",
        shown=Path(started["log"]).read_text,
    )
