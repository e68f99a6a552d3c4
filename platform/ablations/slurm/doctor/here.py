"""Checks of this machine: Python, packages, the home folder and MLflow."""

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen

from ablations.errors import AblationsError
from ablations.files.database import sqlite_path, sqlite_url
from ablations.home.home import Home
from ablations.slurm.doctor.examine_node import ENGINES, reason
from scalerl.checks.finding import Finding, judged
from scalerl.credentials import without_secrets

MACHINE_PART = "this machine"
LITTLE_SPACE_GB = 10.0
"""Space for two checkpoints of a small model; with less, a sweep may end with a full disk."""
FEW_FILES = 10_000
OLDEST_PYTHON = (3, 11)
CONNECT_LIMIT_S = 5.0


def check_here(home: Home, tracking_uri: str, here: dict[str, Any]) -> Iterator[Finding]:
    """All checks that need no cluster; `here` is what `look_at_machine` found."""
    found = f"{here['python']['version']} at {sys.executable}"
    old = sys.version_info < OLDEST_PYTHON
    yield judged(MACHINE_PART, "Python", f"{found} is too old" if old else "", found, "install Python 3.11 or newer")
    remedy = "install the project: run `pip install --editable .` in its folder"
    yield from check_modules(MACHINE_PART, here["modules"], remedy)
    yield check_engine_versions(MACHINE_PART, here, here)
    yield check_home(home)
    problem, place = look_at_tracking(tracking_uri), without_secrets(tracking_uri)
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


def check_engine_versions(part: str, there: dict[str, Any], here: dict[str, Any]) -> Finding:
    """Check that a machine has vLLM and DeepSpeed for its devices, in the versions installed here.

    Only scales that name an engine need it; a missing engine is a warning on machines with GPUs.
    """
    engines, has_gpus, problems = there["engines"], there["gpus"]["torch"] > 0, []
    if has_gpus:
        problems += [f"{name} is not installed, but some scales need it" for name in ENGINES if name not in engines]
    for name, found in engines.items():
        if has_gpus and found.split()[0] != ENGINES[name][0]:
            problems.append(f"{found} does not use the GPUs there")
        if found != here["engines"].get(name):
            problems.append(f"{found} there, {here['engines'].get(name, 'not installed')} here")
    found = ", ".join(engines.values()) or "none; only scales with `vllm` or `deepspeed` need them"
    remedy = "in the project's folder, run `pip install --constraint constraints.txt '.[vllm,deepspeed]'`"
    return judged(part, "engines", "; ".join(problems), found, remedy, level="warning")


def check_home(home: Home) -> Finding:
    """Check that the home folder is writable, and how much space it has."""
    check, remedy = "home folder", "free some space, or choose another folder with --home or ABLATIONS_HOME"
    try:
        home.require_writable()
    except AblationsError as error:
        return judged(MACHINE_PART, check, str(error).partition(";")[0], "", remedy)
    free_gb, num_files = shutil.disk_usage(home.path).free / 1e9, os.statvfs(home.path)
    # File systems without a fixed number of files report 0 of 0.
    few = num_files.f_files > 0 and num_files.f_favail < FEW_FILES
    found = f"{home.path}: {free_gb:.0f} GB free" + (f", room for {num_files.f_favail} files" if few else ", writable")
    problem = found if free_gb < LITTLE_SPACE_GB or few else ""
    return judged(MACHINE_PART, check, problem, found, remedy, level="warning")


def look_at_tracking(uri: str) -> str:
    """The reason why MLflow cannot be used from this machine; empty if it can. Any answer from a server counts, except
    a gateway's error that the server is down.
    """
    parts = urlsplit(uri)
    scheme = parts.scheme.partition("+")[0]
    try:
        if scheme in ("http", "https"):
            urlopen(uri.rstrip("/") + "/health", timeout=CONNECT_LIMIT_S).close()
            return ""
        if scheme in ("sqlite", "file", ""):
            path = {"sqlite": uri.partition(":///")[2].partition("?")[0] or ".", "file": parts.path}.get(scheme)
            return look_at_path(Path(uri if path is None else unquote(path)))
        if parts.hostname is None:
            return f"the doctor cannot check addresses that start with {parts.scheme}:"
        port = parts.port or {"postgresql": 5432, "mysql": 3306, "mssql": 1433}.get(scheme, 443)
        socket.create_connection((parts.hostname, port), timeout=CONNECT_LIMIT_S).close()
    except HTTPError as error:
        return f"HTTP {error.code} {error.reason}" if error.code >= 500 else ""
    except (OSError, ValueError, HTTPException) as error:
        cause = getattr(error, "reason", None)  # urllib hides the error of the connection in its own
        return reason(cause if isinstance(cause, Exception) else error)
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


def absolute(uri: str) -> str:
    """An address independent of the current folder, because jobs may start in another one."""
    if path := sqlite_path(uri):
        return uri if path.is_absolute() else sqlite_url(path)
    return uri if urlsplit(uri).scheme else str(Path(uri).absolute())
