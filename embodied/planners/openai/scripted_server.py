"""A chat server that says what it is told to, faults included: the offline partner of ``openai:`` in tests."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from embodied.skills.contract import SkillCall

_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer of the scripted server.

    Attributes:
      content: text of the message.
      tool_calls: (function name, arguments as JSON text) pairs.
      status: HTTP status; anything but 200 sends an error body.
      headers: extra response headers.
      finish_reason: as the protocol names it.
      delay_s: wall-clock wait before answering.
      drop: close the connection without an answer.
      raw: body to send as it is, instead of a completion.
    """

    content: str = ""
    tool_calls: tuple[tuple[str, str], ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    finish_reason: str = "stop"
    delay_s: float = 0.0
    drop: bool = False
    raw: str | None = None


def calls_reply(*calls: SkillCall) -> Reply:
    """Reply with well-formed calls in the JSON form."""
    return Reply(content=json.dumps({"calls": [{"skill": c.skill, "args": dict(c.args)} for c in calls]}))


def tools_reply(*calls: SkillCall) -> Reply:
    """Reply with well-formed calls as tool calls."""
    return Reply(tool_calls=tuple((c.skill, json.dumps(dict(c.args))) for c in calls), finish_reason="tool_calls")


Script = Iterable[Reply] | Callable[[Mapping[str, Any]], Reply]


class ScriptedServer:
    """Serves ``POST /v1/chat/completions`` on loopback from a script. Use it as a context manager.

    Args:
      script: replies in order (the last one repeats), or a function of the request.

    Attributes:
      requests: bodies of the requests so far.
      keys: keys they carried.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._replies: Sequence[Reply] = () if callable(script) else tuple(script)
        self._lock = threading.Lock()
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def base_url(self) -> str:
        """What to give as ``base_url``."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(timeout=5.0)

    def reply(self, body: dict[str, Any], key: str) -> Reply:
        """Take a request down and return what to answer."""
        with self._lock:
            index = len(self.requests)
            self.requests.append(body)
            self.keys.append(key)
        problem = request_problem(body)
        if problem:
            return Reply(status=400, content=problem)
        if callable(self._script):
            return self._script(body)
        return self._replies[min(index, len(self._replies) - 1)]


def request_problem(body: Mapping[str, Any]) -> str:
    """Say what is wrong with a request by the protocol, images included; empty if nothing is."""
    messages = body.get("messages")
    if not isinstance(body.get("model"), str) or not isinstance(messages, list) or not messages:
        return "model and messages are required"
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if part.get("type") == "image_url" and not _is_image(part["image_url"]["url"]):
                return "image_url holds no PNG or JPEG data URL"
    return ""


def _is_image(url: str) -> bool:
    head, _, data = url.partition(",")
    if not head.startswith("data:image/") or not head.endswith(";base64"):
        return False
    try:
        return base64.b64decode(data, validate=True).startswith((_PNG, _JPEG))
    except ValueError:
        return False


def _handler(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # one packet for header and body: two of them wait 40 ms for each other's acknowledgement

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))))
            reply = server.reply(body, self.headers.get("authorization", "").removeprefix("Bearer "))
            if reply.delay_s:
                time.sleep(reply.delay_s)
            if reply.drop:
                self.close_connection = True
                self.connection.close()
                return
            data = (_completion(body, reply) if reply.raw is None else reply.raw).encode()
            try:
                self.send_response(reply.status)
                for name, value in {"content-type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client gave up waiting, as some scripts want it to

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the tests read ``requests``."""

    return Handler


def _completion(body: Mapping[str, Any], reply: Reply) -> str:
    if reply.status != 200:
        return json.dumps({"error": {"message": reply.content or f"scripted {reply.status}", "type": "scripted"}})
    message: dict[str, Any] = {"role": "assistant", "content": reply.content}
    if reply.tool_calls:
        message["tool_calls"] = [
            {"id": f"call_{i}", "type": "function", "function": {"name": n, "arguments": a}}
            for i, (n, a) in enumerate(reply.tool_calls)
        ]
    tokens_in, tokens_out = len(json.dumps(body)) // 4, len(reply.content) // 4
    return json.dumps(
        {
            "id": "scripted",
            "object": "chat.completion",
            "created": 0,
            "model": body.get("model", ""),
            "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}],
            "usage": {
                "prompt_tokens": tokens_in,
                "completion_tokens": tokens_out,
                "total_tokens": tokens_in + tokens_out,
            },
        }
    )
