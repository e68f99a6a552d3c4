"""A webhook on this machine."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(kw_only=True)
class Webhook:
    """What it was sent, and the status with which it answers; other than with 200 it keeps nothing."""

    url: str
    status: int = 200
    bodies: list[dict[str, Any]] = field(default_factory=list)

    @property
    def kinds(self) -> list[str]:
        """The kinds of all events, in the order in which they were told."""
        return [event["kind"] for body in self.bodies for event in body["events"]]


@contextmanager
def webhook() -> Iterator[Webhook]:
    """A webhook that listens until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if hook.status == 200:
                hook.bodies.append(body)
            self.send_response(hook.status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook = Webhook(url=f"http://127.0.0.1:{server.server_address[1]}/services/secret")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield hook
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
