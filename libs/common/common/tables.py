"""CSV files as people have them: gzip or plain, with or without a byte order mark, any line ends.

Nothing is guessed: a file that is damaged, cut off, not UTF-8 or not rectangular is refused with the line
and column of each fault.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

MOST_BYTES = 64 << 20
"""Bytes that a file may unpack to; a whole season has about two million."""

MOST_FAULTS = 50
"""Faults that are listed of one file."""

Row = tuple[int, list[str]]
"""A line number (the header's is 1, or that of the first line that is not blank) and the cells of that line."""


@dataclass(frozen=True)
class Fault:
    """What is wrong with a file. ``line`` and ``column`` (a header's name) are None where it is all of it."""

    line: int | None
    column: str | None
    reason: str

    def __str__(self) -> str:
        where = [f"line {self.line}"] if self.line is not None else []
        where += [f"column {self.column}"] if self.column is not None else []
        return f"{', '.join(where)}: {self.reason}" if where else self.reason

    def document(self) -> dict[str, Any]:
        """The fault as JSON answers show it."""
        return asdict(self)


class Malformed(ValueError):
    """A file of which nothing is taken. ``faults`` stand in file order, at most :data:`MOST_FAULTS`."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults[:MOST_FAULTS])
        super().__init__("; ".join(map(str, self.faults)))


def _whole(reason: str) -> Malformed:
    return Malformed([Fault(None, None, reason)])


def read_text(content: bytes, most: int = MOST_BYTES) -> str:
    """The text of a file, gzip or plain, UTF-8 with or without a byte order mark.

    Raises :class:`Malformed`, also when it unpacks to more than ``most`` bytes.
    """
    unpacked = _unpacked(content, most)
    try:
        return unpacked.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = unpacked.count(b"\n", 0, error.start) + 1
        raise Malformed([Fault(line, None, f"not UTF-8 (byte {error.start} of the file)")]) from error


def _unpacked(content: bytes, most: int) -> bytes:
    if content[:2] != b"\x1f\x8b":
        if len(content) > most:
            raise _whole(f"the file is larger than {most} bytes")
        return content
    unpacked = bytearray()
    while content:  # gzip files may be concatenated
        inflate = zlib.decompressobj(wbits=31)
        try:
            unpacked += inflate.decompress(content, most + 1 - len(unpacked))
        except zlib.error as error:
            raise _whole(f"the file starts like gzip but is damaged ({error})") from error
        if len(unpacked) > most:
            raise _whole(f"the file unpacks to more than {most} bytes")
        if not inflate.eof:
            raise _whole("the file starts like gzip but is cut short")
        content = inflate.unused_data
    return bytes(unpacked)


def rows(text: str) -> Iterator[Row]:
    """Each record with the number of the line it starts in, the header first; blank lines are passed over.

    Raises :class:`Malformed` for what is no CSV. Cells come as they stand; widths are the caller's to judge.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise Malformed([Fault(line, None, f"not CSV: {error}")]) from error
        if cells is None:
            return
        if cells:
            yield line, cells
