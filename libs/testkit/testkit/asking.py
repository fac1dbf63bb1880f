"""What can be asked of the public origin, derived from the services' own routes, and asked byte for byte.

For tests that compare what an outsider sees. :func:`routes_of` reads a service's route table, :func:`asks_of` makes of
a route everything that a stranger may try: each place of its path filled in every way, each parameter, each header,
each odd method. So a route that is new tomorrow is asked tomorrow, and nobody has to list it. :class:`Origin` sends
the bytes over a socket, from an address of one's own, and changes nothing about them.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.client
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import unescape
from importlib import import_module
from typing import Any

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.routing import Mount

from common.settings import Settings

INSIDE = ("/healthz", "/readyz", "/metrics")
"""What a service says of itself; with everything under ``/operator`` not for the public."""

_PLACE = re.compile(r"{(\w+)(?::\w+)?}")
_METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW")
_LINK = re.compile(r'(?:href|src|action)="([^"]+)"')
_STREAM_SECONDS = 1.0
Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Route:
    """One route of a service. ``path`` has its places in braces; ``query`` and ``header`` are names as sent.

    ``reads_key`` is whether the call is an agent's own: it may answer 401.
    """

    service: str
    path: str
    methods: frozenset[str]
    query: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    reads_key: bool = False

    @property
    def public(self) -> bool:
        """Whether it is meant for the public origin."""
        return not self.path.startswith("/operator/") and self.path not in INSIDE

    @property
    def pattern(self) -> re.Pattern[str]:
        """What the paths that lead to it look like."""
        parts = _PLACE.split(self.path)
        whole = self.path[1:] and [re.escape(part) if place % 2 == 0 else ".+" for place, part in enumerate(parts)]
        return re.compile("".join(whole) or "/")


def routes_of(service: str) -> list[Route]:
    """Every route of a service, as its application has them: pages, static files, operators' calls, all."""
    settings = Settings.model_validate(
        {
            "database_url": "postgresql+psycopg://nowhere",
            "nats_url": "nats://nowhere",
            "operator_token": "none",
            "environment": "embedded",
        }
    )
    app: FastAPI = import_module(f"{service}.main").app(settings)
    found = list(_routes(service, app.routes))
    described = {(path, method.upper()) for path, operations in app.openapi()["paths"].items() for method in operations}
    listed = {(re.sub(r":\w+}", "}", route.path), method) for route in found for method in route.methods}
    if missing := described - listed:
        raise LookupError(f"{service} describes {sorted(missing)} and no such route was found in its application")
    own = {route.path for route in found if route.reads_key}
    # What answers HEAD is described with the call that answers GET.
    return [replace(route, reads_key=route.path in own) for route in found]


def _routes(service: str, routes: Iterable[Any]) -> Iterator[Route]:
    for route in routes:
        if isinstance(route, APIRoute):
            needs = list(_needs(route.dependant))
            yield Route(
                service,
                route.path,
                frozenset(route.methods or ()),
                tuple(sorted({one.alias for need in needs for one in need.query_params})),
                tuple(sorted({one.alias.lower() for need in needs for one in need.header_params})),
                any(str(status) == "401" for status in route.responses),
            )
        elif isinstance(route, Mount):
            yield Route(service, f"{route.path}/{{file:path}}", frozenset({"GET", "HEAD"}))
        elif hasattr(route, "original_router"):  # A router that FastAPI keeps as a whole.
            yield from _routes(service, route.original_router.routes)
        else:
            raise LookupError(f"{service} has a route of the kind {type(route).__name__}, which nothing here asks yet")


def _needs(dependant: Dependant) -> Iterator[Dependant]:
    yield dependant
    for inner in dependant.dependencies:
        yield from _needs(inner)


# --- what is asked --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ask:
    """One request. ``who`` names the asker, whose credentials are added where it is sent.

    In ``target``, ``headers`` and ``body`` a ``<name>`` stands for a value of the world that is asked. ``label``
    names it where its headers and body are of the moment.
    """

    method: str
    target: str
    headers: Headers = ()
    body: bytes = b""
    who: str = "nobody"
    version: str = "HTTP/1.1"
    label: str = ""

    @property
    def name(self) -> str:
        """What tells it from others, the same in every world."""
        if self.label:
            return f"{self.who}: {self.label}"
        told = "".join(f" [{name}: {value[:60]}]" for name, value in self.headers)
        body = f" {len(self.body)} bytes {hashlib.sha256(self.body).hexdigest()[:8]}" if self.body else ""
        return f"{self.who}: {self.method} {self.target} {self.version}{told}{body}"

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]


ODD_READS: tuple[Headers, ...] = (
    (("If-None-Match", "*"),),
    (("If-None-Match", 'W/"0", "<etag>"'),),
    (("If-Match", '"0"'),),
    (("If-Modified-Since", "Sat, 01 Jan 2000 00:00:00 GMT"),),
    (("If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT"),),
    (("Range", "bytes=0-9"),),
    (("Range", "bytes=-5"), ("If-Range", "<etag>")),
    (("Accept", "text/html"),),
    (("Accept", "text/event-stream"),),
    (("Accept-Encoding", "gzip"),),
    (("Authorization", "Basic bWU6bWU="),),
    (("Cookie", "mafl-session=forged; mafl-browser=forged"),),
)
"""Headers that may bring another answer out of a call that reads; ``<etag>`` is the tag of the plain answer."""

BODIES: tuple[bytes, ...] = (
    b"",
    b"{}",
    b"[]",
    b"null",
    b"no json",
    b"\xff\xfe\x00",
    b'{"name": 1, "name": 2}',
    b"[" * 2_000,
    b'{"picks": [], "thesis": "<lineup>"}',
    b'{"agent_id": "<entrant>", "lineup_id": "<lineup>"}',
    b"csrf=forged&lineup=<lineup>",
)
"""Bodies that change nothing; where a call takes no body they may do what the call does."""

ODD_WRITES: tuple[Headers, ...] = (
    (("Idempotency-Key", ""),),
    (("Idempotency-Key", "x" * 300),),
    (("Idempotency-Key", "<used-key>"),),
    (("Content-Type", "text/plain"),),
    (("Content-Encoding", "gzip"),),
    (("Transfer-Encoding", "chunked"),),
    (("Origin", "https://elsewhere.example"),),
)
"""Headers that may bring another refusal out of a call that writes; ``<used-key>`` has made an entry in one world."""

LARGE = b" " * 100_000
"""More than most calls read, and less than the gateway refuses: which of two refusals came first would be chance."""


def filled(path: str, places: Mapping[str, Sequence[str]], anything: Sequence[str]) -> list[str]:
    """The paths that a route's path makes, each place filled from ``places``, else from ``anything``."""
    names = _PLACE.findall(path)
    blank = _PLACE.sub("\0", path)
    made = []
    for values in itertools.product(*(places.get(f"{path} {name}", places.get(name, anything)) for name in names)):
        rest = iter(values)
        made.append(re.sub("\0", lambda _: next(rest), blank))  # noqa: B023 - used at once
    return made


def asks_of(
    route: Route,
    places: Mapping[str, Sequence[str]],
    queries: Mapping[str, Sequence[str]],
    anything: Sequence[str],
) -> Iterator[Ask]:
    """Everything that is tried at a route by nobody in particular; others ask :func:`plainly`."""
    paths = filled(route.path, places, anything)
    yield from plainly(route, places, anything)
    first = paths[0]
    yield from (Ask(method, first) for method in _METHODS if method not in route.methods)
    upper = first if "<" in first else first.upper()
    for odd in (f"{first}/", upper, f"{first}%2f", f"{first}?", f"{first}?q=%00&entries=1", f"/{first}"):
        yield from (Ask(method, odd) for method in sorted(route.methods) if method != "HEAD")
    for path, name in itertools.product(paths[:2], route.query):
        for value in queries.get(name, anything):
            yield from (Ask(method, f"{path}?{name}={value}") for method in sorted(route.methods) if method != "HEAD")
    for name in route.header:
        if name not in ("authorization", "if-none-match", "idempotency-key"):
            yield from (Ask(method, first, ((name, value),)) for method in route.methods for value in anything)
    if "GET" in route.methods:
        yield from (Ask("GET", first, headers) for headers in ODD_READS)
    for method in sorted(route.methods - {"GET", "HEAD"}):
        yield from (Ask(method, first, headers, b"{}") for headers in ODD_WRITES)
        yield Ask(method, first, body=LARGE)


def plainly(
    route: Route, places: Mapping[str, Sequence[str]], anything: Sequence[str], who: str = "nobody"
) -> list[Ask]:
    """The plain requests of a route, on every path that it makes, in the name of ``who``; all bodies on the first."""
    return [
        Ask(method, path, (("Idempotency-Key", "<used-key>"),) if body == b"{}" else (), body, who)
        for number, path in enumerate(filled(route.path, places, anything))
        for method in sorted(route.methods)
        for body in ((b"",) if method in ("GET", "HEAD") else BODIES if not number else (b"{}",))
    ]


# --- asking ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """An answer as it came: ``headers`` in their order, ``body`` as sent but unpacked."""

    status: int
    reason: str
    headers: Headers
    body: bytes

    def header(self, name: str) -> str | None:
        """A header's value; None where there is none."""
        return next((value for given, value in self.headers if given.lower() == name.lower()), None)

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    @property
    def cookies(self) -> dict[str, str]:
        """What it sets, by name."""
        set_ = [value.partition(";")[0].partition("=") for name, value in self.headers if name.lower() == "set-cookie"]
        return {name: value for name, _, value in set_}

    def links(self, origin: str) -> list[str]:
        """Where its page leads to within the origin, in order: targets of links, forms, pictures, and ``Location``."""
        found = (
            [unescape(link) for link in _LINK.findall(self.text)]
            if "html" in (self.header("content-type") or "")
            else []
        )
        found += re.findall(rf"{re.escape(origin)}(/[\w./%?=&-]*[\w/])", self.text)
        found += [self.header("location") or ""]
        inside = (link.removeprefix(origin).partition("#")[0] for link in found)
        return list(dict.fromkeys(link for link in inside if link.startswith("/") and not link.startswith("//")))


@dataclass
class Origin:
    """A way to an origin for one client: a connection that is kept, from the address ``source``."""

    host: str
    port: int
    source: str = "127.0.0.1"
    _connection: http.client.HTTPConnection | None = field(default=None, repr=False)

    def send(self, ask: Ask, extra: Headers = ()) -> Answer:
        """Send a request exactly as it is; ``extra`` headers follow its own. An event stream is read for a second."""
        try:
            return self._send(ask, extra)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            # A kept connection that the other side has just closed.
            self.close()
            return self._send(ask, extra)

    def _send(self, ask: Ask, extra: Headers) -> Answer:
        if self._connection is None:
            self._connection = http.client.HTTPConnection(self.host, self.port, 20, source_address=(self.source, 0))
        connection = self._connection
        connection._http_vsn = 10 if ask.version == "HTTP/1.0" else 11  # type: ignore[attr-defined]
        connection._http_vsn_str = ask.version  # type: ignore[attr-defined]
        headers = (*ask.headers, *extra)
        given = {name.lower() for name, _ in headers}
        connection.putrequest(ask.method, ask.target, skip_host=True, skip_accept_encoding=True)
        if "host" not in given:
            connection.putheader("Host", f"{self.host}:{self.port}")
        for name, value in headers:
            connection.putheader(name, value)
        chunked = "transfer-encoding" in given
        if (ask.body or ask.method in ("POST", "PUT", "PATCH")) and not chunked:
            connection.putheader("Content-Length", str(len(ask.body)))
        connection.endheaders()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            if chunked:
                connection.send(b"%x\r\n%b\r\n0\r\n\r\n" % (len(ask.body), ask.body) if ask.body else b"0\r\n\r\n")
            else:
                connection.send(ask.body)
        received = connection.getresponse()
        body = self._body(received)
        if received.getheader("Content-Encoding") == "gzip" and body:
            body = gzip.decompress(body)
        answer = Answer(received.status, received.reason, tuple(received.getheaders()), body)
        if ask.version == "HTTP/1.0" or received.will_close:
            self.close()
        return answer

    def _body(self, received: http.client.HTTPResponse) -> bytes:
        if not (received.getheader("Content-Type") or "").startswith("text/event-stream"):
            return received.read()
        read = bytearray()
        assert self._connection is not None
        if self._connection.sock is not None:
            self._connection.sock.settimeout(_STREAM_SECONDS)
        with contextlib.suppress(TimeoutError):
            while chunk := received.read1(65_536):
                read += chunk
        self.close()
        return bytes(read)

    def close(self) -> None:
        """Give the connection up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


# --- what differs without telling anything ----------------------------------------------------------

VARYING_HEADERS = frozenset({"date", "x-correlation-id", "x-request-id"})
"""Headers that are of the moment."""

OF_THE_MOMENT: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"mafl_(sk|claim|mail)_[0-9A-Za-z]{40,}"), r"mafl_\1_…"),
    (re.compile(r'name="csrf" value="[^"]+"'), 'name="csrf" value="…"'),
    (re.compile(r"mafl-(browser|session)=[^;\s]+"), r"mafl-\1=…"),
    (re.compile(r"expires=\w{3}, [^;]+"), "expires=…"),
    (re.compile(r'"correlation_id": ?"[^"]+"'), '"correlation_id":"…"'),
)
"""Random by nature, or a date: secrets made anew, tokens of forms and cookies, a cookie's end, failures' ids."""


def comparable(answer: Answer, values: Mapping[str, str]) -> Answer:
    """An answer without what is of the moment, and with the world's ``values`` under their names."""

    def plain(text: str) -> str:
        for pattern, shown in OF_THE_MOMENT:
            text = pattern.sub(shown, text)
        for name, value in values.items():
            text = text.replace(value, f"<{name}>")
        return text

    whole = answer.body.decode("latin-1")
    body = plain(whole).encode("latin-1", "replace")
    left_out = VARYING_HEADERS
    if answer.header("content-encoding") and plain(whole) != whole:
        left_out |= {"content-length"}  # Random tokens pack to different lengths; unpacked, they are compared.
    headers = [(name, plain(value)) for name, value in answer.headers if name.lower() not in left_out]
    return replace(answer, headers=tuple(headers), body=body)
