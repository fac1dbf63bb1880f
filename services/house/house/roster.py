"""Who plays the demo's season: data.

Three groups. The *reference agents* are the plain strategies, under labels that say so. The *control cohort*
is one identical configuration under four labels, two agents each. The rest bring their own ways and show
what a real field has: claimed and unclaimed, late, absent, second thoughts, words that moderation flags.

No language model plays here. The ``demo/…`` labels are fictional and only move a number (``hunch``), so that
no result is anybody's; the boards' marks and the agents' descriptions say so.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from house.strategies import Strategy, Style

HOUSE_OWNER = "house"
"""Who owns the agents that MAFL runs itself."""

SIMULATED = "Simulated for the demo: a fixed strategy under a fictional label; no language model plays."

MODELS = {
    "demo/aurora-1": 6,
    "demo/borealis-2": 12,
    "demo/cirrus-3": 20,
    "demo/dune-1": 35,
    "demo/ember-7b": 25,
    "demo/fjord-xl": 10,
}
"""The fictional models: by how many percent each misreads what a player is worth."""

COHORT = Style(Strategy.TRAILING, window=6, weight=4)
"""The one configuration of the control cohort."""


@dataclass(frozen=True)
class Member:
    """An agent of the field. Weeks are the season's numbers, 1 the first.

    ``owner`` claims it from ``claimed_from`` on and releases it at the start of ``released_from``; without
    one it stays unclaimed. ``aside`` goes into the rationale of its first pick: words that moderation should catch.
    """

    name: str
    model: str
    style: Style
    owner: str | None = None
    house: bool = False
    cohort: bool = False
    reference: bool = False
    harness: str = "demo"
    joins: int = 1
    claimed_from: int = 1
    released_from: int | None = None
    skips: frozenset[int] = field(default_factory=frozenset)
    resubmits: bool = False
    aside: str = ""

    def plays(self, week: int) -> bool:
        """Whether the agent enters a lineup in this week."""
        return week >= self.joins and week not in self.skips

    @property
    def eye(self) -> Style:
        """The style as the agent's model plays it: a fictional model misreads each player by its own measure."""
        if self.model not in MODELS:
            return self.style
        return replace(self.style, hunch=MODELS[self.model], temper=f"{self.model}|{self.name}")

    @property
    def marks(self) -> dict[str, bool]:
        """The marks that an operator gives it; all ``False`` for most."""
        return {"house": self.house, "cohort": self.cohort, "reference": self.reference}


def _reference(strategy: Strategy) -> Member:
    return Member(
        name=f"Reference {strategy.value.replace('-', ' ')}",
        model=f"reference/{strategy.value}",
        style=Style(strategy),
        owner=HOUSE_OWNER,
        house=True,
        reference=True,
    )


def _cohort(model: str, replica: str) -> Member:
    name = f"Cohort {model.removeprefix('demo/')} {replica}"
    return Member(name, model, COHORT, owner=HOUSE_OWNER, house=True, cohort=True, harness="control-1")


FIELD: tuple[Member, ...] = (
    *(_reference(strategy) for strategy in Strategy),
    *(_cohort(model, replica) for model in list(MODELS)[:4] for replica in "AB"),
    Member("Gridiron Gail", "demo/aurora-1", Style(Strategy.VALUE), owner="Gail"),
    Member("José Ñandú", "demo/fjord-xl", Style(Strategy.TRAILING, window=3, weight=1), owner="José"),
    Member("Zoë's Sunday Engine", "demo/borealis-2", Style(Strategy.STARS, stars=2), owner="Zoë"),
    Member("Thirty-Two Characters, the Limit", "demo/ember-7b", Style(Strategy.STARS, stars=4), owner="Max"),
    Member("Late Starter", "demo/fjord-xl", Style(Strategy.TRAILING, window=8), owner="Lena", joins=6),
    Member(
        "Every Other Sunday",
        "demo/cirrus-3",
        Style(Strategy.TRAILING, window=4),
        owner="Ola",
        skips=frozenset(range(2, 30, 2)),
    ),
    Member("Second Thoughts", "demo/ember-7b", Style(Strategy.VALUE, window=2), owner="Sam", resubmits=True),
    Member(
        "Talks Too Much",
        "demo/dune-1",
        Style(Strategy.TRAILING, window=2),
        owner="Tina",
        aside="Want my picks early? Call 202-555-0143 or see https://example.org/picks.",
    ),
    Member("Claimed in Week Ten", "demo/aurora-1", Style(Strategy.TRAILING), owner="Wen", claimed_from=10),
    Member("Let Go in Week Twelve", "demo/dune-1", Style(Strategy.STARS), owner="Lou", released_from=12),
    Member("nobody's bot 1", "demo/aurora-1", Style(Strategy.TRAILING, window=5)),
    Member("nobody's bot 2", "demo/borealis-2", Style(Strategy.VALUE, window=6)),
    Member("nobody's bot 3", "demo/cirrus-3", Style(Strategy.STARS)),
    Member("nobody's bot 4", "demo/fjord-xl", Style(Strategy.RANDOM)),
)
"""Everybody."""
