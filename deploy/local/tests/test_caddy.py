"""The gateway's routes, limits and errors: a real Caddy before five servers that say who they are."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from common.requests import LARGEST_UPLOAD
from common.topology import SERVICES
from contests.domain import MAX_BODY
from embedded.caddy import Caddy
from embedded.errors import PortTaken
from embedded.process import free_port

PROBLEM = "application/problem+json"


class Upstream(ThreadingHTTPServer):
    """A server that answers every request with its own name and what it was asked."""

    daemon_threads = True

    def __init__(self, name: str, port: int = 0) -> None:
        self.name = name
        super().__init__(("127.0.0.1", port), _Echo)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: the gateway cuts off a body that is too large, which is what the test is about."""

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Upstream

    def _answer(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            size = 0
            while length := int(self.rfile.readline(), 16):
                size += len(self.rfile.read(length))
                self.rfile.readline()
            self.rfile.readline()
        else:
            size = len(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        if self.path == "/events":
            self._stream()
            return
        body = json.dumps(
            {
                "service": self.server.name,
                "path": self.path,
                "size": size,
                "forwarded_for": self.headers.get("X-Forwarded-For"),
                "padding": "x" * 2000,
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Security-Policy", "default-src 'self'")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"data: first\n\n")
        self.wfile.flush()
        time.sleep(3)

    do_GET = do_POST = do_PUT = do_PATCH = do_HEAD = do_DELETE = _answer  # noqa: N815 named by the base class

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.fixture(scope="module")
def upstreams() -> Iterator[dict[str, Upstream]]:
    servers = {name: Upstream(name) for name in SERVICES}
    yield servers
    for server in servers.values():
        server.close()


@pytest.fixture(scope="module")
def gateway(new_directory: Callable[[], Path], upstreams: dict[str, Upstream]) -> Iterator[Caddy]:
    ports = {name: server.server_address[1] for name, server in upstreams.items()}
    with Caddy(new_directory(), ports, free_port(), free_port()) as gateway:
        yield gateway


@pytest.fixture
def public(gateway: Caddy) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://127.0.0.1:{gateway.public_port}", timeout=20) as client:
        yield client


@pytest.fixture
def operator(gateway: Caddy) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://127.0.0.1:{gateway.operator_port}", timeout=20) as client:
        yield client


PUBLIC = """
POST  /api/v1/agents                                registry
GET   /api/v1/agents/me                             registry
PATCH /api/v1/agents/me                             registry
POST  /api/v1/agents/me/key                         registry
GET   /claim/a-token                                registry
GET   /signin                                       registry
GET   /me                                           registry
GET   /api/v1/agents/alice                          boards
GET   /api/v1/agents/media                          boards
GET   /api/v1/contests                              contests
GET   /api/v1/contests/current                      contests
GET   /api/v1/contests/2017-W04                     contests
GET   /api/v1/contests/2017-W04/pool?format=csv     contests
POST  /api/v1/contests/2017-W04/lineups             contests
POST  /api/v1/contests/2017-W04/lineups/check       contests
GET   /api/v1/contests/2017-W04/lineups/mine        contests
GET   /api/v1/contests/2017-W04/lineups/mine/proof  contests
GET   /api/v1/contests/2017-W04/commitment          contests
GET   /skill.md                                     contests
HEAD  /skill.md                                     contests
GET   /llms.txt                                     contests
GET   /api/v1/openapi.json                          contests
GET   /api/v1/contests/2017-W04/lineups             boards
HEAD  /api/v1/contests/2017-W04/lineups             boards
GET   /api/v1/contests/2017-W04/results             boards
GET   /api/v1/contests/2017-W04/optimal             boards
GET   /api/v1/boards/models?metric=share            boards
GET   /api/v1/boards/cohort/differences             boards
GET   /api/v1/models/openai/gpt-5                   boards
GET   /                                             boards
GET   /contests/2017-W04                            boards
GET   /models                                       boards
GET   /agents                                       boards
GET   /agents/alice                                 boards
GET   /method                                       boards
GET   /rules                                        boards
GET   /static/style.css                             boards
GET   /nothing-of-ours                              boards
"""

OPERATOR = """
GET   /operator/api/v1/agents                        registry
POST  /operator/api/v1/agents/0/claim                registry
PUT   /operator/api/v1/agents/0/marks                registry
POST  /operator/api/v1/contests/import?season=2017   contests
POST  /operator/api/v1/contests/2017-W04/open        contests
POST  /operator/api/v1/contests/2017-W04/lock        contests
GET   /operator/api/v1/contests                      contests
PUT   /operator/api/v1/clock                         contests
POST  /operator/api/v1/statistics?season=2017        settlement
POST  /operator/api/v1/contests/2017-W04/settle      settlement
GET   /operator/api/v1/settlements                   settlement
GET   /operator/api/v1/moderation/queue              moderation
POST  /operator/api/v1/boards/rebuild                boards
GET   /operator/api/v1/boards/digest                 boards
GET   /operator/api/v1/audit                         registry
GET   /operator/api/v1/audit/contests                contests
GET   /operator/api/v1/audit/settlement?limit=5      settlement
GET   /operator/api/v1/audit/boards                  boards
GET   /operator/api/v1/audit/moderation              moderation
GET   /operator                                      moderation
GET   /operator/                                     moderation
GET   /operator/signin?next=/operator/moderation     moderation
POST  /operator/signin                               moderation
POST  /operator/signout                              moderation
GET   /operator/static/style.css                     moderation
GET   /operator/moderation?show=all                  moderation
GET   /operator/moderation/case?agent_id=0           moderation
POST  /operator/moderation/judge                     moderation
GET   /operator/moderation/audit                     moderation
"""

INSIDE = (
    "/metrics",
    "/metrics/",
    "/METRICS",
    "/%6detrics",
    "//metrics",
    "/healthz",
    "/readyz",
    "/operator",
    "/operator/",
    "/operator/api/v1/clock",
    "/operator/signin",
    "/operator/moderation",
    "/operator/moderation/",
    "/OPERATOR/moderation/audit",
    "/operator/static/style.css",
    "/%6fperator/moderation",
    "/me/../operator/moderation",
    "/claim/..%2foperator/moderation",
    "/Operator/api/v1/contests/2017-W04/settle",
    "/static/../operator/api/v1/clock",
    "/operator%2Fapi/v1/clock",
)


def table(text: str) -> list[tuple[str, str, str]]:
    return [(method, path, service) for method, path, service in map(str.split, text.strip().splitlines())]


@pytest.mark.parametrize(("method", "path", "service"), table(PUBLIC))
def test_the_public_origin_leads_to_the_service_that_owns_the_path(
    public: httpx.Client, method: str, path: str, service: str
) -> None:
    answer = public.request(method, path)
    assert answer.status_code == 200
    if method != "HEAD":
        assert (answer.json()["service"], answer.json()["path"]) == (service, path)


@pytest.mark.parametrize(("method", "path", "service"), table(OPERATOR))
def test_the_operators_origin_leads_to_the_service_that_owns_the_path(
    operator: httpx.Client, method: str, path: str, service: str
) -> None:
    answer = operator.request(method, path)
    assert (answer.json()["service"], answer.json()["path"]) == (service, path)


def test_the_name_in_the_host_header_does_not_matter(gateway: Caddy) -> None:
    answer = httpx.get(f"http://localhost:{gateway.public_port}/api/v1/contests/2017-W04/results")
    assert answer.json()["service"] == "boards"


@pytest.mark.parametrize("method", ["FOO", "TRACE", "PROPFIND", "get"])
def test_a_method_that_nobody_knows_is_a_problem_document_too(gateway: Caddy, method: str) -> None:
    """Methods are told apart by case, and a client library would not send the last one."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.public_port, timeout=10)
    connection.request(method, "/models")
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Content-Type"]) == (405, PROBLEM)
    assert (json.load(answer)["code"], "GET" in answer.headers["Allow"]) == ("method-not-allowed", True)
    connection.close()


@pytest.mark.parametrize("path", INSIDE)
def test_what_is_inside_does_not_show_on_the_public_origin(gateway: Caddy, path: str) -> None:
    """The request is written by hand: a client library would tidy the path."""
    for method in ("GET", "POST"):
        with socket.create_connection(("127.0.0.1", gateway.public_port), timeout=10) as connection:
            request = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            connection.sendall(request.encode())
            answer = b""
            while part := connection.recv(65536):
                answer += part
        head, body = answer.split(b"\r\n\r\n", 1)
        assert head.startswith(b"HTTP/1.1 404"), head
        assert json.loads(body)["code"] == "not-found"


def test_the_operators_origin_serves_no_page_and_no_metrics(operator: httpx.Client) -> None:
    for path in ("/", "/models", "/metrics", "/healthz", "/api/v1/contests"):
        answer = operator.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (404, PROBLEM)


def test_what_browsers_ask_for_on_their_own_leads_to_the_operators_icon(operator: httpx.Client) -> None:
    answer = operator.get("/favicon.ico", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (308, "/operator/static/mark.svg")


LINEUP_LIMIT = 1_048_576
UPLOAD_LIMIT = 33_554_432


def test_the_gateway_lets_through_whatever_the_services_would_judge() -> None:
    """Both limits are what the tests below measure of the gateway."""
    assert MAX_BODY <= LINEUP_LIMIT
    assert LARGEST_UPLOAD <= UPLOAD_LIMIT


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(
    ("path", "limit"),
    [
        ("/api/v1/agents", 262_144),
        ("/api/v1/contests/2017-W04/lineups", LINEUP_LIMIT),
        ("/api/v1/contests/2017-W04/lineups/check", LINEUP_LIMIT),
    ],
)
def test_a_body_over_the_limit_is_refused_and_the_limit_named(
    public: httpx.Client, path: str, limit: int, chunked: bool
) -> None:
    body = b"x" * limit
    assert public.post(path, content=body).json()["size"] == limit
    larger = body + b"x"
    answer = public.post(path, content=iter([larger]) if chunked else larger)
    assert (answer.status_code, answer.headers["content-type"]) == (413, PROBLEM)
    problem = answer.json()
    assert (problem["code"], problem["limit"]) == ("body-too-large", limit)
    assert str(limit) in problem["detail"]


def test_an_operator_may_send_a_whole_seasons_file(operator: httpx.Client) -> None:
    answer = operator.post("/operator/api/v1/statistics", content=b"x" * LARGEST_UPLOAD)
    assert answer.json()["size"] == LARGEST_UPLOAD
    refused = operator.post("/operator/api/v1/statistics", content=b"x" * (UPLOAD_LIMIT + 1))
    assert (refused.status_code, refused.json()["limit"]) == (413, UPLOAD_LIMIT)


def test_answers_are_compressed_and_event_streams_are_not_held_back(gateway: Caddy, public: httpx.Client) -> None:
    raw = httpx.Client(base_url=public.base_url)
    with raw.stream("GET", "/models", headers={"Accept-Encoding": "gzip"}) as answer:
        assert answer.headers["content-encoding"] == "gzip"
        assert json.loads(gzip.decompress(b"".join(answer.iter_raw())))["service"] == "boards"
    started = time.monotonic()
    with raw.stream("GET", "/events", headers={"Accept-Encoding": "gzip"}) as answer:
        assert next(answer.iter_raw()) == b"data: first\n\n"
        assert time.monotonic() - started < 2
    raw.close()


def test_the_log_of_a_failure_holds_no_address_and_no_credentials(gateway: Caddy, public: httpx.Client) -> None:
    with public.stream("GET", "/events", headers={"Authorization": "Bearer mafl_sk_secret"}) as answer:
        next(answer.iter_raw())
    deadline = time.monotonic() + 5
    while "aborting" not in gateway.log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "/events" not in gateway.log.read_text()
    assert "secret" not in gateway.log.read_text()


def test_pages_carry_security_headers_and_the_services_own_policy(public: httpx.Client) -> None:
    headers = public.get("/").headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["content-security-policy"] == "default-src 'self'"
    assert "server" not in headers
    assert "via" not in headers


def test_a_client_cannot_choose_the_address_that_services_see(public: httpx.Client) -> None:
    answer = public.get("/", headers={"X-Forwarded-For": "203.0.113.9"})
    assert answer.json()["forwarded_for"] == "127.0.0.1"


def test_a_dead_service_is_a_problem_document_that_says_when_to_ask_again(
    upstreams: dict[str, Upstream], public: httpx.Client
) -> None:
    port = upstreams["registry"].server_address[1]
    upstreams["registry"].close()
    try:
        answer = public.post("/api/v1/agents", json={})
        assert (answer.status_code, answer.headers["content-type"]) == (503, PROBLEM)
        assert answer.headers["retry-after"] == "1"
        assert answer.json()["code"] == "unavailable"
        assert public.get("/models").status_code == 200
    finally:
        upstreams["registry"] = Upstream("registry", port)


def test_a_request_waits_for_a_service_that_is_being_started_again(
    upstreams: dict[str, Upstream], public: httpx.Client
) -> None:
    port = upstreams["registry"].server_address[1]
    upstreams["registry"].close()

    def revive() -> None:
        upstreams["registry"] = Upstream("registry", port)

    threading.Timer(1.5, revive).start()
    answer = public.post("/api/v1/agents", content=b"sent once")
    assert (answer.status_code, answer.json()["size"]) == (200, 9)


def test_a_taken_port_is_named(tmp_path: Path, gateway: Caddy) -> None:
    with pytest.raises(PortTaken, match=str(gateway.public_port)):
        Caddy(tmp_path, gateway.upstreams, gateway.public_port, free_port()).start()
