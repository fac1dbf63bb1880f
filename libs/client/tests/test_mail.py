"""``mafl mail`` shows what a stack without a mail server keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mafl.cli import run

MAIL = "From: MAFL <no-reply@localhost>\nTo: {to}\nSubject: Sign in to MAFL\nDate: today\n\nA link:\n\nhttp://x/{to}\n"


def put(box: Path, name: str, to: str) -> None:
    box.mkdir(parents=True, exist_ok=True)
    (box / name).write_text(MAIL.format(to=to))


def test_the_last_mail_is_shown_and_all_of_it_on_demand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path / "outbox", "1.eml", "ann@example.org")
    put(tmp_path / "outbox", "2.eml", "bob@example.org")
    assert run(["mail", "--state", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "http://x/bob@example.org" in shown
    assert "ann@" not in shown
    assert run(["mail", "--all", "--json", "--state", str(tmp_path)]) == 0
    mails = json.loads(capsys.readouterr().out)["mail"]
    assert [one["to"] for one in mails] == ["ann@example.org", "bob@example.org"]
    assert mails[0]["text"] == "A link:\n\nhttp://x/ann@example.org"


def test_a_demos_mail_is_found_and_none_is_said_to_be_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mail", "--json", "--state", str(tmp_path)]) == 1
    assert json.loads(capsys.readouterr().out)["code"] == "no-mail"
    put(tmp_path / "demo" / "outbox", "1.eml", "ann@example.org")
    assert run(["mail", "--state", str(tmp_path)]) == 0
