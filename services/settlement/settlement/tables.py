"""CSV files as people have them: gzip or plain, with or without a byte order mark, any line ends.

Nothing is guessed: a file that is cut off, not UTF-8 or not rectangular is refused with its line.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator

from settlement.domain import InputError

LARGEST = 64 << 20
"""Bytes of text that are read; a season has about one million, and a compressed file may promise far more."""


def read_text(data: bytes, name: str) -> str:
    """The text of a CSV file, gzip or not, UTF-8 with or without a byte order mark. Raises ``InputError``."""
    try:
        if data[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
                data = packed.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise InputError(f"{name}: larger than {LARGEST >> 20} MiB of text")
        return data.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{name}: not a whole gzip file ({error})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: byte {error.start} is not UTF-8 text") from error


def read_table(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Lines of a CSV with their line numbers, the header (1) first. Blank lines are left out.

    Raises ``InputError`` for an empty file, a repeated column and a row that is longer or shorter than the header.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    width = 0
    try:
        for cells in reader:
            if not width:
                cells = [cell.strip() for cell in cells]
                width = len(cells)
                repeated = sorted({cell for cell in cells if cells.count(cell) > 1})
                if repeated:
                    raise InputError("is there twice", line=1, column=repeated[0])
            elif not any(cells):
                continue
            elif len(cells) != width:
                raise InputError(f"{len(cells)} cells, but the header has {width} columns", line=reader.line_num)
            yield reader.line_num, cells
    except csv.Error as error:
        raise InputError(f"not CSV ({error})", line=reader.line_num) from error
    if not width:
        raise InputError(f"{name}: the file is empty; a header line is needed")
