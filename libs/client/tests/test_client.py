"""How the client behaves when the server does not: against a small real HTTP server that fails to order."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from mafl.blocking import BlockingAgent
from mafl.client import AgentClient, PublicClient, Retry, register, retry_after
from mafl.errors import MaflError, Unreachable
from mafl.operator import OperatorClient

QUICK = Retry(patience=5.0, first_pause=0.01, longest_pause=0.05)
RECEIPT = {
    "lineup": "a",
    "revision": 1,
    "receipt": "b" * 64,
    "total_price": 49_900,
    "locks_at": "2017-10-01T17:00:00Z",
    "new": "a member of a later server",
}


@dataclass
class Answer:
    """One answer of the server; ``status`` 0 closes the connection without a word."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    text: str | None = None


@dataclass
class Failing:
    """The server: it gives ``answers`` in turn, the last of them for ever, and keeps what it was sent."""

    url: str
    answers: list[Answer]
    seen: list[tuple[str, str, dict[str, str], bytes]]


@pytest.fixture
def failing() -> Iterator[Failing]:
    answers: list[Answer] = []
    seen: list[tuple[str, str, dict[str, str], bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            seen.append((self.command, self.path, {key.lower(): value for key, value in self.headers.items()}, body))
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            if answer.status == 0:
                self.close_connection = True
                return
            content = (answer.text if answer.text is not None else json.dumps(answer.body)).encode()
            self.send_response(answer.status)
            for name, value in {**answer.headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = _any  # noqa: N815 - names of the standard library

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield Failing(f"http://127.0.0.1:{server.server_address[1]}", answers, seen)
    server.shutdown()
    server.server_close()


@pytest.mark.rule("C9")
async def test_a_submission_whose_answer_was_lost_is_sent_again_under_the_same_key(failing: Failing) -> None:
    failing.answers += [Answer(0), Answer(502, text="<h1>Bad Gateway</h1>"), Answer(201, RECEIPT)]
    async with AgentClient(failing.url, key="mafl_sk_x", retry=QUICK) as agent:
        receipt = await agent.submit("2017-W04", {"picks": []})
    assert (receipt.revision, receipt.total_price) == (1, 49_900)
    keys = {headers["idempotency-key"] for _, _, headers, _ in failing.seen}
    assert len(failing.seen) == 3
    assert len(keys) == 1
    assert {body for _, _, _, body in failing.seen} == {b'{"picks":[]}'}
    assert failing.seen[0][2]["authorization"] == "Bearer mafl_sk_x"


@pytest.mark.rule("C9")
async def test_two_submissions_have_two_keys_unless_the_caller_says_otherwise(failing: Failing) -> None:
    failing.answers += [Answer(201, RECEIPT)]
    async with AgentClient(failing.url, key="k", retry=QUICK) as agent:
        for key in (None, None, "mine", "mine"):
            await agent.submit("2017-W04", {}, idempotency_key=key)
    one, two, *mine = (headers["idempotency-key"] for _, _, headers, _ in failing.seen)
    assert one != two
    assert mine == ["mine", "mine"]


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_not_now_is_tried_again_and_no_is_not(failing: Failing, status: int) -> None:
    failing.answers += [Answer(status, {"code": "later", "title": "Later"}), Answer(200, {"contests": []})]
    async with PublicClient(failing.url, retry=QUICK) as public:
        assert await public.contests() == {"contests": []}
        failing.answers[:] = [
            Answer(404, {"code": "contest-unknown", "title": "No such contest", "detail": "2017-W99"})
        ]
        failing.seen.clear()
        with pytest.raises(MaflError, match="No such contest: 2017-W99") as refused:
            await public.contest("2017-W99")
    assert (refused.value.status, refused.value.code, len(failing.seen)) == (404, "contest-unknown", 1)


@pytest.mark.rule("A11")
async def test_the_client_waits_as_long_as_it_is_told(failing: Failing) -> None:
    failing.answers += [Answer(429, {"code": "rate-limited"}, {"Retry-After": "1"}), Answer(200, {})]
    start = time.monotonic()
    async with PublicClient(failing.url, retry=QUICK) as public:
        await public.contests()
    assert time.monotonic() - start >= 1.0


@pytest.mark.rule("A11")
async def test_a_wait_beyond_the_clients_patience_is_an_error_at_once(failing: Failing) -> None:
    failing.answers += [Answer(429, {"code": "rate-limited", "title": "Too many"}, {"Retry-After": "3600"})]
    start = time.monotonic()
    async with PublicClient(failing.url, retry=QUICK) as public:
        with pytest.raises(MaflError) as refused:
            await public.contests()
    assert time.monotonic() - start < 2.0
    assert (refused.value.code, refused.value.retry_after) == ("rate-limited", 3600.0)


async def test_patience_ends(failing: Failing) -> None:
    failing.answers += [Answer(503, text="")]
    async with PublicClient(failing.url, retry=Retry(patience=0.3, first_pause=0.05, longest_pause=0.1)) as public:
        with pytest.raises(MaflError) as refused:
            await public.contests()
    assert (refused.value.code, refused.value.status) == ("http-503", 503)
    assert 2 < len(failing.seen) < 20


async def test_nobody_there_is_said_with_the_address() -> None:
    async with PublicClient("http://127.0.0.1:9", retry=Retry(patience=0.0)) as public:
        with pytest.raises(Unreachable, match=r"http://127\.0\.0\.1:9 gave no answer to GET /api/v1/contests"):
            await public.contests()


@pytest.mark.rule("C5")
async def test_a_refused_lineup_carries_every_violation(failing: Failing) -> None:
    violations = [
        {"code": "over-cap", "pointer": "/picks", "detail": "…", "value": 51_000, "limit": 50_000},
        {"code": "slot-missing", "pointer": "/picks", "detail": "…", "value": None, "limit": "TE"},
    ]
    document = {"code": "lineup-refused", "title": "Refused", "detail": "2 violations", "violations": violations}
    failing.answers += [Answer(422, document)]
    async with AgentClient(failing.url, key="k", retry=QUICK) as agent:
        with pytest.raises(MaflError) as refused:
            await agent.check("2017-W04", {})
    assert list(refused.value.violations) == violations
    assert refused.value.document["detail"] == "2 violations"
    assert len(failing.seen) == 1


async def test_what_is_not_said_is_not_sent(failing: Failing) -> None:
    agent = {"id": "1", "name": "one", "model": "m", "status": "unclaimed"}
    failing.answers += [
        Answer(201, {"agent": agent, "api_key": "mafl_sk_secret", "claim_url": "https://c", "deal": "d"})
    ]
    async with PublicClient(failing.url, retry=QUICK) as public:
        answer = await register(public, "one", "m", harness="plain")
    assert json.loads(failing.seen[0][3]) == {"name": "one", "model": "m", "harness": "plain"}
    assert "secret" not in repr(answer)
    assert answer.api_key == "mafl_sk_secret"


async def test_an_operators_file_goes_as_it_is_with_its_parameters(failing: Failing) -> None:
    failing.answers += [Answer(200, {})]
    async with OperatorClient(failing.url, token="t", retry=QUICK) as operator:
        await operator.import_statistics(b"season,week\n", season=2017, week=4, final=False)
    method, path, headers, body = failing.seen[0]
    assert (method, path) == ("POST", "/operator/api/v1/statistics?season=2017&week=4&final=false")
    assert (headers["authorization"], body) == ("Bearer t", b"season,week\n")


@pytest.mark.parametrize("contest", ["../../agents/me", "..", "a/b", "a?b#c", "é"])
async def test_an_id_with_anything_in_it_stays_one_part_of_the_path(failing: Failing, contest: str) -> None:
    failing.answers += [Answer(404, {"code": "contest-unknown"})]
    async with PublicClient(failing.url, retry=QUICK) as public:
        with pytest.raises(MaflError):
            await public.pool(contest)
    path = failing.seen[0][1]
    assert path.startswith("/api/v1/contests/")
    assert path.endswith("/pool")
    assert path.count("/") == 5
    assert "?" not in path


def test_a_program_without_asyncio_plays_as_well(failing: Failing) -> None:
    failing.answers += [Answer(503, text=""), Answer(201, RECEIPT)]
    with BlockingAgent(failing.url, key="k", retry=QUICK) as agent:
        assert agent.submit("2017-W04", {}).revision == 1


def test_retry_after_is_read_in_both_its_forms() -> None:
    assert retry_after("2") == 2.0
    assert retry_after("-5") == 0.0
    assert retry_after("soon") is None
    assert retry_after(None) is None
    in_a_minute = retry_after(format_datetime(datetime.now(UTC) + timedelta(minutes=1), usegmt=True))
    assert in_a_minute is not None
    assert 50 < in_a_minute <= 60


def test_pauses_grow_to_a_bound_and_are_not_the_same_for_all() -> None:
    retry = Retry(first_pause=0.1, longest_pause=1.0)
    assert 0.05 <= retry.pause(1) <= 0.1
    assert 0.5 <= retry.pause(50) <= 1.0
    assert len({retry.pause(3) for _ in range(20)}) > 10


@pytest.mark.rule("A8")
async def test_operators_acts_of_all_services_are_told_in_one_list_by_their_time(failing: Failing) -> None:
    at = ("2017-10-01T17:00:00Z", "2017-10-01T17:00:00.5Z", "2017-10-01T16:00:00Z")
    registry, contests, moderation = ({"acts": [{"act": 1, "at": one, "what": "x"}]} for one in at)
    nothing: dict[str, Any] = {"acts": []}
    failing.answers += [Answer(body=body) for body in (registry, contests, moderation, nothing, nothing)]
    async with OperatorClient(failing.url, token="t", retry=QUICK) as operator:
        acts = await operator.all_acts(limit=2)
    assert [(act["service"], act["at"]) for act in acts] == [("contests", at[1]), ("registry", at[0])]
    base = "/operator/api/v1/audit"
    asked = [path for _, path, _, _ in failing.seen]
    assert asked == [f"{base}{of}?limit=2" for of in ("", "/contests", "/moderation", "/settlement", "/boards")]
