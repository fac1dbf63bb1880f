"""Roots are stamped by an RFC 3161 authority, a real one: OpenSSL's, behind a small server."""

import asyncio
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from cryptography.x509 import Certificate, load_pem_x509_certificates

from common.stamps import StampWrong, stamped_at
from contests import stamps
from contests.settings import SigningSettings, Stamping
from contests.stamps import StampRefused, stamp
from mafl.verify import verify
from testkit.fixtures import Start

from .helpers import LOCK, W04, cheapest, join, ok, week_four_is_open

pytestmark = pytest.mark.skipif(
    not shutil.which("openssl") and os.environ.get("CI") != "true", reason="OpenSSL plays the authority"
)

_CONFIGURATION = """
[tsa]
default_tsa = us
[us]
serial = {folder}/serial
crypto_device = builtin
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
ess_cert_id_alg = sha256
[v3_tsa]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = critical,timeStamping
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[v3_ca]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign
subjectKeyIdentifier = hash
[req]
distinguished_name = name
[name]
"""


Answer = tuple[int, bytes]


class Authority:
    """A time-stamping authority of its own root. ``answers`` replace its own, in turn, while there are any."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answers: list[Answer | Callable[[bytes], Answer]] = []
        self.asked = 0
        (folder / "serial").write_text("01\n")
        (folder / "ts.cnf").write_text(_CONFIGURATION.format(folder=folder))
        key = ("-newkey", "rsa:2048", "-nodes", "-sha256", "-config", "ts.cnf")
        self._openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Root of tests",
                      "-extensions", "v3_ca", "-days", "30")  # fmt: skip
        self._openssl("req", *key, "-keyout", "tsa.key", "-out", "tsa.csr", "-subj", "/CN=Authority of tests")
        self._openssl("x509", "-req", "-in", "tsa.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                      "-out", "tsa.pem", "-extfile", "ts.cnf", "-extensions", "v3_tsa", "-days", "30")  # fmt: skip

    @property
    def roots(self) -> tuple[Certificate, ...]:
        return tuple(load_pem_x509_certificates((self.folder / "ca.pem").read_bytes()))

    def with_status(self, status: int) -> Callable[[bytes], Answer]:
        """Its own answer with another status, which no signature is over."""

        def answer(query: bytes) -> Answer:
            granted = b"\x30\x03\x02\x01\x00"
            code, content = self.answer(query)
            assert content[4:9] == granted
            return code, content[:4] + granted[:-1] + bytes([status]) + content[9:]

        return answer

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True, timeout=30)

    def answer(self, query: bytes) -> Answer:
        self.asked += 1
        if self.answers:
            given = self.answers.pop(0)
            return given(query) if callable(given) else given
        (self.folder / "query").write_bytes(query)
        self._openssl("ts", "-reply", "-config", "ts.cnf", "-queryfile", "query", "-signer", "tsa.pem",
                      "-inkey", "tsa.key", "-out", "reply")  # fmt: skip
        return 200, (self.folder / "reply").read_bytes()

    @contextmanager
    def serving(self) -> Iterator[str]:
        authority = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.headers["Content-Type"] == "application/timestamp-query"
                status, content = authority.answer(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                yield f"http://127.0.0.1:{server.server_port}/"
            finally:
                server.shutdown()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.mark.rule("C10")
async def test_a_root_is_stamped_even_where_the_authority_fails_at_first_and_the_stamp_is_checked_offline(
    start: Start, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stamps, "_PAUSE", 0.05)
    monkeypatch.setattr(stamps, "_PAUSE_AFTER_FAILURE", 0.05)
    (tmp_path / "proxy").mkdir()
    proxy = Authority(tmp_path / "proxy")
    authority.answers = [(503, b""), (200, b"no timestamp"), proxy.answer]
    with authority.serving() as url:
        monkeypatch.setenv("MAFL_STAMP_URL", url)
        monkeypatch.setenv("MAFL_STAMP_ROOTS", str(authority.folder / "ca.pem"))
        async with start("contests", clock="replay") as service:
            await week_four_is_open(service)
            (agent,) = await join(service, 1)
            await ok(await agent.submit(cheapest()))
            address = f"/api/v1/contests/{W04}/commitment"
            assert (await service.client.get(f"{address}/stamp")).json()["code"] == "contest-not-locked"
            await service.move_clock(LOCK)
            for _ in range(1200):
                stamped = await service.client.get(f"{address}/stamp")
                if stamped.status_code == 200:
                    break
                assert stamped.json()["code"] == "stamp-missing"
                await asyncio.sleep(0.05)
            assert (stamped.status_code, stamped.headers["content-type"]) == (200, "application/timestamp-reply")
            asked = authority.asked
            await asyncio.sleep(0.3)
            assert authority.asked == asked == 4, "what is stamped is not stamped again"
            files = {
                "commitment.json": (await service.client.get(address)).content,
                "leaves.bin": (await service.client.get(f"{address}/leaves")).content,
                "keys.json": (await service.client.get("/api/v1/keys")).content,
                "openings.jsonl": b"null\n" * 20,
                "commitment.tsr": stamped.content,
            }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    roots = authority.roots
    report = verify(tmp_path, stamp_roots=roots)
    assert report.failures == []
    assert report.contests[0]["stamp"]["checked"] is True
    assert verify(tmp_path).contests[0]["stamp"] == {**report.contests[0]["stamp"], "checked": False}

    # Each byte of what the authority signed is needed, and no other authority will do.
    middle = len(stamped.content) // 2
    for changed in (stamped.content[:-1], stamped.content[:-9] + b"\0" * 9, b"", stamped.content[:middle]):
        (tmp_path / "commitment.tsr").write_bytes(changed)
        assert [failure.code for failure in verify(tmp_path, stamp_roots=roots).failures] == ["stamp-wrong"]
    (tmp_path / "commitment.tsr").write_bytes(stamped.content)
    (tmp_path / "other").mkdir()
    others = Authority(tmp_path / "other").roots
    assert [failure.code for failure in verify(tmp_path, stamp_roots=others).failures] == ["stamp-wrong"]


async def test_an_answer_that_is_no_stamp_of_what_was_asked_is_refused(authority: Authority, tmp_path: Path) -> None:
    statement = b"one statement"
    with authority.serving() as url:
        asked = Stamping(url, authority.roots)
        async with httpx.AsyncClient() as client:
            content, at = await stamp(asked, statement, client)
            assert at == stamped_at(content, statement, authority.roots)
            forged = Authority(tmp_path).answer
            for answer in ((200, content), (200, b"x"), (200, b"x" * 100_000), forged, authority.with_status(2)):
                authority.answers = [answer]
                with pytest.raises(StampRefused):
                    await stamp(asked, statement, client)
            authority.answers = [(404, b"")]
            with pytest.raises(httpx.HTTPStatusError):
                await stamp(asked, statement, client)


async def test_a_stamp_that_is_granted_with_modifications_is_a_stamp(authority: Authority) -> None:
    authority.answers = [authority.with_status(1)]
    with authority.serving() as url:
        async with httpx.AsyncClient() as client:
            content, at = await stamp(Stamping(url, authority.roots), b"one statement", client)
    assert at == stamped_at(content, b"one statement", authority.roots)
    with pytest.raises(StampWrong):
        stamped_at(content, b"another statement", authority.roots)


def test_an_authority_is_configured_with_the_certificates_that_its_stamps_are_checked_by(
    authority: Authority, tmp_path: Path
) -> None:
    url = "http://stamps.example/"
    configured = SigningSettings(stamp_url=url, stamp_roots=authority.folder / "ca.pem")
    assert configured.stamping() == Stamping(url, authority.roots)
    assert SigningSettings().stamping() is None
    with pytest.raises(ValueError, match="MAFL_STAMP_ROOTS is missing"):
        SigningSettings(stamp_url=url).stamping()
    (tmp_path / "empty.pem").write_text("no certificate\n")
    with pytest.raises(ValueError, match=r"MAFL_STAMP_ROOTS: .*empty\.pem holds no certificates"):
        SigningSettings(stamp_url=url, stamp_roots=tmp_path / "empty.pem").stamping()
