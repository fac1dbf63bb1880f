"""Files as people have them, and files that nobody should have."""

from __future__ import annotations

import gzip

import pytest

from common.tables import Fault, Malformed, read_text, rows

TEXT = "week,name\r\n1,Zoë\r\n"


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode(),
        b"\xef\xbb\xbf" + TEXT.encode(),
        gzip.compress(TEXT.encode(), mtime=0),
        gzip.compress(TEXT[:6].encode(), mtime=0) + gzip.compress(TEXT[6:].encode(), mtime=0),
    ],
    ids=["plain", "byte order mark", "gzip", "two gzip members"],
)
def test_a_file_is_read_however_it_comes(content: bytes) -> None:
    assert list(rows(read_text(content))) == [(1, ["week", "name"]), (2, ["1", "Zoë"])]


def test_a_quoted_line_end_keeps_the_line_numbers_right() -> None:
    text = 'a,b\n"two\nlines",x\n\nlast,y\n'
    assert [line for line, _ in rows(text)] == [1, 2, 5]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"a\n\xff", Fault(2, None, "not UTF-8 (byte 2 of the file)")),
        (gzip.compress(b"a" * 1000, mtime=0)[:-9], Fault(None, None, "the file starts like gzip but is cut short")),
        (b"x" * 101, Fault(None, None, "the file is larger than 100 bytes")),
        (gzip.compress(b"\0" * 10_000_000, mtime=0), Fault(None, None, "the file unpacks to more than 100 bytes")),
    ],
    ids=["bytes", "cut", "large", "bomb"],
)
def test_what_cannot_be_read_is_refused_with_its_place(content: bytes, fault: Fault) -> None:
    most = 100 if len(content) > 100 else 10_000
    with pytest.raises(Malformed) as refused:
        read_text(content, most)
    assert refused.value.faults == (fault,)


def test_damaged_gzip_and_broken_quotes_are_refused() -> None:
    with pytest.raises(Malformed, match="starts like gzip but is damaged"):
        read_text(b"\x1f\x8b" + b"nonsense")
    with pytest.raises(Malformed, match="line 2: not CSV"):
        list(rows('a,b\n"open,c\n'))
    assert str(Fault(3, "salary", "blank")) == "line 3, column salary: blank"
