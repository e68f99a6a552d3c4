"""The policy as an OpenAI server on 127.0.0.1: `POST /v1/chat/completions`, streaming too, and `GET /v1/models`.

    request     {"messages": [{"role": "user", "content": "2 + 2?"}], "max_tokens": 40, "logprobs": true}
    answer      {"choices": [{"message": {"role": "assistant", "content": "4"}, "finish_reason": "stop", ...}], ...}

A setting that would sample otherwise than the run does is refused, and so are tools: an agent describes them in a
message, and reads its calls from the answer's text.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, cast

from scalerl.errors import Internal
from scalerl.tokens.messages import Message

MODEL = "policy"
MOST_BYTES = 1 << 26
ROLES = {one: one for one in ("system", "user", "assistant", "tool")} | {"developer": "system"}
ONLY = {"n": 1, "top_p": 1, "frequency_penalty": 0, "presence_penalty": 0, "stop": [], "tools": [], "functions": []}
ONLY |= {"logit_bias": {}, "response_format": {"type": "text"}}
"""The one value that a setting may have; absent or null means the same."""


class BadRequest(Internal):
    """A request of an agent that is refused; the message tells it why."""

    def __init__(self, message: str, status: int = 400, code: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status, self.code = status, code


@dataclass(frozen=True, kw_only=True)
class ChatRequest:
    """What an agent asks: `ChatRequest(messages=[{"role": "user", "content": "2 + 2?"}], most=40)`."""

    messages: list[Message]
    most: int | None
    """Limit of tokens that the agent set; None if it set none."""


@dataclass(frozen=True, kw_only=True)
class ChatAnswer:
    """The policy's turn."""

    content: str
    """Its text, without its thinking."""
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    truncated: bool


def read_request(body: Any, temperature: float | None) -> ChatRequest:
    """The request in a JSON body; raises BadRequest."""
    if not isinstance(body, dict):
        raise BadRequest("the body is not a JSON object; send {'messages': [{'role': 'user', 'content': '...'}]}")
    for name, only in {**ONLY, **({} if temperature is None else {"temperature": temperature})}.items():
        if (given := body.get(name)) is not None and given != only:
            raise BadRequest(f"{name} is {str(given)[:80]}; must be absent or {only}, as in the whole run")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest(f"messages is {str(messages)[:80]}; must be a list of messages")
    most = body.get("max_completion_tokens") or body.get("max_tokens")
    if most is not None and (type(most) is not int or most < 1):
        raise BadRequest(f"max_tokens is {str(most)[:80]}; must be a whole number from 1 on")
    return ChatRequest(messages=[_message(one) for one in messages], most=most)


def _message(given: Any) -> Message:
    role = ROLES.get(str(given.get("role"))) if isinstance(given, dict) else None
    if role is None:
        raise BadRequest(f"{str(given)[:80]} is not a message; its role must be one of {', '.join(ROLES)}")
    if given.get("tool_calls"):
        raise BadRequest("tool_calls are not supported; write calls as text")
    content = given.get("content") or ""
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    if not all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in parts):
        raise BadRequest(
            f"content is {str(content)[:80]}; must be text, or a list of {{'type': 'text', 'text': '...'}}"
        )
    return {"role": role, "content": "".join(part["text"] for part in parts)}


AnswerRequest = Callable[[str, ChatRequest], tuple[tuple[int, ...], ChatAnswer]]
"""Asks with the key of an episode; returns the tokens of the prompt and the answer, or raises BadRequest."""


class Endpoint(ThreadingHTTPServer):
    """The server, on a free port until it is closed."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, ask: AnswerRequest, decode: Callable[[Sequence[int]], str], temperature: float | None) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.ask, self.decode, self.temperature = ask, decode, temperature
        Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def url(self) -> str:
        """`http://127.0.0.1:43127/v1`"""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def close(self) -> None:
        """End the server; answers that are awaited are never sent."""
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """An agent that hangs up costs nothing."""

    def answered(self, secret: str, body: Any) -> dict[str, Any]:
        """The answer to the JSON body of a request."""
        prompt, answer = self.ask(secret, read_request(body, self.temperature))
        choice: dict[str, Any] = {"index": 0, "message": {"role": "assistant", "content": answer.content}}
        choice |= {"finish_reason": "length" if answer.truncated else "stop", "logprobs": None}
        more: dict[str, Any] = {}
        if body.get("logprobs"):
            texts = [self.decode([token]) for token in answer.tokens]
            choice["token_ids"], more["prompt_token_ids"] = answer.tokens, prompt
            choice["logprobs"] = {
                "content": [
                    {"token": text, "logprob": logprob, "bytes": list(text.encode()), "top_logprobs": []}
                    for text, logprob in zip(texts, answer.logprobs, strict=True)
                ]
            }
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(answer.tokens)}
        usage["total_tokens"] = sum(usage.values())
        return {"id": "chatcmpl-0", "created": 0, "model": MODEL, "choices": [choice], "usage": usage, **more}


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are no news of a run."""

    def do_GET(self) -> None:
        if self.path.rstrip("/") == "/v1/models":
            self._send(200, {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "run"}]})
        else:
            self._refuse(BadRequest(f"no page {self.path}; ask /v1/chat/completions", 404))

    def do_POST(self) -> None:
        endpoint = cast(Endpoint, self.server)
        try:
            size = int(self.headers.get("Content-Length", -1))
            if not 0 <= size <= MOST_BYTES:
                self.close_connection = True  # what it sends is not read
                raise BadRequest(f"Content-Length must be at most {MOST_BYTES}", 413)
            content = self.rfile.read(size)
            if self.path != "/v1/chat/completions":
                raise BadRequest(f"no page {self.path}; ask /v1/chat/completions", 404)
            try:
                body = json.loads(content)
            except ValueError as error:
                raise BadRequest(f"the body is not JSON ({error})") from None
            answer = endpoint.answered(self.headers.get("Authorization", "").removeprefix("Bearer "), body)
        except BadRequest as error:
            self._refuse(error)
            return
        if body.get("stream"):
            self._stream(answer, (body.get("stream_options") or {}).get("include_usage", False))
        else:
            self._send(200, {**answer, "object": "chat.completion"})

    def _refuse(self, error: BadRequest) -> None:
        self._send(
            error.status, {"error": {"message": str(error), "type": "invalid_request_error", "code": error.code}}
        )

    def _send(self, status: int, body: dict[str, Any], kind: str = "application/json") -> None:
        self._write(status, kind, json.dumps(body).encode())

    def _stream(self, answer: dict[str, Any], with_usage: bool) -> None:
        """The answer as events; its text comes whole, since it is asked for when it is done."""
        choice, usage = answer["choices"][0], answer.pop("usage")
        first = {**choice, "delta": choice["message"], "finish_reason": None}
        del first["message"]
        last = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
        chunks: list[dict[str, Any]] = [{"choices": [first]}, {"choices": [last]}]
        chunks += [{"choices": [], "usage": usage}] if with_usage else []
        events = [json.dumps({**answer, "object": "chat.completion.chunk", **chunk}) for chunk in chunks]
        self._write(200, "text/event-stream", "".join(f"data: {one}\n\n" for one in [*events, "[DONE]"]).encode())

    def _write(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
