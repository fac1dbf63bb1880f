"""Tables of statistics and players: rows as wide as their header, and every fault of a file at once.

Malformed (ValueError, of common.tables)
└── BadTable    what is wrong with a file, as far as it is listed, and how much there is in all
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from common.tables import MOST_BYTES, MOST_FAULTS, Fault, Malformed, Row, read_text, rows
from settlement.domain import BadCell

T = TypeVar("T")

_PARQUET = b"PAR1"
MOST_CELLS = 20_000_000
"""Cells that a Parquet file may have: a few bytes of it can stand for any number of equal ones. A season has three
million."""
_BATCH = 5_000


class BadTable(Malformed):
    """A file of which nothing is used. ``faults`` has the first of its faults, ``count`` is how many there are."""

    def __init__(self, faults: Sequence[Fault], count: int) -> None:
        super().__init__(faults)
        self.count = count


class Faults:
    """Collects what is wrong with a file while it is read to its end."""

    def __init__(self) -> None:
        self._first: list[Fault] = []
        self._count = 0

    def add(self, line: int | None, column: str | None, reason: str) -> None:
        """Note a fault. A file that is wrong all over has millions: the first are listed, the others counted."""
        self._count += 1
        if len(self._first) < MOST_FAULTS:
            self._first.append(Fault(line, column, reason))

    def read(self, line: int, column: str, parse: Callable[[str], T], text: str) -> T | None:
        """What ``parse`` makes of a cell; ``None``, and a fault, where it raises ``BadCell``."""
        try:
            return parse(text)
        except BadCell as error:
            self.add(line, column, str(error))
            return None

    def check(self) -> None:
        """Raise ``BadTable`` if there is any fault."""
        if self._first:
            raise BadTable(self._first, self._count)


@dataclass(frozen=True, slots=True)
class Table:
    """A file with a header. ``rows`` are as wide as ``columns``; those that are not are among ``faults``.

    Whoever has read the rows calls ``faults.check()``. Cells are text, whatever the file is: nothing is blank, and
    whole numbers may end in ``.0``. The header is line 1, of a Parquet file too.
    """

    columns: tuple[str, ...]
    rows: Iterator[Row]
    faults: Faults


def read_table(content: bytes) -> Table:
    """The table of a CSV file, gzip or plain, or of a Parquet file. Blank rows are left out.

    Raises ``BadTable`` for what is none of these, for an empty one and for a column that is there twice.
    """
    faults = Faults()
    lines: Iterator[Row] = iter(())
    header: Row = (1, [])
    try:
        lines = _parquet_rows(content) if content[:4] == _PARQUET else rows(read_text(content))
        header = next(lines, header)
    except Malformed as error:
        _take_over(error, faults)
    else:
        if not header[1]:
            faults.add(None, None, "the file is empty; a header line is needed")
    columns = tuple(cell.strip() for cell in header[1])
    for column in sorted({column for column in columns if columns.count(column) > 1}):
        faults.add(header[0], column, "is there twice")
    faults.check()
    return Table(columns, _as_wide_as(columns, lines, faults), faults)


def _as_wide_as(columns: Sequence[str], lines: Iterator[Row], faults: Faults) -> Iterator[Row]:
    try:
        for line, cells in lines:
            if not any(cells):
                continue
            if len(cells) == len(columns):
                yield line, cells
            else:
                faults.add(line, None, f"{len(cells)} cells, but the header has {len(columns)} columns")
    except Malformed as error:
        _take_over(error, faults)


def _take_over(error: Malformed, faults: Faults) -> None:
    for fault in error.faults:
        faults.add(fault.line, fault.column, fault.reason)


def _parquet_rows(content: bytes) -> Iterator[Row]:
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        meta = file.metadata
        unpacked = sum(meta.row_group(group).total_byte_size for group in range(meta.num_row_groups))
        if unpacked > MOST_BYTES or meta.num_rows * meta.num_columns > MOST_CELLS:
            raise Malformed(
                [Fault(None, None, f"the Parquet file has more than {MOST_BYTES} bytes or {MOST_CELLS} cells")]
            )
        yield 1, list(file.schema_arrow.names)
        line = 1
        for batch in file.iter_batches(batch_size=_BATCH):
            for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                line += 1
                yield line, [_text(cell) for cell in cells]
    # The last three: texts that are no UTF-8, times beyond any calendar, zones that there are none of.
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError, KeyError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise Malformed([Fault(None, None, f"starts like Parquet but cannot be read ({reason})")]) from error


def _text(cell: Any) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return str(cell)
