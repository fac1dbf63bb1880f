"""What the pages of services share: the files that they are drawn with, and the headers of pages for one person."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import PurePath

from fastapi import Response

_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class StaticContent:
    """Files of a package's folder ``static``, kept in memory.

    Pages name them with ``version``, which changes with their content: a browser may keep them for good.
    """

    def __init__(self, package: str, *names: str) -> None:
        """Raises ``FileNotFoundError`` for a file that is not there, ``KeyError`` for one of an unknown kind."""
        folder = files(package) / "static"
        self._content = {name: (folder.joinpath(name).read_bytes(), _KINDS[PurePath(name).suffix]) for name in names}
        whole = b"".join(content for content, _ in self._content.values())
        self.version = hashlib.sha256(whole).hexdigest()[:12]

    def answer(self, name: str) -> Response | None:
        """One of the files, ``None`` where there is none of this name."""
        if name not in self._content:
            return None
        content, kind = self._content[name]
        headers = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
        return Response(content, 200, headers, kind)


def private_headers(*, scripts: bool = False) -> dict[str, str]:
    """Of a page that is one person's: kept by nobody, framed by nobody, found by no search engine.

    It loads what it is drawn with from this site alone, and runs scripts only where ``scripts`` says so.
    """
    script = "script-src 'self'; " if scripts else ""
    return {
        "Cache-Control": "no-store",
        "Content-Security-Policy": (
            f"default-src 'none'; {script}style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
            "frame-ancestors 'none'"
        ),
        "Cross-Origin-Opener-Policy": "same-origin",
        # Addresses may be secrets; without a referrer at all, browsers would hide a form's origin too.
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "X-Robots-Tag": "noindex, nofollow",
    }
