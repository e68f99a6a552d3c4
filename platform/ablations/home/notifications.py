"""Sends events of the runs of a sweep to a webhook: `notify:` of a sweep file.

    notify: {url: $SLACK_WEBHOOK, on: [failed, held, done, warning]}

Commands and jobs that read the states of a sweep call `tell_webhook`. Sent events are recorded in `notified.json` of
the sweep's folder, so that each is sent once, or twice if a process is killed while sending. A webhook that does not
answer costs a few seconds, and its events are sent the next time. The address is a secret: an environment variable
holds it, and no file, log or message of ours does.

    POST {"text": "loo: loo-loss, seed 1 failed: ...", "content": the same, "sweep": "loo", "events": [...]}

Slack reads `text`, Discord `content`, scripts the rest.
"""

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from filelock import FileLock, Timeout

from ablations.errors import AblationsError
from ablations.home.labels import run_name
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import RunState
from scalerl.plain_json import parsed_json
from scalerl.run.run_folder import write_atomically

TIMEOUT_S = 5.0
"""Time limit for the webhook's answer."""
MOST_LINES = 10
"""Maximum number of events in the text of one message; `events` has all of them."""
MOST_CHARACTERS = 1900
"""Maximum length of a text; Discord rejects more than 2,000 characters."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event to send: `Event(kind="failed", key="failed 81d2f0a95c3b 1", text="loo-loss, seed 1 failed: ...")`."""

    kind: str
    key: str
    """Unique key; an event with a known key is not sent again."""
    text: str


def require_address(sweep: StartedSweep) -> None:
    """Raise AblationsError if the sweep has a webhook whose environment variable is not set."""
    settings = sweep.plan.notify
    if settings and not os.environ.get(_variable(settings)):
        raise AblationsError(f"notify.url is {settings['url']}, which is not set; export it, or remove notify")


def tell_webhook(sweep: StartedSweep, states: Mapping[str, RunState], held: str = "") -> str:
    """Send the new events of these states, by run id, and the reason why the sweep is held, if any.

    Returns the reason why sending failed, without the address; empty on success or without new events.
    """
    settings = sweep.plan.notify
    if not settings:
        return ""
    wanted = [one for one in events(sweep, states, held) if one.kind in settings["on"]]
    record = sweep.folder / "notified.json"
    try:
        with FileLock(record.with_suffix(".lock"), timeout=TIMEOUT_S):
            told = set(parsed_json(record.read_bytes())) if record.exists() else set()
            new = [one for one in wanted if one.key not in told]
            if not new:
                return ""
            if why := _post(os.environ.get(_variable(settings), ""), _body(sweep.name, new)):
                return f"could not tell {settings['url']}: {why}"
            write_atomically(record, json.dumps(sorted(told | {one.key for one in new}), indent=1).encode())
    except (Timeout, OSError, ValueError) as error:
        return f"could not tell {settings['url']}: {record.name}: {type(error).__name__}"
    return ""


def events(sweep: StartedSweep, states: Mapping[str, RunState], held: str) -> Iterator[Event]:
    """Every event that these states give rise to."""
    names = {run.id: run_name(one.name, run.seed) for one in sweep.plan.variants for run in one.runs}
    for run, state in states.items():
        name = names[run]
        if state.state.is_failure:
            why = f": {state.message}" if state.message else ""
            ended = {"failed": "failed", "lost": "was lost"}.get(state.state, f"ended: {state.state}")
            yield Event(kind="failed", key=f"failed {run} {state.attempt}", text=f"{name} {ended}{why}")
        for warning in state.warnings:
            rule = re.sub(r"[\d.,]+", "#", warning)  # the figures in a warning change while it lasts
            yield Event(kind="warning", key=f"warning {run} {rule}", text=f"{name}: warning: {warning}")
    if held:
        yield Event(kind="held", key=f"held {held}", text=f"waiting runs are held: {held}")
    if states and all(state.state.is_finished for state in states.values()):
        size = f"{len(states)} {sweep.plan.budget_gpu_hours}"
        command = f"platform compare {sweep.name}{sweep.home.end_of_command}"
        text = f"all {len(states)} runs have ended; for the verdict, run `{command}`"
        yield Event(kind="done", key=f"done {size}", text=text)


def _variable(settings: Mapping[str, object]) -> str:
    return str(settings["url"]).removeprefix("$")


def _body(sweep: str, new: Iterable[Event]) -> bytes:
    events = list(new)
    lines = [one.text for one in events[:MOST_LINES]]
    if more := len(events) - len(lines):
        lines.append(f"and {more} more")
    text = f"{sweep}: " + "\n".join(lines)
    text = text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
    told = [{"kind": one.kind, "text": one.text} for one in events]
    return json.dumps({"text": text, "content": text, "sweep": sweep, "events": told}).encode()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Rejects redirects: a redirected message would arrive as a GET without its body, and count as sent."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any) -> None:
        """Follow no redirect, so that the status is an error."""


_OPENER = urllib.request.build_opener(_NoRedirect)


def _post(url: str, body: bytes) -> str:
    """Send a message; returns the reason of a failure, in words that never contain the address."""
    if not url.startswith(("https://", "http://")):
        return "no URL" if not url else "not a URL that begins with https:// or http://"
    try:
        request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"}, method="POST")
        with _OPENER.open(request, timeout=TIMEOUT_S):
            return ""
    except urllib.error.HTTPError as error:
        return f"HTTP status {error.code}"
    except urllib.error.URLError as error:
        return type(error.reason).__name__ if isinstance(error.reason, Exception) else "no connection"
    except Exception as error:  # whatever a webhook does must cost the sweep nothing; messages may quote the address
        return type(error).__name__
