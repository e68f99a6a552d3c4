"""The command line as a script sees it: what it loads, what it prints, how it ends."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fixtures_home import make_home
from typer.testing import CliRunner

from ablations.cli import app

ROOT = Path(__file__).parents[2]
HEAVY = ["torch", "transformers", "mlflow", "optuna", "submitit", "streamlit", "plotly", "pandas", "scipy", "numpy"]
FIT_KEYS = {"curve", "A", "A_lo", "A_hi", "B", "C_mid", "R_0", "verdict", "points", "window"}


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["sweep", "sweeps/loo.yaml", "--dry-run"], ["status", "--help"]])
def test_quick_commands_load_nothing_heavy(arguments, tmp_path):
    code = (
        f"import sys; sys.argv = {['platform', *arguments]!r}\n"
        "from ablations.cli import app\n"
        "try: app()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "assert not loaded, loaded"
    )
    environment = {"ABLATIONS_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT, env=environment
    )
    assert result.returncode == 0, result.stderr


def test_compare_prints_the_reference_and_every_variant(tmp_path):
    make_home(tmp_path)
    printed = json.loads(run("compare", "loo", "--json", "--home", str(tmp_path)))
    assert printed["reference"] == "scalerl"
    assert [variant["curve"] for variant in printed["variants"]] == ["scalerl", "loo-loss", "loo-curriculum"]
    wanted = FIT_KEYS | {"cost", "delta_A", "delta_A_lo", "delta_A_hi", "compute_ratio"}
    assert all(wanted <= set(variant) for variant in printed["variants"])


def test_fit_reads_a_csv_file_and_prints_one_entry_a_curve(tmp_path):
    rows = [f"a,{c},{0.2 + 0.4 / (1 + (100 / c) ** 1.8):.6f}" for c in range(20, 1500, 40)]
    path = tmp_path / "curves.csv"
    path.write_text("curve,compute,score\na,0,0.2\n" + "\n".join(rows) + "\n")
    (printed,) = json.loads(run("fit", str(path), "--json"))
    assert set(printed) >= FIT_KEYS
    assert printed["A"] == pytest.approx(0.6, abs=0.002)
    assert printed["C_mid"] == pytest.approx(100, rel=0.02)


def test_a_short_curve_has_a_reason_instead_of_a_fit(tmp_path):
    path = tmp_path / "short.csv"
    path.write_text("curve,compute,score\na,0,0.2\na,1,0.3\na,2,0.4\n")
    (printed,) = json.loads(run("fit", str(path), "--json"))
    assert set(printed) >= FIT_KEYS
    assert (printed["curve"], printed["A"], printed["verdict"]) == ("a", None, "no fit")
    assert "at least 6" in printed["reason"]


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ablations.cli", *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fit", "missing.csv"], "missing.csv"),
        (["sweep", "sweeps/lo.yaml"], "no such file"),
        (["sweep", "sweeps/loo.yaml", "--scale", "lptop", "--dry-run"], "did you mean 'laptop'"),
        (["sweep", "sweeps/loo.yaml", "--set", "losss=1", "--dry-run"], "did you mean 'loss'"),
        (["sweep", "sweeps/loo.yaml", "--budget", "0", "--dry-run"], "greater than 0"),
        (["train", "scalrl"], "did you mean 'scalerl'"),
        (["compare", "loo", "--home", "/nonexistent"], "no sweep has been started"),
    ],
)
def test_wrong_input_is_one_message_and_exit_code_2(arguments, said):
    result = command(*arguments)
    assert result.returncode == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unknown_sweep_names_those_there_are(tmp_path):
    make_home(tmp_path)
    result = command("status", "lo", "--home", str(tmp_path))
    assert result.returncode == 2
    assert "did you mean 'loo'" in result.stderr
