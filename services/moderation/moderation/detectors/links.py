"""Links. A web address is one by its scheme, by ``www.``, by a path, or by a public suffix that words do not end in.

The name of a known source (``NFL.com says``) is a name and passes; the same with a path is a link.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import tldextract

from moderation.pipeline import Context, Detector, Match

SOURCES = frozenset(
    {
        *("nfl.com", "espn.com", "cbssports.com", "nbcsports.com", "foxsports.com", "si.com", "yahoo.com", "rbsdm.com"),
        *("sports.yahoo.com", "usatoday.com", "theathletic.com", "bleacherreport.com", "profootballtalk.com"),
        *("profootballfocus.com", "pff.com", "pro-football-reference.com", "footballoutsiders.com", "ftnfantasy.com"),
        *("fantasypros.com", "rotowire.com", "rotoworld.com", "rotogrinders.com", "rotoguru.net", "rotoguru1.com"),
        *("numberfire.com", "4for4.com", "draftkings.com", "fanduel.com", "establishtherun.com", "stokastic.com"),
        *("sharpfootballanalysis.com", "sharpfootballstats.com", "teamrankings.com", "footballguys.com"),
        *("nflweather.com", "weather.com", "weather.gov", "playerprofiler.com", "lineups.com", "razzball.com"),
        *("vegasinsider.com", "covers.com", "actionnetwork.com", "airyards.com", "nflverse.com", "overthecap.com"),
        *("spotrac.com", "sleeper.com", "underdogfantasy.com", "prizepicks.com", "nextgenstats.nfl.com", "ourlads.com"),
    }
)
"""Sources whose names are web addresses; without scheme and path they are names."""

_ONLY_LINKS_END_SO = frozenset(
    {
        *("com", "net", "org", "edu", "gov", "mil", "biz", "io", "gg", "co", "tv", "xyz", "ly", "ru", "cn", "uk", "eu"),
        *("pw", "tk", "cc", "ws", "onion", "icu", "vip", "casino", "porn", "xxx"),
    }
)
"""Suffixes that make a link of any name before them."""

_WORDS_TOO = frozenset(
    {
        *("info", "app", "dev", "bet", "poker", "shop", "store", "site", "online", "website", "club", "link", "click"),
        *("live", "stream", "download", "fun", "blog", "page", "news", "ai", "me", "win", "game", "games", "football"),
        *("fans", "bid", "tips", "picks", "money", "cash", "zone", "team", "chat", "social", "video"),
    }
)
"""Suffixes that are words: a sentence may lack its space before one (``no.Game``). Then it goes on with a capital."""

_COUNTRIES = frozenset(
    {
        *(
            "de",
            "nl",
            "fr",
            "jp",
            "br",
            "pl",
            "se",
            "ch",
            "au",
            "nz",
            "ca",
            "mx",
            "kr",
            "tw",
            "hk",
            "sg",
            "cz",
            "dk",
            "fi",
        ),
        *(
            "hu",
            "gr",
            "pt",
            "ro",
            "ua",
            "tr",
            "ir",
            "il",
            "ie",
            "su",
            "rs",
            "sk",
            "lt",
            "lv",
            "ee",
            "fm",
            "gl",
            "gd",
            "nu",
        ),
        *("sh", "vc", "ag"),
    }
)
"""Countries' suffixes that no English word is. They make a link of a name of three letters and more, in lower case."""

_SHORTENERS = frozenset(
    {
        *(
            "youtu.be",
            "wa.me",
            "t.me",
            "git.io",
            "amzn.to",
            "spoti.fi",
            "fb.me",
            "linktr.ee",
            "redd.it",
            "t.co",
            "goo.gl",
        ),
        *(
            "is.gd",
            "ow.ly",
            "buff.ly",
            "rebrand.ly",
            "cutt.ly",
            "s.id",
            "v.gd",
            "lnkd.in",
            "pin.it",
            "on.fb.me",
            "shorturl.at",
        ),
    }
)

_STOP = r"\s<>\"')\]}"
_SCHEME = re.compile(
    rf"\b(?:[a-z][a-z0-9+.-]{{1,15}}(?::|%3a)//[^{_STOP}]+|(?:javascript|vbscript|mailto|magnet):[^{_STOP}]+"
    rf"|data:[a-z]+/[^{_STOP}]+)|(?<![\w:/])//[a-z0-9](?:[\w-]{{0,62}}\.){{1,6}}[a-z]{{2,24}}[^{_STOP}]*",
    re.I,
)
_WWW = re.compile(rf"\bwww\d?\.[^{_STOP}]+", re.I)
_DOTS = r"[.\u3002]|\[\.\]|\(\.\)| ?\[dot\] ?| ?\(dot\) ?| dot | \. (?=(?:com|net|org|io|gg)\b)"
_DOMAIN = re.compile(
    rf"(?<![\w.@/-])((?:[^\W_](?:[\w-]{{0,61}}[^\W_])?(?:{_DOTS}))+[^\W\d_]{{2,24}})(?![\w@])(?::\d{{2,5}})?(/[^{_STOP}]*)?",
    re.I,
)
_DOT = re.compile(_DOTS, re.I)

extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=False)
"""Reads the list of public suffixes that comes with the library: never the network, never a cache on disk."""


class Links(Detector):
    name = "links"
    version = "2"

    def __init__(self) -> None:
        extract("example.com")  # reads the bundled list now rather than in the middle of a batch

    def judge(self, text: str, context: Context) -> Iterable[Match]:
        taken: list[tuple[int, int]] = []
        for pattern, rule in ((_SCHEME, "url"), (_WWW, "www"), (_DOMAIN, "domain")):
            for found in pattern.finditer(text):
                start, end = found.span()
                if any(start < until and since < end for since, until in taken):
                    continue
                if rule == "domain" and not _is_link(found.group(1), found.group(2)):
                    continue
                taken.append((start, end))
                yield Match(rule, start, end)


def _is_link(host: str, path: str | None) -> bool:
    plain = _DOT.sub(".", host)
    if path in (None, "/") and plain.lower() in SOURCES:
        return False
    parts = extract(plain.lower())
    if not parts.suffix or not parts.domain:
        return False
    last = plain.rpartition(".")[2]
    if last.lower() in _ONLY_LINKS_END_SO or plain.lower() in _SHORTENERS:
        return True
    if last in _COUNTRIES and len(parts.domain) > 2:
        return True
    # A path alone does not tell: `yards.in/out` lacks a space. Hidden dots do: nobody writes `in[.]out`.
    return last in _WORDS_TOO or ("[" in host or "(" in host)
