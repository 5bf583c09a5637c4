"""One request to a chat server: time-outs, retries with backoff, errors without secrets."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from embodied.errors import PlannerError, require
from embodied.planners.openai.stats import PlannerStats

_RETRIED_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 20.0
_NO_KEY = "not-needed"  # local servers take any key; the client library wants one


class ServerFailedError(PlannerError):
    """Every attempt failed, or no time was left. Part of a run: a cassette keeps it."""


class ChatClient:
    """Talks to ``chat/completions``. The key is read from the environment when needed and stored nowhere.

    Args:
      base_url: server, or empty for ``OPENAI_BASE_URL`` or the vendor's own.
      key_env: environment variable that holds the key.
      timeout_s: longest wait for one response.
      attempts: tries of one request before it counts as failed.
      stats: counters to add to.
      sleep: waits between attempts.
      clock: seconds, for statistics only.
    """

    def __init__(
        self,
        *,
        base_url: str,
        key_env: str,
        timeout_s: float,
        attempts: int,
        stats: PlannerStats,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._base_url, self._key_env = base_url, key_env
        self._timeout_s, self._attempts = timeout_s, attempts
        self.stats = stats
        self._sleep, self._clock = sleep, clock
        self._client: Any = None

    def __repr__(self) -> str:
        return f"ChatClient(timeout_s={self._timeout_s}, attempts={self._attempts})"

    def complete(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``content``, ``refusal``, ``tool_calls``, ``finish_reason`` and ``usage`` of the first choice.

        Raises:
          PlannerError: the server refused the request, or there is no key.
          ServerFailedError: every attempt failed.
        """
        began_s = self._clock()
        library: Any = require("openai", "openai")
        self.stats.setup_ms += (self._clock() - began_s) * 1e3
        kind = ""
        for attempt in range(self._attempts):
            began_s = self._clock()
            try:
                return self._plain(self._connected(library).chat.completions.create(**request))
            except library.APIStatusError as error:
                kind, retry_after_s = f"http_{error.status_code}", _retry_after(error)
                if error.status_code not in _RETRIED_STATUS:
                    self.stats.transport[kind] += 1
                    raise PlannerError(self._refused(error)) from None
            except library.APITimeoutError:
                kind, retry_after_s = "timeout", None
            except library.APIConnectionError:
                kind, retry_after_s = "connection", None
            except (library.APIError, ValueError, TypeError, AttributeError):
                kind, retry_after_s = "not_the_protocol", None
            finally:
                self.stats.model_ms += (self._clock() - began_s) * 1e3
            self.stats.transport[kind] += 1
            if attempt + 1 < self._attempts:
                self.stats.retries += 1
                pause_s = _FIRST_PAUSE_S * 2**attempt if retry_after_s is None else retry_after_s
                self._sleep(min(pause_s, _LONGEST_PAUSE_S))
        raise ServerFailedError(
            f"The model server failed {self._attempts} times, the last time with {kind}. Check that it runs, base_url "
            f"(or OPENAI_BASE_URL), and timeout_s (now {self._timeout_s:g} s)."
        )

    def _connected(self, library: Any) -> Any:  # noqa: ANN401  the library is optional, so are its types
        if self._client is None:
            base_url = self._base_url or os.environ.get("OPENAI_BASE_URL") or None
            key = os.environ.get(self._key_env, "")
            if not key and base_url is None:
                raise PlannerError(
                    f"No key in the environment variable {self._key_env} and no base_url. Set the variable for a "
                    "vendor, or base_url (or OPENAI_BASE_URL) for a local server."
                )
            self._client = library.OpenAI(
                api_key=key or _NO_KEY, base_url=base_url, timeout=self._timeout_s, max_retries=0
            )
        return self._client

    def _refused(self, error: Any) -> str:  # noqa: ANN401
        body = error.body if isinstance(error.body, dict) else {}
        text = str(body.get("message") or getattr(error, "message", "") or "no reason given")
        key = os.environ.get(self._key_env, "")
        if key:
            text = text.replace(key, "***")
        hint = {
            401: f"Check the key in {self._key_env}.",
            404: "Check the model's name and base_url (most end in /v1).",
        }.get(error.status_code, "Check the model's name and what it supports (images=0, answer=json or tools).")
        return f"The model server refused the request with HTTP {error.status_code}: {text[:200]} {hint}"

    @staticmethod
    def _plain(completion: Any) -> dict[str, Any]:  # noqa: ANN401
        choice = completion.choices[0]
        message, usage = choice.message, completion.usage
        tool_calls = [
            {"name": c.function.name, "arguments": c.function.arguments} for c in message.tool_calls or [] if c.function
        ]
        if message.content is not None and not isinstance(message.content, str):
            raise TypeError("content is not text")
        return {
            "content": message.content or "",
            "refusal": getattr(message, "refusal", None) or "",
            "tool_calls": tool_calls,
            "finish_reason": choice.finish_reason or "",
            "usage": {
                "in": int(usage.prompt_tokens or 0) if usage else 0,
                "out": int(usage.completion_tokens or 0) if usage else 0,
            },
        }


def _retry_after(error: Any) -> float | None:  # noqa: ANN401
    try:
        seconds = float(error.response.headers.get("retry-after", ""))
    except (AttributeError, ValueError):
        return None
    return seconds if 0.0 <= seconds < float("inf") else None
