"""What an owner's page makes of a lineup of many texts: each stands once, under what became of it, with its own why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from registry.pages import _grouped
from registry.store import Field, LockedLineup, Review

AT = datetime(2017, 9, 12, 9, tzinfo=UTC)
PICK = "/picks/{}/rationale"


def review(version: int, *, answered: bool) -> Review:
    return Review(version, UUID(int=1), AT, None, AT + timedelta(hours=1) if answered else None)


def lineup(fields: list[Field], reviews: dict[str, Review], redacted: dict[str, tuple[str, datetime]]) -> LockedLineup:
    slots = ("QB", "RB1", "RB2", "WR1", "WR2", "WR3")
    return LockedLineup(UUID(int=2), "2017-W01", 1, AT, "gpt-5", slots, tuple(fields), 3, reviews, redacted)


@pytest.mark.rule("M4", "M6", "A6")
def test_of_many_texts_each_stands_once_with_its_own_reasons_under_what_became_of_it() -> None:
    fields = [
        Field("/thesis", "cleared", (), reviewed=1),
        Field(PICK.format(0), "flagged", ("links", "personal-data")),
        Field(PICK.format(1), "cleared", ()),
        Field(PICK.format(2), "flagged", ("operator",), reviewed=2),
        Field(PICK.format(3), "unchecked", ()),
        Field(PICK.format(4), "flagged", ("links",)),
        Field(PICK.format(5), "cleared", ()),
    ]
    reviews = {
        "/thesis": review(1, answered=True),
        PICK.format(2): review(3, answered=False),
        PICK.format(3): review(1, answered=False),
    }
    redacted = {PICK.format(4): ("court-order", AT), PICK.format(5): ("decency", AT)}
    grouped = _grouped(lineup(fields, reviews, redacted))
    assert [(heading, [(text.name, text.field.reasons) for text in texts]) for heading, texts in grouped] == [
        (
            "Withheld",
            [
                ("rationale for QB", ("links", "personal-data")),
                ("rationale for RB2", ("operator",)),
                ("rationale for WR2", ("links",)),
                ("rationale for WR3", ()),
            ],
        ),
        ("Reviewed", [("thesis", ()), ("rationale for WR1", ())]),
    ]
    texts = {text.name: text for _, group in grouped for text in group}
    asked = {name for name, text in texts.items() if text.asked}
    assert asked == {"rationale for RB2"}, "its answer is to an older request; what is not flagged waits for nobody"
    assert {name for name, text in texts.items() if text.redacted} == {"rationale for WR2", "rationale for WR3"}


@pytest.mark.rule("M4", "M6")
def test_a_heading_without_texts_is_left_out_and_so_is_what_nobody_withheld_or_asked_about() -> None:
    cleared = Field("/thesis", "cleared", ())
    waits = Field(PICK.format(0), "unchecked", ())
    assert _grouped(lineup([cleared, waits], {}, {})) == []
    flagged = Field(PICK.format(0), "flagged", ("links",))
    assert [heading for heading, _ in _grouped(lineup([cleared, flagged], {}, {}))] == ["Withheld"]
    asked = {"/thesis": review(1, answered=True)}
    assert [heading for heading, _ in _grouped(lineup([cleared, waits], asked, {}))] == ["Reviewed"]
