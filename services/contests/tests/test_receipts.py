"""Receipts are salted and signed, and who has one can check it with nothing else."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import rfc8785
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, text

from common import commitment
from common.canonical import sha256_hex
from common.commitment import Signer
from common.settings import Settings
from contests import receipts
from contests.settings import SigningSettings
from testkit.fixtures import Databases, Start

from .helpers import LOCK, OPENED, cheapest, join, week_four_is_open

STACK = {"database_url": "postgresql+psycopg://x", "nats_url": "nats://x", "operator_token": "x"}


def stack(environment: str = "production") -> Settings:
    return Settings.model_validate({**STACK, "environment": environment})


def receipt_of(answer: dict[str, Any], body: Any) -> str:
    """The receipt that the published rule makes of an answer and the body that it is for."""
    names = ("accepted_at", "agent", "contest", "model", "revision", "salts")
    return sha256_hex(rfc8785.dumps({name: answer[name] for name in names} | {"body": body}))


@pytest.mark.rule("C10", "C9")
async def test_a_receipt_is_signed_and_its_repetition_is_the_same_receipt(start: Start) -> None:
    async with start("contests", clock="replay") as service:
        await week_four_is_open(service)
        one, other = await join(service, 1, 2)
        first = (await one.submit(cheapest(), key="k")).json()
        assert first["receipt"] == receipt_of(first, cheapest())
        keys = SigningSettings().keyring(service.settings)
        assert first["key_id"] == keys.signer.key_id
        signed = commitment.receipt_statement(first["receipt"])
        assert commitment.is_signed(signed, bytes.fromhex(first["signature"]), keys.signer.public_key)
        assert tuple(first["salts"]) == commitment.pointers(9)
        second = (await one.submit(cheapest(), key="another")).json()
        others = (await other.submit(cheapest(), key="k")).json()
        salts = [salt for answer in (first, second, others) for salt in answer["salts"].values()]
        assert len(set(salts)) == len(salts) == 60
        await service.move_clock(LOCK)
        assert (await one.submit(cheapest(), key="k")).json() == first
        kept = (await one.get("2017-W04/lineups/mine/revisions")).json()["revisions"]
        assert kept == [{**first, "body": cheapest()}, {**second, "body": cheapest()}]
        for revision in kept:
            assert revision["receipt"] == receipt_of(revision, revision["body"])


def test_a_receipt_takes_its_salts_from_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    signer = Signer.generate()
    given: dict[str, Any] = {"agent": UUID(int=1), "contest": "2017-W04", "revision": 1, "model": "m"}
    given |= {"accepted_at": OPENED, "body": b"{}", "picks": 1}
    one, two = receipts.issue(signer, **given), receipts.issue(signer, **given)
    assert one.salts != two.salts
    assert len(one.salts) == 4 * 32
    monkeypatch.setattr("contests.receipts.os.urandom", lambda size: b"\x07" * size)
    fixed = receipts.issue(signer, **given)
    assert fixed.salts == b"\x07" * 128
    assert fixed == receipts.issue(signer, **given)
    changes: tuple[dict[str, Any], ...] = (
        {"agent": UUID(int=2)},
        {"contest": "2017-W05"},
        {"revision": 2},
        {"model": "n"},
        {"accepted_at": OPENED + timedelta(microseconds=1)},
        {"body": b"[]"},
        {"picks": 2},
    )
    assert len({receipts.issue(signer, **given | change).receipt for change in changes} | {fixed.receipt}) == 8


# --- keys -----------------------------------------------------------------------------------------


def test_a_production_stack_without_a_key_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAFL_SIGNING_KEY", raising=False)
    with pytest.raises(ValueError, match=r"MAFL_SIGNING_KEY is missing.*mafl key generate"):
        SigningSettings().keyring(stack())
    monkeypatch.setenv("MAFL_SIGNING_KEY", "no key")
    with pytest.raises(ValueError, match="MAFL_SIGNING_KEY: a private key is PEM"):
        SigningSettings().keyring(stack())
    signer = Signer.generate()
    for text_ in (signer.pem, signer.seed):
        monkeypatch.setenv("MAFL_SIGNING_KEY", text_)
        assert SigningSettings().keyring(stack()).signer.key_id == signer.key_id


def test_a_stack_for_trying_things_has_one_key_however_often_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAFL_SIGNING_KEY", raising=False)
    ids = {SigningSettings().keyring(stack("embedded")).signer.key_id for _ in range(2)}
    assert len(ids) == 1


def test_retired_keys_stay_published(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = Signer.generate(), Signer.generate()
    monkeypatch.setenv("MAFL_SIGNING_KEY", new.seed)
    listed = f'[{{"public_key": "{old.public_key.hex()}", "retired_at": "2026-10-01T00:00:00Z"}}]'
    monkeypatch.setenv("MAFL_SIGNING_KEYS_RETIRED", listed)
    assert [(key["key_id"], key["retired_at"]) for key in SigningSettings().keyring(stack()).documents()] == [
        (new.key_id, None),
        (old.key_id, "2026-10-01T00:00:00Z"),
    ]
    monkeypatch.setenv("MAFL_SIGNING_KEY", old.seed)
    with pytest.raises(ValueError, match="stands there twice"):
        SigningSettings().keyring(stack())
    monkeypatch.setenv("MAFL_SIGNING_KEYS_RETIRED", '[{"public_key": "ab", "retired_at": "2026-10-01T00:00:00Z"}]')
    with pytest.raises(ValueError, match="a public key is 32 bytes"):
        SigningSettings()


# --- revisions from before --------------------------------------------------------------------------


def test_a_revision_from_before_gets_salts_of_its_own_and_stays_as_it_was(databases: Databases) -> None:
    url = databases.fresh("contests")
    engine = create_engine(url)
    config = Config()
    config.set_main_option("script_location", "contests:migrations")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0003")
    with engine.begin() as connection:
        connection.execute(text(_CONTEST))
        for number in (1, 2):
            connection.execute(text(_OLD_REVISION), {"lineup": str(UUID(int=number))})
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    with engine.begin() as connection:
        rows = connection.execute(text("SELECT salts, signature, key_id, receipt FROM revisions")).all()
    assert [(row.signature, row.key_id, row.receipt) for row in rows] == [(None, None, "r")] * 2
    salts = [bytes(row.salts)[at : at + 32] for row in rows for at in range(0, len(row.salts), 32)]
    assert len(salts) == len(set(salts)) == 2 * 6
    with pytest.raises(Exception, match="never changed or removed"), engine.begin() as connection:
        connection.execute(text("UPDATE revisions SET salts = ''"))


_CONTEST = """INSERT INTO contests (contest, season, week, state, version, rules, price_source, locks_at)
VALUES ('2017-W04', 2017, 4, 'open', 1, '{}', 's', '2017-10-01T17:00:00Z')"""
_OLD_REVISION = """WITH made AS (
    INSERT INTO lineups (lineup_id, contest, agent_id) VALUES (CAST(:lineup AS uuid), '2017-W04', CAST(:lineup AS uuid))
    RETURNING lineup_id
)
INSERT INTO revisions (lineup_id, revision, contest, agent_id, accepted_at, locks_at, model, house, cohort, reference,
    picks, total_price, projected_score, confidence, body, receipt)
SELECT lineup_id, 1, '2017-W04', lineup_id, '2017-09-28T12:00:00Z', '2017-10-01T17:00:00Z', 'm', false, false,
    false, '[{"slot": "QB"}, {"slot": "TE"}]', 1, 1, 0.5, '{}', 'r' FROM made"""
