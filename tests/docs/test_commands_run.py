"""Every command of every page runs as written and prints what the page shows below it; exceptions are named here.

The commands of a page run in order, in a folder that is as the page says: the repository's recipes and sweeps, the
runs of the tutorial as they were trained (`benchmarks/tutorial.py`), and a generated study `loo`. With `--write-pages`
what has changed is written into the pages instead. A command that cannot
run in a test belongs into `INSTEAD`, with the reason; a block that cannot be compared into `NOT_COMPARED`.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer
import yaml
from fixtures_home import TRUTH, changed, make_home, planned_run, write_run
from pages import PAGES, Block, blocks
from places import REPOSITORY
from trainer.tiny_text_model import text_model
from tutorial import add_kept_runs, study
from typer.core import TyperGroup
from typer.testing import CliRunner

from ablations.cli import app
from ablations.files.source import read_yaml
from ablations.findings.results import read_results
from ablations.home.home import Home
from ablations.home.plan import PlannedRun, PlannedVariant
from ablations.study.expand import expand
from ablations.study.resolve import load_resolved
from ablations.study.sweep import Sweep
from scalerl.recipe import Scale
from scalerl.run.run_folder import RunFolder

TUTORIAL = REPOSITORY / "docs/tutorial.md"
PAGES_RUN = [page for page in PAGES if page.name != "python.md" and page.parent.name != "notes"]
"""tests/docs/test_python.py runs the first, and notes say what was done once."""
LONG = (REPOSITORY / "docs" / "how-to.md", REPOSITORY / "docs" / "tutorial.md")
"""Pages that train for minutes; `make test-all` and `make numbers` run them."""
WHOLE: dict[str, Any] = {
    "name": "part",
    "reference": "scalerl",
    "scale": "smoke",
    "variants": {"dapo": {"loss.type": "dapo"}, "small": {"batch.prompts": 20}},
}
"""A sweep file that the parts of one on the pages are put into."""
MEANT = {
    "FILE": "my_study.yaml",
    "SWEEP": "turns",
    "SWEEP-curves/curves.csv": "turns-curves/curves.csv",
    "VARIANT": "in_turns",
    "RECIPE": "scalerl",
    "A": "scalerl",
    "B": "baseline",
}
"""What words with capitals stand for."""
TRAINS = (
    *(f"platform sweep sweeps/loo.yaml{options}" for options in ("", " --budget 2")),
    *(
        f"platform sweep FILE {options}"
        for options in ("--budget 2", "--set optimiser.weight_decay=0.1", "--scale gpu")
    ),
    "platform sweep FILE --scale scales/mine.yaml --set length_control.type=none",
    *("platform sweep topr.yaml", "platform sweep sweeps/trl/losses.yaml", "platform sweep sweeps/episodes.yaml"),
)
"""Commands that train for minutes or more, or on a GPU; what they would train is shown and checked by `--dry-run`."""
OTHERS = {
    # an optimiser step, which tests/platform/cli/test_check.py takes
    "platform check scalerl --scale scales/mine.yaml --set length_control.type=none": "platform check scalerl "
    "--scale scales/mine.yaml --set length_control.type=none --quick",
    "platform check topr.yaml": "platform check topr.yaml --quick",
    "platform status -w": "platform status",  # a live table needs a terminal
    # hours of training, and a design by simulation, which tests/platform/paper makes
    "platform reproduce fig4a": "platform reproduce fig4a --dry-run --as-written",
    "platform reproduce fig4a --dry-run": "platform reproduce fig4a --dry-run --as-written",
    "platform import sweep.tar.gz": "platform import sweep.tar.gz --home elsewhere",  # needs another home folder
}
NOT_RUN = {
    "their exit codes are answers, which tests/platform/cli/test_keep.py checks": (
        "platform keep night start --score 0.413",
        "platform keep night wider --code train.py --score 0.431",
        "platform keep night best --score 0.409",
    ),
    "a Slurm, which tests/slurm starts": (
        *(f"platform sweep {file} --executor slurm" for file in ("sweeps/loo.yaml", "FILE")),
        *("platform doctor", "platform doctor --train", "platform retry"),
        "platform reproduce fig4a --scale 8b --executor slurm",
    ),
    "a Ray cluster, which tests/ray_cluster starts": (
        *(f"platform sweep sweeps/{rest} --executor ray" for rest in ("loo.yaml", "off_policy.yaml --scale smoke")),
        *("platform doctor --ray", "platform cancel --variant loo-loss"),
    ),
    "simulations, which tests/platform/paper runs with fewer curves": (
        *(f"platform design FILE --detect {size}" for size in ("0.02", "1.2 --question compute")),
    ),
    "twelve runs of a minute, which the page shows": ("platform compare episodes",),
    "curves of two seeds, which tests/platform/imports/test_from_curves.py has": ("platform design curves",),
    "logs of another trainer, which tests/platform/logs has": (
        "platform compare 'runs/*' --log verl --gpus 64",
        "platform import 'wandb/offline-run-*' --score eval/acc --compute _runtime --as mine",
        "platform import 'runs/*' --log verl --gpus 64 --as grpo",
        *("platform compare grpo", "platform compare mine", "platform compare losses"),
        "platform import 'runs/*' --score eval/acc --compute 'cumsum(time/ms) * 8 / 3.6e6'",
        "platform import 'runs/*' --log slime --gpus 32 --score '(eval/aime + eval/math) / 2'",
        "platform import 'runs/*' --score 'eval/percent / 100' --compute step --step policy/global_step",
        "platform import 'runs/*' --log verl --gpus 64 --pattern 'exp[0-9]+_(?P<variant>.+)_run(?P<seed>[0-9]+)'",
        "platform import 'runs/*' --log trl --gpus 8 --variant algorithm/loss --seed seed --as losses",
        "platform import all.csv --score accuracy --compute gpu_hours --variant method --seed seed",
        "platform import wandb_chart.csv --score val/acc --compute 'Step * 2'",
    ),
    "hours": ("platform reproduce --all",),
    "a server until Ctrl-C; tests/dashboard and tests/tracking start it": (
        *("platform dashboard", "platform mlflow"),
        "mlflow server --host 0.0.0.0 --port 5000 --backend-store-uri sqlite:////srv/mlflow/mlflow.db "
        "--artifacts-destination /srv/mlflow/files --allowed-hosts mlflow.example:5000",
        "platform import grpo --mlflow http://mlflow:5000 --score pass_rate --compute gpu_hours "
        "--variant loss --seed seed --reference cispo",
    ),
    "an agent at the other end; tests/platform/cli/test_mcp.py is one": (
        *("platform mcp", "platform mcp --most-compute 200"),
    ),
    "the reader's own shell": (
        "source .venv/bin/activate",
        "export MLFLOW_DISABLE_TELEMETRY=true",
        "export MLFLOW_TRACKING_URI=http://mlflow.example:5000",
        "export MLFLOW_TRACKING_USERNAME=ada MLFLOW_TRACKING_PASSWORD=...",
    ),
}
"""Commands by what they need; they are parsed, and their files must exist."""
INSTEAD: dict[str, str | None] = {
    **{command: f"{command} --dry-run" for command in TRAINS},
    **OTHERS,
    **dict.fromkeys(command for commands in NOT_RUN.values() for command in commands),
}
"""A command of a page, and what runs instead, if anything."""
NOT_COMPARED: dict[str, str] = {
    "turns: 3 of 9 runs to train": "these runs are there already; tests/integration/test_sweep.py trains",
    "error: my_study.yaml": "of a misspelt file, which a test below writes",
    "claims:": "of studies in sweeps/paper; tests/platform/study/test_claims.py reads them",
    '{"mcpServers"': "an entry in the configuration of an agent's program",
    "R_C = R_0 + (A - R_0)": "a formula",
    "effect of a against a0": "a formula",
    "interaction = mu_ab": "a formula",
    "interaction of a and b": "a formula",
    "y_i = a + b x_i": "a formula",
    "the command     <- lines of JSON ->": "a picture of processes",
    "2d0e66ae0f22, 248 steps": "of a run with a planted cause, which benchmarks/doctor_planted.py trains",
    "model:\n  type: llama\n": "the recipe of a published study; tests/docs/test_paper_results.py compares it",
    "import ablations": "a part of a script; tests/platform/test_log.py runs one",
}
"""How a block begins that is neither command, file, nor what a command of its page printed; and what it is."""
BF16 = PlannedVariant(name="bf16", overrides={"logits": "bf16"}, runs=(PlannedRun(seed=0, id="00000b000000"),))
"""What the sweep `ceilings` has beside the reference."""
FORMS = ("docs/design.md", "docs/formats.md")
"""Pages whose other blocks are folders, JSON and tests of programs; tests/platform/cli/test_formats.py ties them."""
PLACE = "/home/you/ablations"
"""The folder of the reader, in which pages show paths."""
WIDTH = 132
"""Columns of the terminal in which the pages' output was printed."""
NUMBER = re.compile(r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)(?![\w])")


@pytest.fixture(scope="module")
def trained(tmp_path_factory, empty_store):
    """The reader's folder after the tutorial, with what the other pages name."""
    place = tmp_path_factory.mktemp("trained")
    for name in ("recipes", "sweeps"):
        (place / name).symlink_to(REPOSITORY / name)
    (place / "my_study.yaml").write_text(study(with_dapo=True))
    home = Home(place / "ablation-runs")
    loo = make_home(home.path)
    write_log(home.run(planned_run("loo-loss", 0).id))
    write_run(home, BF16.runs[0].id, TRUTH["loo-loss"])
    changed(loo, sweep="ceilings", variants=(loo.plan.variants[0], BF16)).write_plan()
    loo.write_plan()
    for name in ("curves", "all", "wandb_chart"):
        write_curves(read_results(loo), place / f"{name}.csv")
    add_kept_runs(home, expand(place / "my_study.yaml").runs)
    shutil.copy(empty_store, home.path / "mlflow.db")
    write_own_task(place)
    sweep = ["sweep", str(place / "my_study.yaml"), "--home", str(home.path)]
    assert CliRunner().invoke(app, sweep).exit_code == 0
    return place


@pytest.fixture
def place(trained, tmp_path, monkeypatch):
    """A copy of it, in which commands run with a terminal of `WIDTH` columns, and simulate designs with two curves."""
    folder = tmp_path / "ablations"
    shutil.copytree(trained, folder, symlinks=True)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("ablations.cli.output.PIPE_WIDTH", WIDTH)
    monkeypatch.setattr("sys.argv", ["platform"])
    monkeypatch.setattr("ablations.answers.simulated_runs.NUM_CURVES", 2)
    for name in ("ABLATIONS_HOME", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    return folder


def write_log(folder: RunFolder) -> None:
    """A log, for the commands that print one."""
    folder.log(1).parent.mkdir(exist_ok=True)
    folder.log(1).write_text("step 1\n")


def write_curves(results, path: Path) -> None:
    """Every curve of a sweep in the columns of `platform fit` and `platform compare`."""
    curves = [(variant.name, run) for variant in results.variants for run in variant.runs]
    rows = [
        {"curve": name, "seed": run.seed, "compute": compute, "score": score}
        for name, run in curves
        for compute, score in zip(run.curve.compute, run.curve.score, strict=True)
    ]
    pd.DataFrame(rows).to_csv(path, index=False)


def write_own_task(place: Path) -> None:
    """`scales/mine.yaml` of the pages, and the files that it names: small, in the columns that were published."""
    pages = (REPOSITORY / "README.md", REPOSITORY / "docs/how-to.md")
    (text,) = {one.text for page in pages for one in blocks(page) if one.text.startswith("# scales/mine.yaml")}
    (place / "scales").mkdir()
    (place / "scales/mine.yaml").write_text(text)
    scale = yaml.safe_load(text)
    math, code = scale["tasks"]
    sums = [{"question": f"What is {n} + {n}?", "answer": f"It is {2 * n}.\n#### {2 * n}"} for n in range(150)]
    (place / math["path"]).write_text("".join(json.dumps(row) + "\n" for row in sums))
    programs = [
        {
            "text": f"Add {n} to a number.",
            "code": f"def add(a):\n    return a + {n}",
            "test_list": [f"assert add({m}) == {m + n}" for m in range(2)],
            "test_setup_code": "",
        }
        for n in range(40)
    ]
    pd.DataFrame(programs).to_parquet(place / code["path"])
    (aime,) = scale["evaluation"]["downstream"]
    contest = [{"problem": f"Find {n} times {n}.", "answer": f"{n * n:03d}"} for n in range(30)]
    (place / aime["path"]).write_text("".join(json.dumps(row) + "\n" for row in contest))
    model = text_model(place / scale["model"]["path"], thinks=False)
    settings = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(settings | {"max_position_embeddings": 4096}))


@pytest.mark.parametrize(
    "page",
    [pytest.param(one, marks=pytest.mark.studies if one in LONG else ()) for one in PAGES_RUN],
    ids=lambda page: page.relative_to(REPOSITORY).as_posix(),
)
def test_a_page_runs_and_prints_what_it_shows(page, place, pytestconfig):
    is_written = pytestconfig.getoption("--write-pages")
    name = page.relative_to(REPOSITORY).as_posix()
    do_before = reader_of_tutorial(place) if page == TUTORIAL else reader_of_loo(place)
    if name in ("README.md", "docs/index.md"):  # both begin with a sweep in a fresh clone
        shutil.rmtree(place / "ablation-runs/sweeps/turns")
    printed = [""]
    for block in blocks(page):
        where = f"{name}:{block.line}"
        for command in block.commands:
            do_before(command)
            printed.append(run(command, where, place))
        if block.commands or any(map(block.text.startswith, NOT_COMPARED)) or is_file(block, where, place):
            continue
        shown = block.text.replace(PLACE, str(place))
        if is_written and (made := first_made(printed, shown)) is not None:
            text = page.read_text()
            before, after = (textwrap.indent(one, "    ") for one in (block.text, made.replace(str(place), PLACE)))
            assert before in text, f"{where}: only indented blocks can be written"
            page.write_text(text.replace(before, after, 1))
            continue
        assert name in FORMS or any(shows(output, shown) for output in printed), (
            f"{where}: no command above printed this block:\n{shown}\nbut the last one:\n{printed[-1]}"
        )


def as_own_command(place: Path, *arguments: str) -> str:
    """What `platform` prints in a process of its own."""
    command = [sys.executable, "-m", "ablations.cli", *arguments]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=550)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_block_takes_new_numbers_and_keeps_its_lines():
    shown = "scalerl  0.63 [0.60, 0.66]\nand 1,876 more\n"
    output = "title\nscalerl  0.71 [0.70, 0.72] and\n1,883 more\n"
    assert first_made(["other", output], shown) == "scalerl  0.71 [0.70, 0.72]\nand 1,883 more\n"
    assert first_made([output.replace("1,883", "1,876").replace("0.7", "0.6")], "scalerl 0.61 [0.60, 0.62]\n") is None
    assert first_made(["title 2\nnew words\n\nnext"], "title 1\nold words\n") == "title 2\nnew words\n"
    assert first_made(["other"], shown) is None


def test_every_exception_is_on_a_page():
    every = [block for page in PAGES_RUN for block in blocks(page)]
    assert set(INSTEAD) <= {command.removeprefix(".venv/bin/") for block in every for command in block.commands}
    assert all(any(block.text.startswith(one) for block in every) for one in NOT_COMPARED)


def test_the_misspelt_setting_of_the_tutorial_is_refused_in_its_words(place):
    (shown,) = [one.text for one in blocks(TUTORIAL) if one.text.startswith("error: my_study.yaml")]
    (place / "my_study.yaml").write_text(study(with_dapo=False).replace("off_policy:", "off_polcy:"))
    refused = CliRunner().invoke(app, ["sweep", "my_study.yaml"])
    assert str(refused.exception).startswith(shown.removeprefix("error: ").removesuffix("...\n"))


def test_numbers_may_differ_by_one_in_the_last_digit_and_words_in_nothing():
    shown = "scalerl  3 of 3  >= 0.63\nonly"
    assert shows("a\nscalerl  3 of 3  >= 0.64   \n  more\nonly\n", shown)
    assert not shows("scalerl  3 of 3  >= 0.65\nonly", shown)
    assert not shows("scalerl  4 of 4  >= 0.63\nonly", shown)
    assert not shows("scalerl  3 of 3  1,876", "scalerl  3 of 3  1,883")
    assert not shows("scalerl  3 of 3  <= 0.63\nonly", shown)
    assert not shows("only\nscalerl  3 of 3  >= 0.63", shown)


def reader_of_tutorial(place: Path):
    """What its reader does before a command: the study, training (of which the runs are recorded), the added line."""
    shutil.rmtree(place / "ablation-runs/runs")
    shutil.rmtree(place / "ablation-runs/sweeps")
    (place / "my_study.yaml").write_text(study(with_dapo=False))
    trainings = iter((False, True))

    def do(command: str) -> None:
        if command == "platform sweep my_study.yaml":
            (place / "my_study.yaml").write_text(study(with_dapo=next(trainings)))
        if command.startswith("platform sweep my_study.yaml") and "--dry-run" not in command:
            runs = expand(place / "my_study.yaml").runs
            add_kept_runs(Home(place / "ablation-runs"), runs, times=2.0 if "--budget 2" in command else 1.0)

    return do


def reader_of_loo(place: Path):
    """The sweep `loo` is the last one that was started once its reader has started it."""

    def do(command: str) -> None:
        if command.startswith("platform sweep sweeps/loo.yaml"):
            Home(place / "ablation-runs").plan_file("loo").touch()

    return do


def run(command: str, where: str, place: Path) -> str:
    """What a command prints, or what runs in its place."""
    written = command.removeprefix(".venv/bin/")
    program, *arguments = shlex.split(written)
    if program == "make":
        subprocess.run(["make", "--dry-run", *arguments], cwd=REPOSITORY, check=True, capture_output=True)
        return ""
    instead = INSTEAD.get(written, written)
    if program == "platform":
        parse(arguments, where)
    if instead is None:
        return ""
    program, *arguments = shlex.split(instead)
    assert program == "platform", f"{where}: {command} neither runs here nor is it named in INSTEAD"
    if arguments[0] == "train":  # changes settings of torch for the whole process
        return as_own_command(place, *arguments)
    sys.argv = ["platform", *(MEANT.get(word, word) for word in arguments)]
    done = CliRunner().invoke(app, sys.argv[1:])
    assert done.exit_code == 0, f"{where}: {command}\n{done.output}\n{done.exception}"
    return done.output


def parse(arguments: list[str], where: str) -> None:
    """Raises as `platform` does for what it does not know; the files that are named must be there."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    with group.make_context("platform", ["--help"], resilient_parsing=True) as context:
        name, command, rest = group.resolve_command(context, [MEANT.get(word, word) for word in arguments])
        assert command is not None
        command.make_context(name, rest, parent=context)
    for word, before in zip(arguments[1:], arguments, strict=False):
        is_read = re.search(r"\.(yaml|csv|tar\.gz)$", word) and before not in ("--to", "new")
        assert not is_read or Path(MEANT.get(word, word)).exists(), f"{where}: no file {word}"


def is_file(block: Block, where: str, place: Path) -> bool:
    """Whether a block is a sweep, a scale, part of one, a table or Python; each is then read as its reader would."""
    text = block.text
    if re.fullmatch(r"(curve,(seed,)?compute,score)\n(\w+,([\d.]+,?)+\n)+", text):
        header = (place / "curves.csv").read_text().partition("\n")[0]
        assert set(text.partition("\n")[0].split(",")) <= set(header.split(","))
        return True
    if text.startswith("import mlflow"):
        run("platform sync loo", where, place)
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{place}/ablation-runs/mlflow.db")
            assert run_search(text) == ["scalerl", "loo-curriculum", "loo-loss"]
        return True
    keys = set(re.findall(r"^([a-z_]+):", text, re.MULTILINE))
    if text.startswith("# mine.yaml"):
        (place / "mine.yaml").write_text(text)
        return True
    if named := re.match(r"# ((?:topr|pieces|sums)\.yaml|(?:my_ideas/)?\w+\.py)\n", text):
        path = place / named[1]
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        if path.suffix == ".yaml":
            expand(path)
        return True
    if not keys or not keys <= {*Sweep.model_fields, *Scale.model_fields, "dapo"}:
        return False
    if "trainer" in keys:
        for name in ("bandit.py", "bandit_settings.yaml"):
            shutil.copy(REPOSITORY / "sweeps/command" / name, place)
        of_program = {"name": "part", "reference": "bandit_settings.yaml", "budget": {"compute": 640}}
        written = of_program | yaml.safe_load(text)
        written["trainer"]["code"] = ["bandit.py"]  # this place is no clone of git
        (place / "written.yaml").write_text(yaml.safe_dump({"axes": {"learning_rate": [0.05]}} | written))
        expand(place / "written.yaml")
        return True
    if "name" in keys:
        (place / "written.yaml").write_text(text)
        expand(place / "written.yaml")
        return True
    for number, one in enumerate(alternatives(text, place)):
        file = place / f"part-{number}.yaml"
        if keys <= set(Scale.model_fields):
            file.write_text(
                yaml.safe_dump(yaml.safe_load((place / "recipes/scales/laptop_wall.yaml").read_text()) | one)
            )
            load_resolved("scalerl", str(file), ["length_control.type=none"] if "generation" in keys else [])
        else:
            whole = {key: value for key, value in WHOLE.items() if key != "scale" or "scales" not in one}
            file.write_text(yaml.safe_dump(whole | ({"variants": one} if "dapo" in keys else one)))
            expand(file)
    return True


def alternatives(text: str, place: Path) -> list[dict[str, Any]]:
    """What the block writes, once for each time that it writes its first key, as the platform reads YAML: `on` is a
    word."""
    key = text.splitlines()[0 if text[0] != "#" else 1].partition(":")[0]
    parts = re.split(rf"^(?={key}:)", text, flags=re.MULTILINE)
    found = []
    for part in filter(yaml.safe_load, parts):
        (place / "alternative.yaml").write_text(part)
        found.append(read_yaml(place / "alternative.yaml").data)
    return found


def run_search(text: str) -> list[str]:
    """The variants that a search in MLflow finds, in its order; its last line is the search."""
    *before, last = text.rstrip().splitlines()
    names: dict[str, Any] = {}
    exec("\n".join(before), names)
    return eval(last, names)["tags.variant"].tolist()


def shows(output: str, shown: str) -> bool:
    """Whether every line of `shown` is in the output, in order; decimals may differ by one in the last digit, as they
    do on another processor.
    """
    found = lines_like(output, shown)
    return found is not None and all(
        all(map(is_near, NUMBER.findall(one), NUMBER.findall(line)))
        for one, line in zip(found, shown.splitlines(), strict=True)
    )


def lines_like(output: str, shown: str) -> list[str] | None:
    """The part of the output like each line of `shown`, in order, whatever its numbers are and without regard to
    blanks; None if a line has none. Of several like a line that with the nearest numbers that comes first.
    """
    rest, found = " ".join(output.split()), list[str]()
    for line in shown.splitlines():
        words = " ".join(line.split())
        pattern = "".join(
            re.escape(part) if n % 2 == 0 else NUMBER.pattern for n, part in enumerate(NUMBER.split(words))
        )
        wanted, like = NUMBER.findall(words), [*re.finditer(pattern, rest)]
        near = (one for one in like if all(map(is_near, NUMBER.findall(one[0]), wanted)))
        first = next(near, next(iter(like), None))
        if first is None:
            return None
        found.append(first[0])
        rest = rest[first.end() :]
    return found


def is_near(number: str, wanted: str) -> bool:
    """`0.64` is near `0.63`; `0.65` is not, nor is `1,877` near `1,876`."""
    found, expected = (float(one.replace(",", "")) for one in (number, wanted))
    decimals = len(wanted.partition(".")[2])
    return abs(found - expected) <= (1.01 * 10.0**-decimals if decimals else 0.0)


def first_made(printed: Sequence[str], shown: str) -> str | None:
    """The block as commands print it now: with other numbers, if its words are those of an output, else the paragraph
    of the last output that begins like it. None if it is up to date, or no output has it.
    """
    for output in reversed(printed):
        if (found := lines_like(output, shown)) is not None:
            lines = [with_numbers_of(line, one) for line, one in zip(shown.splitlines(), found, strict=True)]
            made = "".join(f"{line}\n" for line in lines)
            return None if made == shown else made
    first = shown.splitlines()[0]
    for output in reversed(printed):
        lines = output.splitlines()
        begin = next((place for place, line in enumerate(lines) if lines_like(line, first)), None)
        if begin is not None:
            return "".join(f"{line.rstrip()}\n" for line in takewhile(str.strip, lines[begin:]))
    return None


def with_numbers_of(line: str, made: str) -> str:
    """The line with the numbers of another one, in order."""
    numbers = iter(NUMBER.findall(made))
    return NUMBER.sub(lambda _: next(numbers), line)
