"""When the model is asked and about which texts together; its settings: pure, no service."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from common.settings import Settings
from moderation import main
from moderation.asking import allowance, choose, periods
from moderation.breaker import LONGEST_RETRY_AFTER, Breaker, Cause, Door, asked_again
from moderation.external import asker, name_of
from moderation.settings import ExternalSettings, Misconfigured
from moderation.store import Place, Spent, ToAsk
from testkit import rules

NOW = datetime(2026, 11, 29, 17, 0, 30, tzinfo=UTC)
THRESHOLD = 3
KEY = "sk-never-to-be-seen"
GIVEN = {"kind": "moderations", "url": "https://models.example.org/v1", "model": "judge-1", "key": KEY}


def failed(breaker: Breaker, now: datetime, cause: Cause = Cause.SERVER_ERROR, **given: float) -> Breaker:
    retry_after = given.get("retry_after")
    jitter = given.get("jitter", 0.0)
    return breaker.failed(now, cause, threshold=THRESHOLD, first_pause=30, retry_after=retry_after, jitter=jitter)


@pytest.mark.rule("M4")
def test_it_opens_after_so_many_failures_in_a_row_and_then_lets_one_through_at_a_time() -> None:
    breaker = Breaker()
    for _ in range(THRESHOLD - 1):
        breaker = failed(breaker, NOW)
        assert breaker.door(NOW, THRESHOLD) is Door.CLOSED
    breaker = failed(breaker, NOW)
    assert breaker.door(NOW + timedelta(seconds=29.9), THRESHOLD) is Door.OPEN
    half_open = NOW + timedelta(seconds=30)
    assert breaker.door(half_open, THRESHOLD) is Door.HALF_OPEN
    probing = breaker.probing(half_open + timedelta(seconds=10))
    assert probing.door(half_open, THRESHOLD) is Door.OPEN
    assert probing.door(half_open + timedelta(seconds=10), THRESHOLD) is Door.HALF_OPEN, "the lone request was lost"
    again = failed(probing, half_open)
    assert again.door(half_open + timedelta(seconds=59.9), THRESHOLD) is Door.OPEN, "twice as long as before"
    assert again.door(half_open + timedelta(seconds=60), THRESHOLD) is Door.HALF_OPEN


@pytest.mark.rule("M4")
def test_calls_that_were_under_way_when_it_opened_do_not_make_it_stay_open_longer() -> None:
    breaker = Breaker()
    for _ in range(THRESHOLD):
        breaker = failed(breaker, NOW)
    later = NOW + timedelta(seconds=1)
    for _ in range(20):
        assert failed(breaker, later) == breaker
    asks_for_more = failed(breaker, later, Cause.RATE_LIMITED, retry_after=100)
    assert asks_for_more.open_until == later + timedelta(seconds=100)


@pytest.mark.rule("M4")
@pytest.mark.parametrize("cause", [Cause.KEY_REFUSED, Cause.NOT_FOUND, Cause.REDIRECT])
def test_what_an_operator_must_mend_opens_it_at_once(cause: Cause) -> None:
    breaker = failed(Breaker(), NOW, cause)
    assert breaker.door(NOW + timedelta(seconds=299), THRESHOLD) is Door.OPEN
    assert breaker.door(NOW + timedelta(seconds=300), THRESHOLD) is Door.HALF_OPEN


@pytest.mark.rule("M4")
@given(
    st.lists(
        st.tuples(st.sampled_from(Cause), st.floats(0, 2000), st.none() | st.floats(0, 1e12), st.floats(0, 1)),
        max_size=60,
    )
)
def test_however_it_fails_it_is_asked_again_within_an_hour_and_never_before_it_said(
    history: list[tuple[Cause, float, float | None, float]],
) -> None:
    breaker, now, not_before = Breaker(), NOW, NOW
    for cause, seconds, retry_after, jitter in history:
        now += timedelta(seconds=seconds)
        breaker = breaker.failed(
            now, cause, threshold=THRESHOLD, first_pause=30, retry_after=retry_after, jitter=jitter
        )
        not_before = max(not_before, now + timedelta(seconds=min(retry_after or 0, LONGEST_RETRY_AFTER)))
        assert breaker.open_until is None or breaker.open_until <= now + timedelta(hours=1)
        if not_before > now:
            assert breaker.door(not_before - timedelta(milliseconds=1), THRESHOLD) is Door.OPEN
    assert breaker.door(now + timedelta(hours=1), THRESHOLD) is not Door.OPEN


@pytest.mark.rule("M4")
@given(st.sampled_from(Cause), st.integers(1, 10**9), st.floats(0, 1))
def test_a_text_is_asked_about_again_ever_later_and_within_six_hours(
    cause: Cause, attempts: int, jitter: float
) -> None:
    wait = asked_again(NOW, cause, attempts, first=10, jitter=jitter) - NOW
    assert timedelta(seconds=5) <= wait <= timedelta(hours=6)
    assert asked_again(NOW, cause, attempts + 1, first=10, jitter=jitter) - NOW >= wait


# --- which texts go together ---


def waiting(text: str, scope: str = "", *, alone: bool = False) -> ToAsk:
    return ToAsk(
        Place(UUID(int=0), 1, "/thesis"), text_hash=text, scope=scope, text=text, attempts=int(alone), alone=alone
    )


MODERATIONS = ExternalSettings(**GIVEN)
CHAT = ExternalSettings(**{**GIVEN, "kind": "chat"})


@pytest.mark.rule("M4")
def test_a_request_has_the_most_urgent_texts_each_once_and_no_more_than_fit() -> None:
    model = asker(MODERATIONS)
    found = [waiting(text) for text in ("a", "b", "a", "c", "d")]
    assert [text.text for text in choose(found, 3, 10**9, model)] == ["a", "b", "c"]
    assert choose([], 3, 10**9, model) == []
    assert choose(found, 3, model.tokens(["a"]) - 1, model) == []
    assert [text.text for text in choose(found, 9, model.tokens(["a", "b"]), model)] == ["a", "b"]
    large = [waiting(letter * 4000) for letter in "abcdefghijklmnopqrstuvwxyz"]
    assert len(choose(large, 32, 10**9, model)) == 16
    assert len(choose([waiting("x" * 200_000)], 32, 10**9, model)) == 1


@pytest.mark.rule("M4")
def test_a_suspect_goes_alone_and_a_chat_model_is_shown_one_authors_words_at_a_time() -> None:
    model = asker(CHAT)
    found = [waiting("a"), waiting("b", alone=True), waiting("c")]
    assert [text.text for text in choose(found, 9, 10**9, model)] == ["a", "c"]
    assert [text.text for text in choose(found[1:], 9, 10**9, model)] == ["b"]
    of_two = [waiting("a", "one"), waiting("b", "two"), waiting("c", "one")]
    assert [text.text for text in choose(of_two, 9, 10**9, model)] == ["a", "c"]


@pytest.mark.rule("M4")
def test_the_tightest_period_counts() -> None:
    settings = ExternalSettings(**GIVEN, requests_a_minute=10, requests_a_day=100, texts_a_day=50)
    left = allowance(settings, {"minute": Spent(3, 3, 3), "day": Spent(98, 20, 20)})
    assert (left.requests, left.texts) == (2, 30)
    assert left.tokens > 2**60
    assert periods(NOW) == {
        "minute": datetime(2026, 11, 29, 17, 0, tzinfo=UTC),
        "day": datetime(2026, 11, 29, tzinfo=UTC),
    }


# --- settings ---


WRONG = {
    "no address": ({"URL": None}, "MAFL_MODERATION_URL must be given with MAFL_MODERATION_KIND=moderations"),
    "no model": ({"MODEL": None}, "MAFL_MODERATION_MODEL must be given"),
    "kind": ({"KIND": "oracle"}, "MAFL_MODERATION_KIND: Input should be 'none', 'moderations' or 'chat'"),
    "no scheme": ({"URL": "models.example.org"}, "MAFL_MODERATION_URL: Value error, must be an address such as"),
    "another scheme": ({"URL": "ftp://models.example.org"}, "must be an address such as"),
    "plain http": ({"URL": "http://models.example.org/v1"}, "MAFL_MODERATION_PLAIN_HTTP=true allows"),
    "a password": ({"URL": "https://u:sk-never-to-be-seen@example.org"}, "must hold no user, password"),
    "a query": ({"URL": "https://example.org/v1?key=sk-never-to-be-seen"}, "must hold no user, password, query"),
    "a port": ({"URL": "https://example.org:99999/v1"}, "MAFL_MODERATION_URL: Value error, Port out of range"),
    "a key of two lines": ({"KEY": "sk-never-to-be-seen\nx"}, "MAFL_MODERATION_KEY: Value error, must be printable"),
    "timeout": ({"TIMEOUT": "0"}, "MAFL_MODERATION_TIMEOUT: Input should be greater than"),
    "not a number": ({"BATCH": "many"}, "MAFL_MODERATION_BATCH: Input should be a valid integer"),
    "no budget": ({"REQUESTS_A_DAY": "0"}, "MAFL_MODERATION_REQUESTS_A_DAY: Input should be greater than"),
    "few tokens": ({"TOKENS_A_MINUTE": "10"}, "MAFL_MODERATION_TOKENS_A_MINUTE: Input should be greater than"),
    "threshold": ({"THRESHOLDS": '{"hate": 2}'}, "MAFL_MODERATION_THRESHOLDS: Value error, the score of 'hate' must"),
    "threshold NaN": ({"THRESHOLDS": '{"hate": NaN}'}, "the score of 'hate' must be from 0 to 1"),
    "no JSON": ({"THRESHOLDS": "sk-never-to-be-seen"}, "MAFL_MODERATION_*: error parsing value for field"),
    "ours": ({"CHAT_OPTIONS": '{"stream": true}'}, "MAFL_MODERATION_CHAT_OPTIONS: Value error, must not set stream"),
}


@pytest.mark.rule("M4")
@pytest.mark.parametrize("name", WRONG)
def test_what_is_set_wrong_stops_the_start_and_is_named_without_its_value(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes, message = WRONG[name]
    for variable, value in {**{key.upper(): value for key, value in GIVEN.items()}, **changes}.items():
        if value is not None:
            monkeypatch.setenv(f"MAFL_MODERATION_{variable}", value)
    settings = Settings(database_url=SecretStr("postgresql://x"), nats_url=SecretStr("nats://x"), operator_token=KEY)
    with pytest.raises(Misconfigured) as error:
        main.app(settings)
    assert message in str(error.value)
    assert KEY not in str(error.value) + repr(error.value)
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__ or error.value.__context__ is None


@pytest.mark.rule("M4")
def test_without_variables_nobody_is_asked_and_the_key_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not ExternalSettings.read().configured
    for variable, value in GIVEN.items():
        monkeypatch.setenv(f"MAFL_MODERATION_{variable.upper()}", value)
    monkeypatch.setenv("MAFL_MODERATION_REQUESTS_A_MINUTE", "null")
    settings = ExternalSettings.read()
    assert settings.configured
    assert settings.requests_a_minute is None
    shown = f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()} {name_of(settings)}"
    assert KEY not in shown
    assert settings.key is not None
    assert settings.key.get_secret_value() == KEY


@pytest.mark.rule("M4")
def test_whoever_is_asked_otherwise_is_another_judge() -> None:
    changed = [
        ExternalSettings(**{**GIVEN, **change})
        for change in (
            {},
            {"kind": "chat"},
            {"kind": "chat", "chat_options": {"seed": 1}},
            {"kind": "chat", "answer_format": "json_object"},
            {"url": "https://other.example.org"},
            {"model": "judge-2"},
            {"thresholds": {"hate": 0.5}},
        )
    ]
    assert len({name_of(settings) for settings in changed}) == len(changed)
    assert name_of(ExternalSettings(**{**GIVEN, "key": "another"}, batch=3)) == name_of(MODERATIONS)


@pytest.mark.rule("M4")
def test_every_setting_is_described_where_operators_read() -> None:
    described = (rules.ROOT / "docs" / "moderation.md").read_text()
    for name in ExternalSettings.model_fields:
        assert f"`MAFL_MODERATION_{name.upper()}`" in described, name
