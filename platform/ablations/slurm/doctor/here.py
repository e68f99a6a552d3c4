"""Checks of this machine: Python, packages, the home folder and MLflow."""

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import urlopen

from ablations.errors import AblationsError
from ablations.files.database import sqlite_path, sqlite_url
from ablations.home.home import Home
from ablations.slurm.doctor.examine_node import (
    ENGINES,
    look_at_engines,
    look_at_modules,
    python_version,
    reason,
    torch_gpus,
)
from scalerl.checks.finding import Finding, judged

MACHINE_PART = "this machine"
LITTLE_SPACE_GB = 10.0
"""Space for two checkpoints of a small model; with less, a sweep may end with a full disk."""
FEW_FILES = 10_000
OLDEST_PYTHON = (3, 11)
CONNECT_LIMIT_S = 5.0


def check_here(home: Home, tracking_uri: str) -> Iterator[Finding]:
    """All checks that need no Slurm."""
    found = f"{python_version()} at {sys.executable}"
    old = sys.version_info < OLDEST_PYTHON
    yield judged(MACHINE_PART, "Python", f"{found} is too old" if old else "", found, "install Python 3.11 or newer")
    yield from check_modules(
        MACHINE_PART, look_at_modules(), "install the project: run `pip install --editable .` in its folder"
    )
    yield check_engine_versions(MACHINE_PART, engines := look_at_engines(), engines, has_gpus=torch_gpus() > 0)
    yield check_home(home)
    problem, place = look_at_tracking(tracking_uri), without_password(tracking_uri)
    problem = f"{place}: {problem}" if problem else ""
    remedy = "fix this or choose another --tracking-uri; sweeps run without MLflow, and `platform sync` can catch up"
    yield judged(MACHINE_PART, "tracking", problem, f"{place} can be used", remedy, level="warning")


def check_modules(part: str, modules: dict[str, dict[str, str]], remedy: str) -> Iterator[Finding]:
    """One finding for all packages that can be imported, and one per package that cannot."""
    good = [f"{name} {found['version']}" for name, found in modules.items() if "error" not in found]
    if good:
        yield Finding(part=part, check="packages", level="ok", found=", ".join(good))
    for name, found in modules.items():
        if "error" in found:
            yield Finding(part=part, check=name, level="error", found=found["error"], remedy=remedy)


def check_engine_versions(part: str, there: dict[str, str], here: dict[str, str], *, has_gpus: bool) -> Finding:
    """Check that a machine has vLLM and DeepSpeed for its devices, in the versions installed here.

    Only scales that name an engine need it; a missing engine is a warning on machines with GPUs.
    """
    remedy = "in the project's folder, run `pip install --constraint constraints.txt '.[vllm,deepspeed]'`"
    problems = [f"{name} is not installed, but some scales need it" for name in ENGINES if name not in there]
    problems = problems if has_gpus else []
    for name, found in there.items():
        if has_gpus and found.split()[0] != ENGINES[name][0]:
            problems.append(f"{found} does not use the GPUs there")
        if found != here.get(name):
            problems.append(f"{found} there, {here.get(name, 'not installed')} here")
    found = ", ".join(there.values()) or "none; only scales with `vllm` or `deepspeed` need them"
    return judged(part, "engines", "; ".join(problems), found, remedy, level="warning")


def check_home(home: Home) -> Finding:
    """Check that the home folder is writable, and how much space it has."""
    another = "free some space, or choose another folder with --home or ABLATIONS_HOME"
    try:
        home.require_writable()
    except AblationsError as error:
        return Finding(
            part=MACHINE_PART, check="home folder", level="error", found=str(error).partition(";")[0], remedy=another
        )
    free_gb, num_files = shutil.disk_usage(home.path).free / 1e9, os.statvfs(home.path)
    # File systems without a fixed number of files report 0 of 0.
    few = num_files.f_files > 0 and num_files.f_favail < FEW_FILES
    little = free_gb < LITTLE_SPACE_GB
    found = f"{home.path}: {free_gb:.0f} GB free" + (f", room for {num_files.f_favail} files" if few else ", writable")
    return judged(MACHINE_PART, "home folder", found if little or few else "", found, another, level="warning")


def look_at_tracking(uri: str) -> str:
    """The reason why MLflow cannot be used from this machine; empty if it can."""
    parts = urlsplit(uri)
    try:
        if parts.scheme in ("http", "https"):
            return look_at_server(uri)
        if parts.scheme.partition("+")[0] == "sqlite":
            database = uri.partition(":///")[2].partition("?")[0]
            return look_at_path(Path(unquote(database) or "."))
        if parts.scheme == "file":
            return look_at_path(Path(unquote(parts.path)))
        if parts.scheme == "":
            return look_at_path(Path(uri))
        if parts.hostname is None:
            return f"the doctor cannot check addresses that start with {parts.scheme}:"
        ports = {"postgresql": 5432, "mysql": 3306, "mssql": 1433}
        port = parts.port or ports.get(parts.scheme.partition("+")[0], 443)
        socket.create_connection((parts.hostname, port), timeout=CONNECT_LIMIT_S).close()
    except (OSError, ValueError, HTTPException) as error:
        return reason(error)
    return ""


def look_at_server(uri: str) -> str:
    """The reason why an MLflow server does not answer; any answer except a gateway error counts."""
    try:
        urlopen(uri.rstrip("/") + "/health", timeout=CONNECT_LIMIT_S).close()
    except HTTPError as error:
        return f"HTTP {error.code} {error.reason}" if error.code >= 500 else ""
    except URLError as error:
        return reason(error.reason) if isinstance(error.reason, Exception) else str(error.reason)
    return ""


def look_at_path(path: Path) -> str:
    """The reason why a file or folder cannot be written or created; empty if it can."""
    if path.exists() and not os.access(path, os.W_OK):
        return f"{path} is not writable"
    folder = path if path.is_dir() else path.parent
    # MLflow creates missing folders itself; the home folder's own store stands in an existing folder.
    while not folder.exists():
        folder = folder.parent
    with tempfile.TemporaryFile(dir=folder):
        return ""


def without_password(uri: str) -> str:
    """An address for display, without its password."""
    parts = urlsplit(uri)
    if parts.password is None:
        return uri
    return urlunsplit(parts._replace(netloc=f"{parts.username}:***@{parts.netloc.rpartition('@')[2]}"))


def absolute(uri: str) -> str:
    """An address independent of the current folder, because jobs may start in another one."""
    if path := sqlite_path(uri):
        return uri if path.is_absolute() else sqlite_url(path)
    return uri if urlsplit(uri).scheme else str(Path(uri).absolute())
