"""Prepares the server for the first request: imports the drawing libraries and loads the saved readings of a sweep.

Plotly, pandas and SciPy take more than a second to import, and 2,000 runs take a few seconds to read and compare. A
thread does both from the server's start, while the browser still loads Streamlit's own scripts.

    python -m ablations_dashboard.server.preload APP_FILE [FLAGS OF STREAMLIT ...]
"""

import gc
import sys
from contextlib import suppress
from threading import Lock, Thread

from ablations.errors import AblationsError

IMPORTING = Lock()
"""Held during the thread's imports, since two threads importing at once may see a half-loaded module."""


def work_ahead() -> Thread:
    """Start the work in a thread that ends with this process; `IMPORTING` is held until its imports are done."""
    IMPORTING.acquire()
    thread = Thread(target=_work, daemon=True)
    thread.start()
    return thread


def _work() -> None:
    try:
        _import_and_read()
    finally:
        # Streamlit collects garbage after every visit; what has been made so far stays, and need not be searched again.
        gc.freeze()
        gc.enable()


def _import_and_read() -> None:
    try:
        from ablations.home.home import find_home
        from ablations_dashboard.reading.cache import read_ahead
        from ablations_dashboard.views import compare, forecast, paper, recipes, run, runs, search, sweeps  # noqa: F401
    finally:
        IMPORTING.release()
    home = find_home(None)
    with suppress(AblationsError, OSError, ValueError):  # the page that needs it reports the error
        for name in home.sweep_names()[:1]:  # the last started one, the default of the pages
            read_ahead(home.path, name)


def main() -> None:
    """Serve the pages."""
    from streamlit.web.cli import main as streamlit

    from ablations_dashboard.server import preload

    gc.disable()  # imports and readings make hundreds of thousands of objects, and hardly any garbage
    preload.work_ahead()  # not of __main__, which Streamlit replaces
    streamlit(["run", *sys.argv[1:]])


if __name__ == "__main__":
    main()
