"""Every way in which an external model may answer badly, with the cause that is to be named."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection
from typing import Any

import pytest

from .model_server import Answering, Line, Request, completion, moderations, verdicts

KINDS = ("moderations", "chat")


async def drips(request: Request, line: Line) -> None:
    await line.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    while True:
        await line.send(b" ")
        await asyncio.sleep(0.1)


async def hangs(request: Request, line: Line) -> None:
    await asyncio.sleep(60)


async def resets_at_once(request: Request, line: Line) -> None:
    line.reset()
    await asyncio.sleep(60)


async def resets_half_way(request: Request, line: Line) -> None:
    body = json.dumps(moderations(request.texts) if "input" in request.body else completion(verdicts(request))).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    await line.send(head + body[: len(body) // 2])
    await asyncio.sleep(0.05)
    line.reset()
    await asyncio.sleep(60)


async def closes_early(request: Request, line: Line) -> None:
    await line.send(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{")
    line.writer.close()
    await asyncio.sleep(60)


async def speaks_no_http(request: Request, line: Line) -> None:
    await line.send(b"220 mail.example ESMTP\r\n\r\n")
    await asyncio.sleep(60)


async def huge(request: Request, line: Line) -> None:
    await line.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    for _ in range(10_000):
        await line.send(b"10000\r\n" + b" " * 65536 + b"\r\n")


def status(code: int, body: bytes = b'{"error": {"message": "no"}}', **headers: str) -> Answering:
    async def answering(request: Request, line: Line) -> None:
        # As some services do, the answer repeats what it was given: nothing of it may reach a log.
        repeats = body + json.dumps(request.body).encode() + request.headers.get("authorization", "").encode()
        await line.answer(code, repeats if code != 200 else body, **headers)

    return answering


def lying(change: Callable[[dict[str, Any]], Any]) -> Answering:
    """The honest answer of the moderation API, changed."""

    async def answering(request: Request, line: Line) -> None:
        body = moderations(request.texts)
        changed = change(body)
        await line.answer(200, changed if isinstance(changed, bytes) else json.dumps(body).encode())

    return answering


def first(**changes: Any) -> Answering:
    return lying(lambda body: body["results"][0].update(changes))


OF_BOTH: dict[str, tuple[str, Answering]] = {
    "hangs": ("timeout", hangs),
    "drips": ("timeout", drips),
    "resets at once": ("connection", resets_at_once),
    "resets half way": ("connection", resets_half_way),
    "closes early": ("connection", closes_early),
    "speaks no HTTP": ("connection", speaks_no_http),
    "huge": ("too-large", huge),
    "400": ("refused", status(400)),
    "401": ("key-refused", status(401)),
    "403": ("key-refused", status(403)),
    "404": ("not-found", status(404)),
    "429": ("rate-limited", status(429)),
    "500": ("server-error", status(500)),
    "503 HTML": ("server-error", status(503, b"<html>down</html>", content_type="text/html")),
    "204": ("unexpected-status", status(204, b"")),
    "redirect": ("redirect", status(307, location="http://127.0.0.1:9/v1/moderations")),
    "compressed": ("encoded", status(200, b"\x1f\x8b", content_encoding="gzip")),
    "HTML": ("not-json", status(200, b"<!doctype html><p>Welcome</p>", content_type="text/html")),
    "nothing": ("not-json", status(200, b"")),
    "half a JSON": ("not-json", status(200, b'{"results": [')),
    "deep JSON": ("not-json", status(200, b"[" * 200_000)),
    "invalid UTF-8": ("not-utf8", status(200, b'{"model": "\xff\xfe"}')),
    "error body": ("error-body", status(200, b'{"error": {"message": "quota"}}')),
    "a list": ("shape", status(200, b"[]")),
    "a null": ("shape", status(200, b"null")),
    "an empty object": ("shape", status(200, b"{}")),
}
OF_MODERATIONS: dict[str, tuple[str, Answering]] = {
    "one too few": ("coverage", lying(lambda body: body["results"].pop() and None)),
    "one too many": ("coverage", lying(lambda body: body["results"].append(body["results"][0]))),
    "none": ("coverage", lying(lambda body: body["results"].clear())),
    "flagged is a word": ("shape", first(flagged="false")),
    "flagged is 0": ("shape", first(flagged=0)),
    "flagged is null": ("shape", first(flagged=None)),
    "no categories": ("shape", first(categories={})),
    "categories is null": ("shape", first(categories=None)),
    "a category is a word": ("shape", first(categories={"harassment": "no"})),
    "no scores": ("shape", first(category_scores={})),
    "a score above 1": ("shape", first(category_scores={"harassment": 1.5, "violence": 0.1})),
    "a score below 0": ("shape", first(category_scores={"harassment": -0.1, "violence": 0.1})),
    "a score is a word": ("shape", first(category_scores={"harassment": "0.1", "violence": 0.1})),
    "a score is true": ("shape", first(category_scores={"harassment": True, "violence": 0.1})),
    "a score is no number": (
        "not-json",
        lying(lambda body: json.dumps(body).replace("0.4", "NaN").encode()),
    ),
    "a score without end": ("shape", lying(lambda body: json.dumps(body).replace("0.4", "1e999").encode())),
    "a score of many digits": (
        "not-json",
        lying(lambda body: json.dumps(body).replace("0.4", "1" * 5000).encode()),
    ),
    "a category of its own": ("shape", first(categories={"\x00": False}, category_scores={"\x00": 0.0})),
    "it contradicts itself": (
        "contradiction",
        first(flagged=False, categories={"harassment": True, "violence": False}),
    ),
    "a name twice": (
        "not-json",
        lying(lambda body: json.dumps(body).replace('"flagged": ', '"flagged": false, "flagged": ').encode()),
    ),
}


def talking(change: Callable[[dict[str, Any], Request], Any]) -> Answering:
    """The honest answer of the chat model, its content changed or replaced."""

    async def answering(request: Request, line: Line) -> None:
        said = verdicts(request)
        changed = change(said, request)
        await line.json(changed if isinstance(changed, dict) and "choices" in changed else completion(changed or said))

    return answering


def one(**changes: Any) -> Answering:
    return talking(lambda said, _: said["verdicts"][0].update(changes))


OF_CHAT: dict[str, tuple[str, Answering]] = {
    "prose": ("not-json", talking(lambda said, _: "All of these are fine.")),
    "a fence": ("not-json", talking(lambda said, _: f"```json\n{json.dumps(said)}\n```")),
    "more than JSON": ("not-json", talking(lambda said, _: json.dumps(said) + " Anything else?")),
    "no nonce": ("shape", talking(lambda said, _: said.pop("nonce") and None)),
    "another nonce": ("coverage", talking(lambda said, _: said.update(nonce="0" * 32))),
    "more fields": ("shape", talking(lambda said, _: said.update(note="fine"))),
    "one too few": ("coverage", talking(lambda said, _: said["verdicts"].pop() and None)),
    "one twice": ("coverage", talking(lambda said, _: said["verdicts"].append(said["verdicts"][0]))),
    "one not asked": ("coverage", one(id="0123456789abcdef")),
    "an id that is a number": ("shape", one(id=1)),
    "flagged is a word": ("shape", one(flagged="no")),
    "a category unheard of": ("shape", one(flagged=True, categories=["blasphemy"])),
    "flagged for nothing": ("contradiction", one(flagged=True, categories=[])),
    "cleared for something": ("contradiction", one(flagged=False, categories=["threat"])),
    "a score above 1": ("shape", one(score=7)),
    "a score is null": ("shape", one(score=None)),
    "everything is fine": (
        "controls",
        talking(lambda said, _: [item.update(flagged=False, categories=[]) for item in said["verdicts"]] and None),
    ),
    "nothing is fine": (
        "controls",
        talking(
            lambda said, _: [item.update(flagged=True, categories=["other"]) for item in said["verdicts"]] and None
        ),
    ),
    "cut off": ("unfinished", talking(lambda said, _: completion(said, finish_reason="length"))),
    "filtered": ("unfinished", talking(lambda said, _: completion(None, finish_reason="content_filter"))),
    "refused": (
        "unfinished",
        talking(lambda said, _: completion(said, message={"content": None, "refusal": "I cannot."})),
    ),
    "calls a tool": (
        "unfinished",
        talking(lambda said, _: completion(said, message={"content": "", "tool_calls": [{"id": "1"}]})),
    ),
    "content is an object": ("shape", talking(lambda said, _: completion(said, message={"content": said}))),
    "two choices": ("shape", talking(lambda said, _: {"choices": [*completion(said)["choices"]] * 2})),
    "no choice": ("shape", talking(lambda said, _: {"choices": []})),
}


def lies(only: Collection[str] = ()) -> list[Any]:
    """The bad answers of both kinds as parameters ``kind, cause, answering``; only those of these names, if given."""
    return [
        pytest.param(kind, cause, answering, id=f"{kind}: {name}")
        for kinds, bad in ((KINDS, OF_BOTH), (("moderations",), OF_MODERATIONS), (("chat",), OF_CHAT))
        for kind in kinds
        for name, (cause, answering) in bad.items()
        if not only or name in only
    ]
