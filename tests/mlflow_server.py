"""A real MLflow server that starts when the test says so, on a port of 127.0.0.1 that is known before."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ports import free_ports
from reaper import start_reaper


class MlflowServer:
    """Not there until `start` is called."""

    def __init__(self, folder: Path) -> None:
        (self.port,) = free_ports(1)
        self._folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        self.reaper: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        """Where it is or will be."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Return at once; it answers after some seconds."""
        command = (
            *(sys.executable, "-m", "mlflow", "server", "--host=127.0.0.1", f"--port={self.port}", "--workers=1"),
            f"--backend-store-uri=sqlite:///{self._folder}/server.db",
            f"--artifacts-destination={self._folder}/artifacts",
        )
        with (self._folder / "server.log").open("wb") as log:
            # Without MLflow's own queue of jobs, three processes that nothing here asks for anything.
            own = {"MLFLOW_SERVER_OF": str(self._folder), "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
            self.reaper = start_reaper(f"MLFLOW_SERVER_OF={self._folder}")
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self._folder, env=os.environ | own, start_new_session=True
            )


@contextmanager
def mlflow_server(folder: Path, store: Path) -> Iterator[MlflowServer]:
    """One that begins with a copy of `store` and ends with all of its workers, even if this process is killed."""
    server = MlflowServer(folder)
    shutil.copy(store, folder / "server.db")
    try:
        yield server
    finally:
        if server.reaper and server.process:
            server.reaper.communicate()
            server.process.wait()
