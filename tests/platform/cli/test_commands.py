"""The command line as a script sees it: what it loads, what it prints, how it ends."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fixtures_home import make_home, write_state
from fixtures_steering import steered
from places import REPOSITORY
from typer.testing import CliRunner

from ablations.cli import app, main, output
from ablations.cli.commands import PLACE_OF, PURPOSES, described, imported
from ablations.errors import AblationsError
from ablations.home.home import Home
from ablations.home.started_sweep import StartedSweep
from ablations.study.sweep import Stop
from scalerl.cluster.placement import UnitState

HEAVY = [
    "torch", "transformers", "mlflow", "optuna", "submitit", "ray", "streamlit", "plotly", "pandas", "scipy", "numpy",
]  # fmt: skip


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--help"], [*HEAVY, "pydantic", "ablations.home.home"]),
        (["note", "--help"], [*HEAVY, "ablations.cli.check", "ablations.report.documents.comparison"]),
        (["sweep", "sweeps/loo.yaml", "--dry-run"], HEAVY),
        (["check", "scalerl", "--scale", "smoke", "--quick"], ["torch"]),
    ],
)
def test_quick_commands_load_nothing_heavy(arguments, heavy, tmp_path):
    code = (
        f"import sys; sys.argv = {['platform', *arguments]!r}\n"
        "from ablations.cli import app\n"
        "try: app()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        f"loaded = [name for name in {heavy!r} if name in sys.modules]\n"
        "assert not loaded, loaded"
    )
    environment = {"ABLATIONS_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=REPOSITORY, env=environment
    )
    assert result.returncode == 0, result.stderr


def test_the_version_names_the_package_and_its_code():
    assert re.fullmatch(r"platform \d+\.\d+\.\d+, code \S+, JSON schema 2\n", run("--version"))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("platform status l", ["loo"]),
        ("platform compare loo ", ["more", "third"]),  # those that are not named yet
        ("platform show loo --variant loo-", ["loo-curriculum", "loo-loss"]),
        ("platform cancel --variant sc", ["scalerl"]),
        ("platform sweep loo.yaml --scale smol", ["smollm"]),
        ("platform new mine.yaml --recipe qwen", ["qwen_dapo"]),
        ("platform logs loo-l", ["loo-loss", "loo-loss-s0"]),
        ("platform doctor loo-l", ["loo-loss", "loo-loss-s0"]),
        ("platform doctor third", ["third"]),
        ("platform note sc", ["scalerl", "scalerl-s0"]),
        ("platform diff qwen", ["qwen_dapo"]),
        ("platform diff --sweep loo loo-c", ["loo-curriculum"]),
        ("platform fit m", ["more"]),
    ],
)
def test_the_shell_completes_sweeps_variants_scales_and_recipes(tmp_path, words, expected):
    plan = make_home(tmp_path).plan
    for name in ("more", "third"):
        StartedSweep(home=Home(tmp_path), plan=replace(plan, sweep=name)).write_plan()
    environment = {
        "ABLATIONS_HOME": str(tmp_path),
        "_PLATFORM_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(f"{words}.".split()) - 1),
    }
    found = CliRunner().invoke(app, [], prog_name="platform", env=environment)
    assert sorted(found.stdout.split()) == expected


@pytest.mark.parametrize("words", ["platform logs loo-l", "platform diff qwen", "platform doctor loo-l"])
def test_completion_does_without_the_recipe_models_which_take_longest_to_load(tmp_path, words):
    make_home(tmp_path)
    code = (
        "import sys; sys.argv = ['platform']\n"
        "from ablations.cli import app\n"
        "try: app(prog_name='platform')\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        f"loaded = [name for name in {['numpy', 'scalerl.recipe', 'ablations.study.sweep']!r} if name in sys.modules]\n"
        "assert not loaded, loaded"
    )
    asked = {"_PLATFORM_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "2"}
    environment = {"ABLATIONS_HOME": str(tmp_path), "PATH": "/usr/bin:/bin", **asked}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=REPOSITORY, env=environment
    )
    assert result.returncode == 0, result.stderr
    assert set(result.stdout.split()) & {"loo-loss-s0", "qwen_dapo"}


def test_help_says_what_commands_are_for_and_has_all_of_them():
    printed = re.sub("\x1b\\[[0-9;]*m", "", run("-h"))  # colours, where a terminal is forced
    assert [title for title in PURPOSES if f" {title} " in printed] == list(PURPOSES)
    assert len(PLACE_OF) == sum(map(len, PURPOSES.values()))
    assert all(re.search(rf"^│ {name} ", printed, re.MULTILINE) for name in PLACE_OF)


@pytest.mark.parametrize("name", PLACE_OF)
def test_a_command_is_described_before_its_import_as_after_it(name):
    assert (described(name).help, described(name).name) == (imported(name).help, imported(name).name)


def test_an_unknown_command_is_answered_with_the_nearest_one():
    result = CliRunner().invoke(app, ["stauts"])
    assert (result.exit_code, "Did you mean 'status'?" in result.output) == (2, True)


def test_the_first_panel_has_the_eight_commands_that_every_study_needs():
    first, *others = PURPOSES.items()
    assert [place.partition(".")[2] for place in first[1]] == [
        "new", "check", "sweep", "status", "compare", "report", "dashboard", "doctor"
    ]  # fmt: skip
    assert all(title.startswith("More: ") for title, _ in others)


def said_about(*arguments: str) -> str:
    """The refusal of a command."""
    result = CliRunner().invoke(app, list(arguments))
    assert isinstance(result.exception, AblationsError), result.output
    return str(result.exception)


@pytest.mark.parametrize("command", ["status", "compare", "fit", "forecast", "report", "show"])
def test_a_sweep_file_that_has_not_been_started_is_said_to_be_so(tmp_path, command, monkeypatch):
    make_home(tmp_path / "home")
    file = steered_sweep(tmp_path)
    home = ["--home", str(tmp_path / "home")]
    start = f"platform sweep {file} --home {tmp_path / 'home'}"
    said = f"{file} has not been started in {tmp_path / 'home'}; to start it, run `{start}`"
    assert said_about(command, str(file), *home) == said
    assert said_about(command, str(file), "--home", str(tmp_path)).startswith(f"{file} has not been started in")
    monkeypatch.chdir(tmp_path)
    assert said_about(command, "stered.yml", *home) == (
        f"no file stered.yml in {tmp_path}; did you mean 'steered.yaml'? YAML files and sweeps here are: "
        "steered.yaml, loo"
    )


def test_fit_and_design_take_the_last_sweep_as_the_other_commands_do(tmp_path, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    sweep = make_home(tmp_path)
    home = ["--home", str(tmp_path)]
    assert json.loads(run("fit", "--json", *home)) == json.loads(run("fit", "loo", "--json", *home))
    command = "platform sweep sweeps/demo.yaml --scale smoke --set batch.prompts=8"
    replace(sweep, plan=replace(sweep.plan, command=command)).write_plan()
    named = run("design", "sweeps/demo.yaml", "--scale", "smoke", "--set", "batch.prompts=8", "--json", *home)
    assert json.loads(run("design", "--json", *home)) == json.loads(named)
    assert json.loads(run("design", "loo", "--json", *home)) == json.loads(named)
    replace(sweep, plan=replace(sweep.plan, command="platform sweep gone.yaml")).write_plan()
    assert said_about("design", *home).startswith("the file of sweep 'loo', gone.yaml, is not in ")


def test_a_report_to_a_name_with_html_is_one_file(tmp_path):
    make_home(tmp_path / "home", seeds=(0, 1))
    home = ["--home", str(tmp_path / "home")]
    page = tmp_path / "out" / "mine.html"
    assert run("report", "--to", str(page), *home) == f"{page}\n"
    assert page.read_text().startswith("<!doctype html>")
    assert [path.name for path in page.parent.iterdir()] == ["mine.html"]
    assert "names a page, and --format csv writes several files" in said_about(
        "report", "--to", str(page), "--format", "csv", *home
    )


def test_the_last_lines_of_a_log_are_those_that_were_asked_for(tmp_path):
    sweep = make_home(tmp_path)
    log = sweep.run(sweep.plan.runs[0].id).log(1)
    log.parent.mkdir()
    log.write_text("one\n\ntwo\nthree\n")
    home = ["--home", str(tmp_path)]
    assert run("logs", "scalerl", "-n", "2", *home) == "two\nthree\n"
    assert run("logs", "scalerl", "--lines", "9", *home) == log.read_text()
    assert said_about("logs", "scalerl", "-n", "2", "--follow", *home).startswith("--lines 2 has no effect with --fol")


STEERED_SWEEP = """
name: steered
reference: scalerl
seeds: [0]
scale: laptop
axes: {logits: [bf16]}
stop: {gain_below: 0.01, dominated: 0.95}
"""


def steered_sweep(folder: Path) -> Path:
    path = folder / "steered.yaml"
    path.write_text(STEERED_SWEEP)
    return path


def test_a_dry_run_says_when_runs_stop_and_what_the_seeds_cost(tmp_path):
    arguments = ["sweep", str(steered_sweep(tmp_path)), "--dry-run", "--home", str(tmp_path / "home")]
    # A unit of the laptop scale is 1200 modelled GPU-hours.
    printed = run(*arguments)
    assert "2 runs at scale laptop, 1200 modelled GPU-hours each; " in printed
    assert (
        "stops a run whose expected gain up to the budget stays below 0.01 (P > 0.9) or that would end below "
        "scalerl (P > 0.95), flags a run that collapses or truncates over 10% of its answers; 2400 left to train"
    ) in printed
    assert "one seed per variant: verdicts stay provisional unless other sweeps of the scale have repeated " in printed
    assert "three seeds cost 7200 modelled GPU-hours\n" in printed
    data = json.loads(run(*arguments, "--json"))
    assert (data["budget_gpu_hours"], data["stop"]["dominated"]) == (1200.0, 0.95)


def test_a_sweep_that_is_asked_to_terminate_ends_as_one_that_is_interrupted(tmp_path, monkeypatch):
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("ablations.cli.training.run_sweep", lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM))
    file = steered_sweep(tmp_path)
    assert "Run the same command again to resume from the last checkpoints." in run(
        "sweep", str(file), "--home", str(tmp_path / "home"), code=3
    )
    assert signal.getsignal(signal.SIGTERM) == before


def test_stopped_runs_count_as_ended_and_are_shown_with_their_reason(tmp_path):
    home = make_home(tmp_path, fraction=0.9, state="cancelled").home
    steering, sweep = steered(home, Stop(gain_below=0.05))
    plan = sweep.plan
    steering.begin()
    run("status", "loo", "--home", str(tmp_path), code=3)
    write_state(home, plan.variants[0].runs[0].id, "done")
    printed = json.loads(run("status", "loo", "--json", "--home", str(tmp_path)))
    assert [one["state"] for one in printed["runs"]] == ["done", "stopped", "stopped"]
    assert "stopped, A in [" in printed["runs"][1]["message"]
    assert "gain to 2000 GPU-hours below 0.05" in run("status", "loo", "--home", str(tmp_path))


UNITS = (
    UnitState(unit="trainer 0", node="n1", state="at work", doing="forward_backward", deaths=0),
    UnitState(unit="generator 0", node="n1", state="at work", doing="decode", deaths=2),
    UnitState(unit="generator 1", node="n2", state="gone", doing="", deaths=1),
)


def test_status_shows_the_processes_of_a_run_that_trains(tmp_path):
    sweep = make_home(tmp_path)
    home = ("--home", str(tmp_path))
    assert "no run is training on the wall clock" in run("status", "loo", "--units", *home)
    folder = sweep.run(sweep.plan.variants[0].runs[0].id)
    folder.write_status(replace(folder.read_status(), state="running", heartbeat=time.time(), units=UNITS))
    shown = [line.split() for line in run("status", "loo", "--units", *home, code=3).splitlines()]
    assert ["scalerl", "trainer", "0", "n1", "at", "work", "forward", "backward"] in shown
    assert ["scalerl", "generator", "0", "n1", "at", "work", "decode", "2"] in shown
    assert ["scalerl", "generator", "1", "n2", "gone", "1"] in shown
    assert "generator" not in run("status", "loo", *home, code=3)
    (told, *others) = json.loads(run("status", "loo", "--json", *home, code=3))["runs"]
    assert told["units"][2] == {"unit": "generator 1", "node": "n2", "state": "gone", "doing": "", "deaths": 1}
    assert all(other["units"] == [] for other in others)
    # Of a run that has ended nothing runs any more.
    folder.write_status(replace(folder.read_status(), state="done"))
    assert "no run is training on the wall clock" in run("status", "loo", "--units", *home)


def eq1_file(path: Path, *, end: float = 1500.0, noise: float = 0.0) -> Path:
    """One curve `a` with A 0.6, B 1.8 and C_mid 100 up to `end`, and a short one `b`."""
    compute, rng = np.linspace(end / 40, end, 40), np.random.default_rng(0)
    score = 0.2 + 0.4 / (1 + (100 / compute) ** 1.8) + noise * rng.standard_normal(40)
    rows = [f"a,{c},{R:.4f}" for c, R in zip(compute, score, strict=True)]
    path.write_text("\n".join(["curve,compute,score", "a,0,0.2", *rows, "b,0,0.2", "b,1,0.3"]) + "\n")
    return path


def test_one_curve_with_a_fit_is_enough_and_the_ending_of_the_file_may_be_in_capitals(tmp_path):
    a, b = json.loads(run("fit", str(eq1_file(tmp_path / "curves.CSV")), "--json"))
    assert (a["A"], a["C_mid"]) == (pytest.approx(0.6, abs=0.005), pytest.approx(100, rel=0.02))
    assert (b["A"], b["fit_verdict"]) == (None, "no fit")
    assert "at least 6" in b["reason"]


def test_a_ceiling_without_an_end_is_no_number_in_json(tmp_path):
    a, _ = json.loads(run("fit", str(eq1_file(tmp_path / "curves.csv", end=60, noise=0.004)), "--explain", "--json"))
    assert (a["fit_verdict"], a["asymptote"]) == ("lower bound only", f"A >= {math.floor(a['A_lo'] * 100) / 100:.2f}")
    assert [a[name] for name in ("A", "A_hi", "C_mid", "C_mid_hi")] == [None] * 4
    for name in ("A", "C_mid"):
        assert [a["posterior"][name][key] for key in ("median", "hi_80", "hi_95")] == [None] * 3
        assert a["posterior"][name]["lo_95"] > 0
    assert a["B_lo"] < 1.8 < a["B_hi"]
    assert {(row["A"], row["A_hi"]) for row in a["cutoffs"] if row["fit_verdict"] == "lower bound only"} == {
        (None, None)
    }


@pytest.fixture
def command(monkeypatch, capsys):
    """Exit code, standard output and standard error of `platform` with these arguments."""

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["platform", *arguments])
        monkeypatch.setattr(output, "_has_printed_json", False)
        with pytest.raises(SystemExit) as caught:
            main()
        printed = capsys.readouterr()
        return int(caught.value.code or 0), printed.out, printed.err

    return command


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fit", "missing.csv", "--to", "nan"], "--to: found nan; must be a compute above 0"),
        (
            ["fit", "missing.csv", "--from", "5000", "--to", "4000"],
            "--from: found 5000; must lie below --to, which is 4000",
        ),
        (["sweep", "sweeps/lo.yaml"], "no such file"),
        (["sweep", "sweeps/loo.yaml", "--scale", "lptop", "--dry-run"], "did you mean 'laptop'"),
        (["sweep", "sweeps/loo.yaml", "--set", "losss=1", "--dry-run"], "did you mean 'loss'"),
        (["train", "scalrl"], "did you mean 'scalerl'"),
        (["compare", "loo", "--home", "/nonexistent"], "to start one, run `platform sweep FILE`"),
        (["sync", "--every", "5"], "--every 5 has no effect without --watch"),
        (["sync", "--watch", "--json"], "--json has no effect with --watch"),
        *((["status", "-w", option], f"{option} has no effect with --watch") for option in ("--json", "--all")),
        (["forecast", "loo", "--backtest", "--reference", "loo-loss"], "loo-loss has no effect with --backtest"),
        (["mcp", "--most-compute", "nan"], "--most-compute: found nan; must be a number greater than 0"),
        (["mcp", "--most-hours", "2"], "--most-hours 2 has no effect without --most-compute"),
        (["mcp", "--most-compute", "9", "--most-hours", "nan"], "--most-hours: found nan; must be a number greater"),
    ],
)
def test_wrong_input_is_one_message_and_exit_code_2(command, arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("ABLATIONS_HOME", str(tmp_path))
    if "compare" not in arguments:
        make_home(tmp_path)
    code, out, err = command(*arguments)
    assert code == 2
    assert said in err
    assert "--json" in arguments or out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["status", "--home", "/nonexistent"], "no sweep has been started in /nonexistent; "),
        (["forecast", "--score", "0"], "--score: found 0; must be a pass rate above 0 and at most 1"),
        (["diff"], "Missing argument 'left'"),
        (["sync", "--evry", "9"], "No such option: --evry"),
        (
            ["compare", "--baseline", "loo"],
            "No such option: --baseline; the option is called --reference; for its options",
        ),
        (["status", "--baseline", "loo"], "No such option: --baseline; for its options, run"),
        (["mcp", "--allow-sweeps"], "No such option: --allow-sweeps; the option is called --most-compute; for its"),
        (["comparr"], "No such command 'comparr'. Did you mean 'compare'? For all commands, run"),
        (["sync", "--every", "x"], "Invalid value for '--every': "),
    ],
)
def test_an_error_is_json_where_json_is_asked_for(command, arguments, message):
    code, out, err = command(*arguments, "--json")
    error = json.loads(out)["error"]
    assert (code, error["exit_code"]) == (2, 2)
    assert error.keys() == {"message", "exit_code"}
    assert error["message"].startswith(message)
    assert err == f"error: {error['message']}\n"


def test_an_error_in_a_file_is_json_with_its_places(command, tmp_path):
    file = tmp_path / "loo.yaml"
    file.write_text("name: loo\nreference: scalerl\nscale: smoke\nsedes: [0]\naxes: {losss: [dapo]}\n")
    _, out, _ = command("sweep", str(file), "--dry-run", "--json")
    error = json.loads(out)["error"]
    assert [(one["source"], one["line"], one["key"]) for one in error["places"]] == [(str(file), 4, "sedes")]
    assert "did you mean 'seeds'" in error["places"][0]["right"]
    assert error["message"] == f"{file}:4: sedes: {error['places'][0]['found']}; {error['places'][0]['right']}"


def test_an_error_after_the_result_is_no_second_document(command, tmp_path):
    make_home(tmp_path, fraction=0.02)
    code, out, err = command("compare", "--json", "--home", str(tmp_path))
    assert code == 2
    assert json.loads(out)["reasons"]
    assert "error: nothing is compared" in err


def test_a_task_file_that_cannot_be_used_is_said_with_its_line(command, tmp_path):
    scale, file = tmp_path / "words.yaml", tmp_path / "sums.jsonl"
    scale.write_text(f"model: {{tokenizer: characters}}\ntasks:\n  - {{type: math, path: {file}}}\n")
    asked = ("train", "scalerl", "--scale", str(scale), "--home", str(tmp_path))
    assert f"words.yaml:3: tasks.0: path: no file or folder {file}" in command(*asked)[2]
    file.write_text('{"question": "1+1=", "answer": "2"}\n{"question"\n')
    code, _, err = command(*asked)
    assert code == 2
    assert "sums.jsonl:2: unreadable: not JSON" in err
