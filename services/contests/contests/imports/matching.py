"""Rows to a week: which week it is, which games there are, and which player each row means. Nothing is guessed."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from common.canonical import instant
from common.events import Game, PoolPlayer
from common.tables import Fault, Malformed
from contests import stadiums
from contests.domain import Ruleset, contest_id, lock_instant, weekday
from contests.imports import schedule as calendar
from contests.imports import teams
from contests.imports.listed import Listed
from contests.imports.players import Directory, normalised
from contests.imports.pool import FORMAT as POOL
from contests.imports.report import Difference, Duplicate, Note, Week, lines
from contests.imports.schedule import Schedule, Scheduled, WeekOf

T = TypeVar("T")

ASK = "give the schedule (--schedule)"
"""What is to be done where a list does not tell enough of its games."""

OWN_ID = "the list's own id"
"""By what a player is known where nothing certain tells who it is."""

_BEGUN = ("final", "in progress", "no time", "nothing")
"""What a list says of a game without saying that it will not be played."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What rows are matched to: the schedule and the directory of players, where there are any.

    ``days`` are the covered weekdays, US Eastern.
    """

    days: Sequence[str]
    schedule: Schedule | None = None
    directory: Directory | None = None


# --- the week -----------------------------------------------------------------------------------


def week_of(rows: Sequence[Listed], season: int | None, week: int | None, schedule: Schedule | None) -> WeekOf | None:
    """The season and week of a list that does not state them: that of most of its games.

    By the schedule where there is one that has the game, else by the calendar. None where no game tells. With
    ``season`` or ``week`` given, only votes for those count. Raises ``Malformed`` where the games are of several
    weeks and none has more than half of them, and where none is of the week that is given.
    """
    votes: Counter[WeekOf] = Counter()
    possible: set[WeekOf] = set()
    voters = 0
    for pair, of_pair in _grouped(rows, lambda row: row.pair).items():
        found = _weeks_of(pair, of_pair, schedule)
        voters += bool(found)
        votes.update(found)
        possible |= found
        if schedule is None:
            possible |= _may_be(of_pair)
    if season is not None and week is not None:
        if possible and (season, week) not in possible:
            raise _no_row(calendar.held(votes))
        return season, week
    if not votes:
        return None
    wanted = Counter({of: n for of, n in votes.items() if season in (None, of[0]) and week in (None, of[1])})
    if not wanted:
        raise _no_row(calendar.held(votes))
    found_week = calendar.majority(wanted, voters)
    if found_week is None:
        most = sorted(wanted.items(), key=lambda vote: (-vote[1], vote[0]))[:6]
        counts = ", ".join(f"{contest_id(*of)} {many}" for of, many in most)
        reason = f"no week has more than half of the {voters} games ({counts}); say which it is by season and week"
        raise Malformed([Fault(None, None, reason)])
    return found_week


def _no_row(held: str) -> Malformed:
    return Malformed([Fault(None, None, f"the file has no row of the week asked for; it holds {held}")])


def _weeks_of(pair: frozenset[str], rows: Sequence[Listed], schedule: Schedule | None) -> set[WeekOf]:
    """The weeks that a game may be of: one where a kickoff is listed."""
    kickoffs = sorted({row.kickoff for row in rows if row.kickoff})
    if schedule is not None and len(pair) == 2:
        seasons = {calendar.season_of(kickoff) for kickoff in kickoffs}
        played = [game for game in schedule.between(pair) if not seasons or game.season in seasons]
        same_ground = [game for game in played if any((row.away, row.home) == (game.away, game.home) for row in rows)]
        fitting = same_ground or played
        if fitting and kickoffs:
            far = [(abs((game.kickoff or kickoffs[0]) - kickoffs[0]), game.of) for game in fitting]
            return {min(far)[1]}
        if fitting:
            return {game.of for game in fitting}
    found = {calendar.calendar_week(kickoff) for kickoff in kickoffs}
    return {week for week in found if week is not None} if len(found) == 1 else set()


def _may_be(rows: Sequence[Listed]) -> set[WeekOf]:
    """By the calendar, the weeks before as well for games on a Tuesday or Wednesday: they may have moved there."""
    found: set[WeekOf] = set()
    for kickoff in {row.kickoff for row in rows if row.kickoff}:
        of = calendar.calendar_week(kickoff)
        season = calendar.season_of(kickoff)
        weeks = [of] if of else []
        weeks += [(season, number) for number in range(1, calendar.last_week(season) + 1)]
        found |= {week for week in weeks if calendar.belongs(kickoff, week)}
    return found


# --- the games ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _NoGame:
    """Why a row has no game in the week."""

    column: str
    reason: str


@dataclass(slots=True)
class _Games:
    """Finds the game of each row of one week."""

    week: WeekOf
    schedule: Schedule | None
    trusted: bool
    """Whether the list itself says of each game that it is of this week."""
    differences: list[Difference] = field(default_factory=list)

    def of(self, rows: Sequence[Listed]) -> dict[int, Game | _NoGame]:
        """Line to game, or why there is none."""
        found: dict[int, Game | _NoGame] = {}
        crowded = set() if self.trusted or self.schedule else self._crowded(rows)
        for pair, of_pair in _grouped(rows, lambda row: (row.pair, row.game_id if self.trusted else "")).items():
            game = self._game(pair[0], of_pair)
            for row in of_pair:
                if len(pair[0]) == 2 and row.team not in pair[0]:
                    what = f"{self._name(row.team)} is no side of {self._listed(row)}"
                    found[row.line] = _NoGame("team", what)
                elif crowded & pair[0]:
                    both = ", ".join(sorted(self._name(team) for team in crowded & pair[0]))
                    found[row.line] = _NoGame("game", f"{both} is listed in two games of one week; {ASK}")
                else:
                    found[row.line] = game
        return found

    def _crowded(self, rows: Sequence[Listed]) -> set[str]:
        pairs = {row.pair for row in rows if len(row.pair) == 2}
        counts = Counter(team for pair in pairs for team in pair)
        return {team for team, many in counts.items() if many > 1}

    def _game(self, pair: frozenset[str], rows: Sequence[Listed]) -> Game | _NoGame:
        if self.schedule is not None:
            return self._scheduled(self.schedule, pair, rows)
        first = rows[0]
        if len(pair) < 2:
            if self.trusted:
                return _NoGame("game_id", f"no game for {first.team} in this week")
            said = f"the list says {first.state!r} and names no game" if first.state else "the list names no game"
            return _NoGame("game", f"{said} of {self._name(first.team)}; {ASK}")
        grounds = {(row.away, row.home) for row in rows if row.home}
        if len(grounds) != 1:
            what = "who is at home is not said" if not grounds else "rows of this game differ about who is at home"
            return _NoGame("game", f"{what}; {ASK}")
        kickoffs = sorted({row.kickoff for row in rows if row.kickoff})
        if len(kickoffs) != 1:
            return _NoGame("kickoff", self._no_kickoff(rows, kickoffs))
        if not self.trusted and not calendar.belongs(kickoffs[0], self.week):
            by_then = calendar.calendar_week(kickoffs[0])
            where = f"in {contest_id(*by_then)}" if by_then else "outside the regular season"
            return _NoGame("kickoff", f"{self._listed(first)} is listed for {_day(kickoffs[0])}, {where}")
        ((away, home),) = grounds
        game_id = next((row.game_id for row in rows if row.game_id), "") or calendar.game_id(self.week, away, home)
        return self._made(game_id, away, home, kickoffs[0], neutral=any(row.neutral for row in rows))

    def _no_kickoff(self, rows: Sequence[Listed], kickoffs: Sequence[datetime]) -> str:
        named = self._listed(rows[0])
        if kickoffs:
            times = " and ".join(f"{instant(time)}" for time in kickoffs[:4])
            return f"the list has {named} at {times}; {ASK}"
        state = next((row.state for row in rows if row.state), "")
        if state:
            return f"the list says {state!r} of {named}, and no kickoff; {ASK}"
        return f"the list has no kickoff for {named}; {ASK}"

    def _scheduled(self, schedule: Schedule, pair: frozenset[str], rows: Sequence[Listed]) -> Game | _NoGame:
        first = rows[0]
        keys = frozenset(teams.franchise(team) or team for team in pair)
        game = next((game for team in sorted(keys) if (game := schedule.of_team(self.week, team))), None)
        contest = contest_id(*self.week)
        if game is None or not keys <= game.pair:
            if len(keys) < 2:
                return _NoGame("game", f"the schedule has no game of {self._name(first.team)} in {contest}")
            others = schedule.between(keys, self.week[0])
            if not others:
                return _NoGame("game", f"the schedule has no game {self._listed(first)} in {self.week[0]}")
            when = " and ".join(f"{contest_id(*o.of)}{f' ({_day(o.kickoff)})' if o.kickoff else ''}" for o in others)
            return _NoGame("game", f"the schedule has {self._listed(first)} in {when}, not in {contest}")
        if game.kickoff is None:
            return _NoGame("kickoff", f"the schedule has no kickoff for {game.game_id} yet")
        self._compare(game, game.kickoff, rows)
        game_id = next((row.game_id for row in rows if row.game_id), "") or game.game_id
        return self._made(game_id, game.away, game.home, game.kickoff, neutral=game.neutral)

    def _compare(self, game: Scheduled, kickoff: datetime, rows: Sequence[Listed]) -> None:
        """Note where the list says other of a game than the schedule."""

        def note(what: str, listed: Callable[[Listed], str | None], scheduled: str) -> None:
            for said, those in sorted(_grouped(rows, lambda row: listed(row) or "").items()):
                if said and said != scheduled:
                    self.differences.append(Difference(game.game_id, what, said, scheduled, len(those)))

        at = f"{self._name(game.away)}@{self._name(game.home)}"
        note("kickoff", lambda row: instant(row.kickoff) if row.kickoff else None, instant(kickoff))
        note("home", lambda row: f"{self._name(row.away)}@{self._name(row.home)}" if row.home else None, at)
        note("state", lambda row: row.state if row.state.casefold() not in _BEGUN else None, instant(kickoff))

    def _made(self, game_id: str, away: str, home: str, kickoff: datetime, *, neutral: bool) -> Game:
        zone = stadiums.zone(self._name(home), neutral=neutral)
        return Game(game_id=game_id, away=self._name(away), home=self._name(home), kickoff=kickoff, kickoff_zone=zone)

    def _listed(self, row: Listed) -> str:
        if row.home:
            return f"{self._name(row.away)}@{self._name(row.home)}"
        return f"{self._name(row.team)} against {self._name(row.opponent)}"

    def _name(self, team: str) -> str:
        return teams.abbreviation(team, self.week[0])


def _day(kickoff: datetime) -> str:
    return f"{weekday(kickoff)} {instant(kickoff)}"


# --- the players --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A row that may be offered: with its game, its price and the player it means."""

    row: Listed
    game: Game
    price: int
    player_id: str
    certain: bool
    how: str
    team: str

    @property
    def line(self) -> int:
        return self.row.line


def build(rows: Sequence[Listed], format: str, of: WeekOf | None, rules: Ruleset, sources: Sources) -> Week:
    """The week that rows make. ``of`` is None where nothing tells the season and week: then no row is offered."""
    week = Week(
        contest_id(*of) if of else "",
        of[0] if of else 0,
        of[1] if of else 0,
        format,
        rules.ruleset,
        rows=len(rows),
    )
    readable = [row for row in rows if row.refused is None]
    week.refused += [Note(row.line, row.refused[0] or None, row.name, row.refused[1]) for row in rows if row.refused]
    if of is None:
        week.unmatched += [Note(row.line, "game", row.name, _untold(row)) for row in readable]
    else:
        _play(week, readable, of, rules, sources)
    for notes in (week.unmatched, week.refused):
        notes.sort(key=lambda note: note.line)
    week.merged.sort()
    week.duplicates.sort(key=lambda duplicate: duplicate.lines)
    return week


def _untold(row: Listed) -> str:
    if row.state:
        return f"the list says {row.state!r} and no kickoff; {ASK}"
    return f"the list has no kickoffs; {ASK}"


def _play(week: Week, rows: Sequence[Listed], of: WeekOf, rules: Ruleset, sources: Sources) -> None:
    finder = _Games(of, sources.schedule, trusted=week.format == POOL)
    by_line = finder.of(rows)
    week.differences += sorted(finder.differences, key=lambda d: (d.game_id, d.what, d.listed))
    games = {game.game_id: game for game in by_line.values() if isinstance(game, Game)}
    week.rows_of.update(game.game_id for game in by_line.values() if isinstance(game, Game))
    ordered = sorted(games.values(), key=lambda game: (game.kickoff, game.game_id))
    week.games = tuple(game for game in ordered if weekday(game.kickoff) in sources.days)
    week.outside = tuple(game for game in ordered if weekday(game.kickoff) not in sources.days)
    week.locks_at = lock_instant(week.games) if week.games else None
    if sources.schedule is not None:
        week.not_listed = _not_listed(sources.schedule, of, ordered, sources.days)
    directory = sources.directory
    # A pool brings its ids with it; it is looked up where that is asked for.
    if directory is not None and not (directory.strict or (week.format != POOL and directory.speaks_of(of[0]))):
        directory = None
    candidates: list[_Candidate] = []
    for row in rows:
        game = by_line[row.line]
        if isinstance(game, _NoGame):
            week.unmatched.append(Note(row.line, game.column, row.name, game.reason))
        elif weekday(game.kickoff) not in sources.days:
            reason = f"outside the covered days: {game.game_id} is on a {weekday(game.kickoff)}"
            week.refused.append(Note(row.line, "kickoff", row.name, reason))
        elif row.price is None:
            week.refused.append(Note(row.line, "price", row.name, row.price_fault))
        elif not rules.positions.issuperset(row.positions):
            reason = f"no slot of the roster takes {'/'.join(row.positions)}"
            week.refused.append(Note(row.line, "position", row.name, reason))
        else:
            found = _identified(row, game, row.price, of, directory)
            if isinstance(found, Note):
                week.unmatched.append(found)
            else:
                candidates.append(found)
    _offer(week, candidates, rules)


def _not_listed(schedule: Schedule, of: WeekOf, games: Sequence[Game], days: Sequence[str]) -> tuple[Game, ...]:
    """Games of the week's covered days of which the list has no row: their players cannot be picked."""
    here = {frozenset((game.away, game.home)) for game in games}
    finder = _Games(of, schedule, trusted=False)
    missing = [
        finder._made(game.game_id, game.away, game.home, game.kickoff, neutral=game.neutral)
        for game in schedule.in_week(of)
        if game.kickoff is not None and weekday(game.kickoff) in days
    ]
    return tuple(
        sorted(
            (game for game in missing if frozenset((game.away, game.home)) not in here),
            key=lambda game: (game.kickoff, game.game_id),
        )
    )


def _identified(row: Listed, game: Game, price: int, of: WeekOf, directory: Directory | None) -> _Candidate | Note:
    team = teams.abbreviation(row.team, of[0])
    if row.player_id:
        return _Candidate(row, game, price, row.player_id, True, "player_id", team)
    if row.positions == ("DST",):
        return _Candidate(row, game, price, f"DST-{team}", True, "team defence", team)
    if directory is None:
        return _Candidate(row, game, price, row.source_id, False, OWN_ID, team)
    found = directory.find(row.name, teams.franchise(row.team) or row.team, row.positions, of)
    if found.player_id is None:
        reason = f"{found.reason}; a line in the players file would tell who it is"
        return Note(row.line, "name", row.name, reason, found.nearest)
    return _Candidate(row, game, price, found.player_id, True, found.how, team)


def _offer(week: Week, candidates: Sequence[_Candidate], rules: Ruleset) -> None:
    """Make players of the rows: one each, save where two rows are, or may be, one player."""
    players: list[PoolPlayer] = []
    order = {position: place for place, position in enumerate(p for slot in rules.roster for p in slot.positions)}
    doubtful = _doubtful(week, candidates)
    for same in _grouped(candidates, lambda candidate: candidate.player_id).values():
        rows = sorted(same, key=lambda c: (-len(c.row.positions), [order[p] for p in c.row.positions], c.line))
        first = rows[0]
        if any(row.line in doubtful for row in rows):
            for row in rows:
                others = doubtful.get(row.line) or next(doubtful[r.line] for r in rows if r.line in doubtful)
                reason = f"not certain whether {lines([line for line in others if line != row.line])} "
                reason += "lists the same player or another of that name and team"
                week.refused.append(Note(row.line, "name", row.row.name, reason))
            continue
        differing = next((row for row in rows if _identity(row) != _identity(first)), None)
        if differing is not None:
            what = _difference(first, differing)
            for row in rows:
                other = differing if row is first else first
                reason = f"{row.player_id} is listed again in line {other.line} with another {what}"
                week.refused.append(Note(row.line, "player_id", row.row.name, reason))
            of_player = tuple(sorted(row.line for row in rows))
            week.duplicates.append(Duplicate(first.row.name, of_player, f"one player, another {what}: refused"))
            continue
        players.append(_player(week, rows, order))
        if first.certain and first.row.positions != ("DST",):
            week.certain.add(first.player_id)
    week.players = tuple(sorted(players, key=lambda player: player.player_id))
    _namesakes(week, candidates)


def _player(week: Week, rows: Sequence[_Candidate], order: dict[str, int]) -> PoolPlayer:
    """The one player of rows that agree about everything but the position."""
    first = rows[0]
    found = dict.fromkeys(first.row.positions)
    week.offered += 1
    week.matched[first.how] += 1
    for row in rows[1:]:
        if set(row.row.positions) <= found.keys():
            reason = f"listed twice: the same as line {first.line}"
            week.refused.append(Note(row.line, "player_id", row.row.name, reason))
        else:
            found |= dict.fromkeys(row.row.positions)
            week.merged.append((row.line, first.line))
            week.offered += 1
            week.matched[row.how] += 1
    positions = tuple(found) if len(rows) == 1 else tuple(sorted(found, key=order.__getitem__))
    if len(rows) > 1:
        outcome = f"one player at {'/'.join(positions)}"
        week.duplicates.append(Duplicate(first.row.name, tuple(sorted(row.line for row in rows)), outcome))
    return PoolPlayer(
        player_id=first.player_id,
        player_name=first.row.name,
        positions=positions,
        team=first.team,
        opponent=first.game.home if first.team == first.game.away else first.game.away,
        game_id=first.game.game_id,
        price=first.price,
    )


def _doubtful(week: Week, candidates: Sequence[_Candidate]) -> dict[int, list[int]]:
    """Lines of rows that share name and team under different ids, where not every id is certain."""
    doubtful: dict[int, list[int]] = {}
    for rows in _grouped(candidates, lambda row: (normalised(row.row.name), row.team)).values():
        if len({row.player_id for row in rows}) > 1 and not all(row.certain for row in rows):
            of_name = sorted(row.line for row in rows)
            doubtful |= dict.fromkeys(of_name, of_name)
            outcome = "one name and team, perhaps two players: refused; player ids would tell"
            week.duplicates.append(Duplicate(rows[0].row.name, tuple(of_name), outcome))
    return doubtful


def _namesakes(week: Week, candidates: Sequence[_Candidate]) -> None:
    """Note players of one name that teams or certain ids keep apart, for a person to look at."""
    offered = {player.player_id for player in week.players}
    for rows in _grouped(candidates, lambda row: normalised(row.row.name)).values():
        apart = {row.player_id for row in rows if row.player_id in offered}
        if len(apart) > 1:
            of_name = tuple(sorted(row.line for row in rows if row.player_id in apart))
            shown = ", ".join(sorted(f"{'/'.join(row.row.positions)} of {row.team}" for row in rows))
            week.duplicates.append(Duplicate(rows[0].row.name, of_name, f"{len(apart)} players: {shown}"))


def _identity(candidate: _Candidate) -> tuple[object, ...]:
    return (candidate.row.name, candidate.team, candidate.game, candidate.price)


def _difference(one: _Candidate, other: _Candidate) -> str:
    pairs = zip(_identity(one), _identity(other), strict=True)
    return next(what for what, (a, b) in zip(("name", "team", "game", "price"), pairs, strict=True) if a != b)


K = TypeVar("K", bound=Hashable)


def _grouped(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    groups: dict[K, list[T]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups
