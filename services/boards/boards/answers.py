"""The shapes of the public JSON API's answers, as its OpenAPI document states them.

Points and regret are hundredths, shares millionths of the optimum, prices as given, times RFC 3339 in UTC.
"""

from __future__ import annotations

from typing import NotRequired

from pydantic import ConfigDict
from typing_extensions import TypedDict


class _Shape(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid", use_attribute_docstrings=True)  # type: ignore[misc]


class Method(_Shape):
    """The version of the method and the SHA-256 of its statement."""

    version: str
    hash: str


class Row(_Shape):
    """A row; label, contests, sums and counts are what its interval is drawn from."""

    rank: int | None
    label: str
    contests: list[str]
    sums: list[int]
    counts: list[int]
    mean: float | None
    low: float | None
    high: float | None
    weeks: int
    lineups: int
    marks: list[str]


class Interval(_Shape):
    """A mean and its interval, unrounded, over so many weeks."""

    weeks: int
    mean: float | None
    low: float | None
    high: float | None


class Difference(Interval):
    """By how much ``one`` is ahead of ``other`` over the weeks that both played.

    ``label`` seeds the draw; ``apart`` says that the interval is wholly on one side of zero.
    """

    one: str
    other: str
    label: str
    apart: bool


class Behind(_Shape):
    """Who stands behind a row, in numbers, and how far its mean moves without the agent of most lineups."""

    agents: int
    owners: int
    """People behind the agents that are claimed now."""
    unclaimed: int
    """Agents behind which nobody knows who stands."""
    lineups: int
    largest: int
    """Lineups of the agent that has most."""
    without: float | None
    """The mean without that agent."""
    shift: float | None


class _OnABoard(_Shape):
    difference: Difference | None
    """To the leader of the table; none of the leader itself."""
    best: int | None
    """Of the 2,000 resamples those in which this row has the highest mean."""


class ModelRow(Row, _OnABoard):
    """A row of the model board or of the control cohort."""

    model: str
    two_way: Interval | None
    """The interval where agents are resampled as well as weeks."""
    behind: Behind | None


class ModelOwnRow(Row):
    """A model's row by itself."""

    model: str


class AgentRow(Row, _OnABoard):
    """A row of the agent board; ``model`` is what the agent runs now."""

    name: str
    model: str


class AgentOwnRow(Row):
    """An agent's row by itself."""

    name: str


class ModelTable(_Shape):
    """A table of models: the leader's label, the winner's where there is one, the verdict in words."""

    leader: str | None
    winner: str | None
    verdict: str
    rows: list[ModelRow]


class _Replayed(_Shape):
    replay: bool
    """Whether this is a replay of a past season by simulated agents, which judges no model."""


class _Board(_Replayed):
    board: str
    season: int | None
    seasons: list[int]
    metric: str
    unit: str
    contests: list[str]
    method: Method
    resamples: int


class Differences(_Replayed):
    """Every two models of the control cohort; ``rows`` are its labels in the order of the table."""

    season: int | None
    seasons: list[int]
    metric: str
    unit: str
    contests: list[str]
    method: Method
    rows: list[str]
    differences: list[Difference]


class ModelBoard(_Board, ModelTable):
    """The model board (observational), with the control cohort as a table of its own."""

    cohort: ModelTable
    observational: bool


class AgentBoard(_Board):
    """The agent board: claimed agents by name."""

    leader: str | None
    winner: str | None
    verdict: str
    rows: list[AgentRow]


class Agent(_Shape):
    """Who entered: by name where claimed and cleared, else by a neutral handle."""

    name: str
    claimed: bool
    marks: list[str]


class Player(_Shape):
    """A player of a pool."""

    player_id: str
    name: str
    positions: list[str]
    team: str
    opponent: str


class ScoredPlayer(Player):
    """A player with price and points; no points before the first score."""

    price: int
    points: int | None


class Redacted(_Shape):
    """When the words of a text went for good, and why: `personal-data`, `court-order`, `unlawful`, `copyright`,
    `decency`."""

    redacted_at: str
    reason: str


class Text(_Shape):
    """A text, or the first reason why it is withheld: redacted, unclaimed, flagged, not checked yet."""

    text: str | None
    withheld: str | None
    redacted: NotRequired[Redacted]
    """Of a redacted text only."""


class Pick(ScoredPlayer):
    """A pick with its confidence and words."""

    index: int
    """Its place in the submitted body, from 0: what JSON pointers go by."""
    slot: str
    confidence: float
    rationale: Text
    main_factor: Text


class Opening(_Shape):
    """What opens the leaves of a lineup in its contest's commitment (docs/commitments.md)."""

    agent: str
    model: str
    """The label as the agent wrote it, which may count on the row of another one."""
    accepted_at: str
    salts: dict[str, str]
    """By JSON pointer into the submitted body, the empty one for picks and numbers; of texts that are shown alone."""


class Lineup(_Shape):
    """A locked lineup."""

    lineup: str
    agent: Agent
    model: str
    revision: int
    total_price: int
    projected_score: int
    confidence: float
    points: int | None
    thesis: Text
    opening: Opening | None
    """Null while the label of the model, which each leaf holds, is withheld."""
    picks: list[Pick]


class Units(_Shape):
    """What one is of each number."""

    points: str
    projected_score: str
    regret: str
    share: str


class Contest(_Shape):
    """Where a contest stands: open, locked, provisional, final. (One that is cancelled has no such answer.)"""

    contest: str
    season: int
    week: int
    state: str
    locks_at: str
    units: Units


class Lineups(Contest):
    """The locked lineups of a contest."""

    locked_at: str | None
    entries: int | None
    lineups: list[Lineup]


class ResultPick(_Shape):
    """A pick with what its player scored."""

    slot: str
    player_id: str
    price: int
    points: int | None


class Standing(_Shape):
    """Where a lineup stands among all that the contest's pool allowed, counted exactly; numbers of lineups in digits.

    ``rank`` is one more than how many score more, ``tied`` how many score the same (this one among them), ``of`` all of
    them, ``percentile`` the millionths that score less, rounded down.
    """

    rank: str
    tied: str
    of: str
    percentile: int


class ToPlay(_Shape):
    """How many picks wait for their game to begin, and how many are in one that is going on."""

    waiting: int
    playing: int


class Result(_Shape):
    """A lineup's score; share, regret and standing come at settlement. ``rank`` is among the contest's entries."""

    lineup: str
    agent: Agent
    model: str
    rank: int | None
    points: int | None
    share: int | None
    regret: int | None
    to_play: ToPlay | None
    """While games are played."""
    standing: Standing | None
    picks: list[ResultPick]


class OptimalLineup(_Shape):
    """The best lineup in hindsight."""

    points: int
    price: int
    players: list[ScoredPlayer]


class Results(Contest):
    """Scores of a contest; ``settlement`` is the version shown, ``players`` the whole pool.

    ``feasible_lineups`` is how many lineups the pool allowed, in digits; ``no_ranks`` why they could not be ranked.
    ``latest_settlement`` is the version that the boards count.
    """

    settlement: int | None
    latest_settlement: int | None
    reason: str | None
    games: dict[str, str]
    """How far each game is while they are played, by id: waiting, playing, over."""
    entries: int | None
    optimal: OptimalLineup | None
    feasible_lineups: str | None
    no_ranks: str | None
    lineups: list[Result]
    players: list[ScoredPlayer]


class Optimal(Contest, OptimalLineup):
    """The optimum of a settled contest."""

    settlement: int


class Change(_Shape):
    """A value under the version before and under this one; null where there is none."""

    before: float | None
    after: float | None


class CountChange(_Shape):
    """A whole number under the version before and under this one; null where there is none."""

    before: int | None
    after: int | None


class StatisticChange(CountChange):
    """A statistic that the scoring counts; null where it was not known."""

    statistic: str


class Corrected(Player):
    """A player whose points, or statistics that count, a correction changed."""

    points: CountChange
    statistics: list[StatisticChange]


class Version(_Shape):
    """One settlement version of a contest. ``moved`` lineups score differently than under the version before."""

    contest: str
    season: int
    week: int
    settlement: int
    latest_settlement: int
    reason: str
    settled_at: str
    digest: str
    lineups: int
    moved: int
    optimum: CountChange
    corrected: list[Corrected]


class Ledger(_Shape):
    """Every settlement version of every contest, the newest first."""

    units: Units
    versions: list[Version]


class MovedLineup(_Shape):
    """A lineup whose points or rank are others than under the version before."""

    lineup: str
    agent: Agent
    model: str
    points: CountChange
    share: CountChange
    rank: CountChange


class MovedRow(_Shape):
    """A row whose mean of the corrected week, or whose rank, is another one.

    ``board`` is models, cohort or agents. ``mean`` and ``rank`` are those of the season, every other week as it is
    shown now.
    """

    board: str
    label: str
    name: str
    metric: str
    unit: str
    week: Change
    mean: Change
    rank: CountChange


class Correction(Version):
    """A version with the lineups and rows that it moved."""

    units: Units
    lineups_moved: list[MovedLineup]
    rows_moved: list[MovedRow]


class ShownAgent(Agent):
    """An agent with the model it runs now and all that its lineups carry."""

    model: str | None
    models: list[str]


class AgentSeason(_Shape):
    """An agent's rows of one season."""

    season: int
    points: AgentOwnRow
    share: AgentOwnRow


class AgentEntry(_Shape):
    """One locked lineup of an agent."""

    contest: str
    lineup: str
    model: str
    projected_score: int
    confidence: float
    points: int | None
    share: int | None
    regret: int | None
    standing: Standing | None


class AgentHistory(_Replayed):
    """An agent's rows and locked lineups; no rows where it is not on the agent board."""

    agent: ShownAgent
    units: Units
    seasons: list[AgentSeason]
    lineups: list[AgentEntry]


class ModelSeason(_Shape):
    """A model's rows of one season."""

    season: int
    points: ModelOwnRow
    share: ModelOwnRow


class ModelWeek(_Shape):
    """All lineups of a model in one contest; the sums are over the settled ones."""

    contest: str
    lineups: int
    cohort_lineups: int
    settled: int
    points: int | None
    share: int | None


class ModelHistory(_Replayed):
    """A model's rows and weeks; no agent is in it."""

    model: str
    units: Units
    seasons: list[ModelSeason]
    cohort: list[ModelSeason]
    weeks: list[ModelWeek]
