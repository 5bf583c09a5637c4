"""``openai:<model>``: asks any OpenAI-compatible server what to do next."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from embodied.errors import PlannerError
from embodied.planners.contract import Plan, PlannerView
from embodied.planners.openai.answer import Answer, AnswerFault, read_response
from embodied.planners.openai.cassette import Cassette, Mode
from embodied.planners.openai.client import ChatClient, ServerFailedError
from embodied.planners.openai.images import FrameSender
from embodied.planners.openai.prompt import system_text, view_text
from embodied.planners.openai.schema import response_format, tools
from embodied.planners.openai.stats import PlannerStats


class OpenAiPlanner:
    """Plans with a language or vision-language model, from its agent's belief and cameras only.

    Args:
      model: name the server knows.
      base_url: server; empty for ``OPENAI_BASE_URL`` or the vendor's own.
      key_env: environment variable with the key. A key is no option: specs are written to logs.
      answer: ``json`` (``response_format`` with a JSON schema) or ``tools`` (tool calls).
      images: send the cameras' present frames; past ones are not sent again.
      names: restrict arguments to the scene's names in the schema; helps weak models, costs schema compilation.
      max_calls: most skill calls in one answer.
      memory_steps: past steps told to the model.
      reasks: times a malformed answer is sent back with what is wrong.
      attempts: tries of a request after transport faults.
      timeout_s: longest wait for one response.
      temperature: None (or ``none``) leaves it out, as some models demand.
      max_tokens: longest answer; 0 leaves it out.
      tokens_field: how the server calls ``max_tokens``.
      max_requests: requests in an episode; 0 for no limit.
      max_total_tokens: tokens in an episode, in and out; 0 for no limit.
      max_model_s: wall-clock seconds of waiting for the server in an episode; 0 for no limit.
      cassette: JSONL file to record to or replay from.
      mode: ``record``, ``replay`` or ``auto``.
      sleep: waits between attempts; tests pass their own.
      clock: seconds, for statistics and ``max_model_s``.
    """

    privileged = False

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "",
        key_env: str = "OPENAI_API_KEY",
        answer: Literal["json", "tools"] = "json",
        images: bool | int = True,
        names: bool | int = False,
        max_calls: int = 4,
        memory_steps: int = 8,
        reasks: int = 2,
        attempts: int = 4,
        timeout_s: float = 60.0,
        temperature: float | str | None = 0.0,
        max_tokens: int = 400,
        tokens_field: str = "max_tokens",
        max_requests: int = 0,
        max_total_tokens: int = 0,
        max_model_s: float = 0.0,
        cassette: str | Path = "",
        mode: Mode = "auto",
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if answer not in ("json", "tools"):
            raise PlannerError(f"answer must be json or tools; got {answer!r}.")
        if mode not in ("record", "replay", "auto"):
            raise PlannerError(f"mode must be record, replay or auto; got {mode!r}.")
        if max_calls < 1 or attempts < 1 or reasks < 0 or not timeout_s > 0:
            raise PlannerError("max_calls and attempts must be at least 1, reasks at least 0, timeout_s above 0.")
        self.model = str(model)
        self.answer, self.images, self.names = answer, bool(images), bool(names)
        self.max_calls, self.memory_steps, self.reasks = max_calls, memory_steps, reasks
        self.max_requests, self.max_total_tokens, self.max_model_s = max_requests, max_total_tokens, max_model_s
        self._extra: dict[str, Any] = {}
        if not (temperature is None or temperature == "none"):
            self._extra["temperature"] = float(temperature)
        if max_tokens:
            self._extra[tokens_field] = max_tokens
        self._clock = clock
        self._counts = PlannerStats()
        self._client = ChatClient(
            base_url=base_url,
            key_env=key_env,
            timeout_s=timeout_s,
            attempts=attempts,
            stats=self._counts,
            sleep=sleep,
            clock=clock,
        )
        self._cassette = Cassette(Path(cassette), mode) if cassette else None
        self._frames = FrameSender()
        self._system = ""

    def __repr__(self) -> str:
        return f"OpenAiPlanner({self.model!r}, answer={self.answer!r}, images={self.images})"

    def stats(self) -> dict[str, Any]:
        """Return the counts of this episode as plain values."""
        return self._counts.as_dict()

    def reset(self, agent: str, seed: int) -> None:
        """Begin an episode; the seed names the run in the cassette and is passed to the server."""
        self._counts = PlannerStats()
        self._client.stats = self._counts
        self._frames = FrameSender()
        self._system = ""
        self._seed = seed % 2**31
        if self._cassette is not None:
            self._cassette.begin(f"{agent}/{seed}")

    def act(self, view: PlannerView) -> Plan:
        """Ask the model; a malformed answer is sent back with what is wrong, at most ``reasks`` times.

        Raises:
          PlannerError: no usable answer, a budget was used up, or the server failed.
        """
        began_s, counts = self._clock(), self._counts
        waited_ms = counts.model_ms + counts.setup_ms
        try:
            return self._ask(view)
        finally:
            counts.decisions += 1
            counts.own_ms += (self._clock() - began_s) * 1e3 - (counts.model_ms + counts.setup_ms - waited_ms)

    def _ask(self, view: PlannerView) -> Plan:
        request = self._request(view)
        messages: list[dict[str, Any]] = request["messages"]
        for attempt in range(self.reasks + 1):
            response = self._exchange(request)
            try:
                answer = read_response(response, view.skills, view.graph, self.max_calls, self._counts.repairs)
            except AnswerFault as fault:
                self._counts.malformed[fault.kind] += 1
                if attempt == self.reasks:
                    raise PlannerError(
                        f"The model's answer was not usable {attempt + 1} times, the last time {fault.kind}: {fault}"
                    ) from None
                messages += [{"role": "assistant", "content": _said(response)}, _complaint(fault)]
                continue
            return _plan(answer)
        raise AssertionError("unreachable")

    def _request(self, view: PlannerView) -> dict[str, Any]:
        if not self._system:
            self._system = system_text(view.skills, self.max_calls, is_json=self.answer == "json")
        content: Any = view_text(view, self.memory_steps)
        if self.images:
            parts, count = self._frames.parts(view.images())
            self._counts.images += count
            if parts:
                content = [{"type": "text", "text": content}, *parts]
        names = view.graph if self.names else None
        request: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "system", "content": self._system}, {"role": "user", "content": content}],
            "seed": self._seed,
            **self._extra,
        }
        if self.answer == "tools":
            request |= {"tools": tools(view.skills, names), "tool_choice": "required"}
        else:
            request["response_format"] = response_format(view.skills, self.max_calls, names)
        return request

    def _exchange(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._check_budget()
        known = self._cassette.recall(request) if self._cassette is not None else None
        if known is not None:
            self._counts.replayed += 1
            if "error" in known:
                raise PlannerError(str(known["error"]))
            response = known["response"]
        else:
            response = self._live(request)
        self._counts.calls += 1
        self._counts.tokens_in += response["usage"]["in"]
        self._counts.tokens_out += response["usage"]["out"]
        return response

    def _live(self, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            if self.max_model_s and self._counts.model_ms >= self.max_model_s * 1e3:
                raise ServerFailedError(f"The model's time of {self.max_model_s:g} s for an episode is used up.")
            response = self._client.complete(request)
        except ServerFailedError as error:
            if self._cassette is not None:
                self._cassette.keep(request, error=str(error))
            raise
        if self._cassette is not None:
            self._cassette.keep(request, response=response)
        return response

    def _check_budget(self) -> None:
        if self.max_requests and self._counts.calls >= self.max_requests:
            raise PlannerError(f"The budget of {self.max_requests} requests for an episode is used up (max_requests).")
        used = self._counts.tokens_in + self._counts.tokens_out
        if self.max_total_tokens and used >= self.max_total_tokens:
            raise PlannerError(f"The budget of {self.max_total_tokens} tokens is used up ({used}; max_total_tokens).")


def _plan(answer: Answer) -> Plan:
    return Plan(calls=answer.calls, message=answer.message, confidence=answer.confidence, expected=answer.expected)


def _said(response: Mapping[str, Any]) -> str:
    if response.get("tool_calls"):
        return "; ".join(f"{t['name']} {t['arguments']}" for t in response["tool_calls"])
    return str(response.get("content") or "(nothing)")


def _complaint(fault: AnswerFault) -> dict[str, Any]:
    return {"role": "user", "content": f"That answer cannot be used ({fault.kind}): {fault} Answer again."}
