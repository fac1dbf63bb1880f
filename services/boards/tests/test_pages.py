"""The pages: what they may load, what they escape, how they bear the worst input."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from html.parser import HTMLParser
from types import ModuleType
from typing import Any

import pytest

from boards import pages
from boards.plot import Scale, scale_over, weekly
from common import events as ev
from common.handles import handle
from testkit.fixtures import Start

Tell = Callable[..., Awaitable[Any]]

PAGES = ("/", "/contests", "/corrections", "/models", "/agents", "/method", "/rules")
VOID = {"meta", "link", "img", "br"}


class Balanced(HTMLParser):
    """Fails on a tag that is closed out of order or never."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.attributes = []

    def handle_starttag(self, tag, attrs):
        self.attributes += [name for name, _ in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += [name for name, _ in attrs]

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


def checked(answer):
    parser = Balanced()
    parser.feed(answer.text)
    assert parser.open == []
    assert "style" not in parser.attributes, "the policy forbids inline style"
    assert not [name for name in parser.attributes if name.startswith("on")]
    return answer.text


async def test_pages_come_with_a_strict_policy_and_name_nothing_from_elsewhere(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agent = script.Agent("alice", "m")
    async with start("boards") as service:
        await tell(service, [*agent.told(), *script.Week(1).told([agent])])
        for path in (*PAGES, "/contests/2017-W01", "/corrections/2017-W01/1", "/agents/alice", "/models/m"):
            answer = await service.client.get(path)
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            page = checked(answer)
            assert re.findall(r'(?:src|href)="(?:https?:)?//', page) == []
            assert '<html lang="en">' in page
            assert page.count("<h1") == 1
            head = await service.client.head(path)
            assert (head.status_code, head.headers["content-type"]) == (answer.status_code, "text/html; charset=utf-8")
        for name in ("style.css", "countdown.js", "mark.svg"):
            assert (await service.client.get(f"/static/{name}")).status_code == 200


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "نص من اليمين",
    "a/b?c#d",
    "W" * 32,
    "{{ 7 * 7 }}",
]


async def test_the_worst_names_and_words_are_shown_as_the_text_they_are(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agents = [script.Agent(name, f"vendor/{name}") for name in HOSTILE]
    week = script.Week(1)
    async with start("boards") as service:
        await tell(service, [pair for agent in agents for pair in agent.told()])
        for number in (1, 2):
            await tell(service, script.Week(number).told(agents))
        for path in ("/", "/models", "/agents", f"/contests/{week.contest}"):
            page = checked(await service.client.get(path))
            assert "<script>alert" not in page
            assert "<img src=x" not in page
            assert "{{ 7 * 7 }}" in page or path == "/"
        board = (await service.client.get("/agents")).text
        for agent in agents:
            link = re.search(rf'href="(/agents/[^"]+)" title="agent:{re.escape(_escaped(agent.name))}"', board)
            assert link is not None, agent.name
            assert (await service.client.get(link.group(1))).status_code == 200, agent.name
            assert (await service.client.get("/api/v1" + link.group(1))).json()["agent"]["name"] == agent.name
        models = (await service.client.get("/models")).text
        for agent in agents:
            link = re.search(rf'href="(/models/[^"]+)" title="model:{re.escape(_escaped(agent.model))}"', models)
            assert link is not None
            assert (await service.client.get(link.group(1))).status_code == 200, agent.model


def _escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&#34;")


async def test_a_pool_of_five_hundred_players_and_a_contest_without_entries_have_pages(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    week, large = script.Week(1), script.Week(2, players_a_position=100)
    async with start("boards") as service:
        await tell(service, [*week.told([]), (large.opened(), 1)])
        empty = checked(await service.client.get(f"/contests/{week.contest}"))
        assert "Nobody entered." in empty
        opened = await service.client.get(f"/contests/{large.contest}")
        assert checked(opened).count('<th scope="row"><bdi>') == 500
        assert len(opened.content) < 100_000
        for path in PAGES:
            checked(await service.client.get(path))
        results = (await service.client.get(f"/api/v1/contests/{week.contest}/results")).json()
        assert (results["state"], results["lineups"]) == ("final", [])


async def test_long_tables_come_in_pages_and_stay_small(start: Start, script: ModuleType, tell: Tell) -> None:
    agents = [script.Agent(f"agent-{number:03}", f"vendor/model-{number}") for number in range(120)]
    async with start("boards") as service:
        await tell(service, [pair for agent in agents for pair in agent.told()], batch=256)
        await tell(service, script.Week(1).told(agents), batch=256)
        await tell(service, script.Week(2).told(agents, words=False), batch=256)
        seen = set()
        for page in (1, 2, 3):
            for path in (f"/agents?page={page}", f"/models?page={page}", f"/contests/2017-W01?page={page}"):
                answer = await service.client.get(path)
                assert len(answer.content) < 100_000, path
                if path.startswith("/agents"):
                    seen |= set(re.findall(r'title="agent:([^"]+)"', checked(answer)))
        assert seen == {agent.name for agent in agents}
        assert "page 3 of 3" in (await service.client.get("/agents?page=99")).text
        assert (await service.client.get("/agents?page=0")).status_code == 422


async def test_an_agent_of_zero_settled_weeks_has_a_page_and_a_handle_leads_to_the_name_once_claimed(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agent, week = script.Agent("alice", "m", claimed=False), script.Week(1)
    neutral = handle(agent.id)
    async with start("boards") as service:
        await tell(service, [*agent.told(), (week.opened(), 1), (week.locked(1), 2), (week.lineup(agent), 1)])
        page = checked(await service.client.get(f"/agents/{neutral}"))
        assert "Nobody has claimed this agent" in page
        await tell(service, [(agent.state(ev.AgentClaimed, claimed=True), 2)])
        answer = await service.client.get(f"/agents/{neutral}")
        assert (answer.status_code, answer.headers["location"]) == (302, "/agents/alice")
        checked(await service.client.get("/agents/alice"))


async def test_an_error_is_a_page_for_a_browser_and_a_problem_document_for_a_program(start: Start) -> None:
    wrong = {
        "/contests/2031-W09": 404,
        "/agents/x": 404,
        "/models/x/y": 404,
        "/nowhere": 404,
        "/static/nothing.css": 404,
        "/models?metric=x": 422,
        "/agents?page=0": 422,
    }
    async with start("boards") as service:
        for path, status in wrong.items():
            page = await service.client.get(path, headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
            assert page.status_code == status, path
            assert page.headers["content-type"].startswith("text/html"), path
            assert "default-src 'none'" in page.headers["content-security-policy"], path
            checked(page)
            document = await service.client.get(path)
            assert document.status_code == status, path
            assert document.headers["content-type"] == "application/problem+json", path
            assert document.json()["title"] in page.text, path
            assert "`" not in page.text, path
            assert ('<a href="/contests">All contests</a>' in page.text) == path.startswith("/contests/"), path


async def test_the_api_answers_a_browser_with_problem_documents_too(start: Start) -> None:
    async with start("boards") as service:
        answer = await service.client.get("/api/v1/agents/nobody", headers={"Accept": "text/html"})
        assert answer.headers["content-type"] == "application/problem+json"


async def test_an_error_of_ours_is_a_page_with_a_reference_and_no_detail(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_):
        raise RuntimeError("a secret detail")

    monkeypatch.setattr("boards.views.contests", broken)
    async with start("boards") as service:
        answer = await service.client.get("/contests", headers={"Accept": "text/html"})
        assert answer.status_code == 500
        assert "Reference:" in checked(answer)
        assert "secret" not in answer.text


REPLAY = "This is a replay of a past season, played by simulated agents. It judges no model."
UNSEEN = "football that no model has seen"


@pytest.mark.parametrize("clock", ["replay", "system"])
async def test_a_replay_says_on_every_page_and_board_that_it_judges_no_model(
    start: Start, script: ModuleType, tell: Tell, clock: str
) -> None:
    agent = script.Agent("alice", "m")
    async with start("boards", clock=clock) as service:
        await tell(service, [*agent.told(), *script.Week(1).told([agent]), (script.Week(2).opened(), 1)])
        paths = (*PAGES, "/contests/2017-W01", "/contests/2017-W02", "/agents/alice", "/models/m", "/agents/nobody")
        for path in paths:
            page = checked(await service.client.get(path, headers={"Accept": "text/html"}))
            assert (page.count(REPLAY), page.count(UNSEEN)) == ((1, 0) if clock == "replay" else (0, 1)), path
        for path in ("boards/models", "boards/agents", "models/m", "agents/alice"):
            assert (await service.client.get(f"/api/v1/{path}")).json()["replay"] is (clock == "replay"), path


def _legends(page):
    """What the legends of a page explain, one set a legend."""
    found = re.findall(r'<ul class="legend".*?</ul>', page, re.DOTALL)
    return [set(re.findall(r'title="[^"]+">([^<]+)</span>', legend)) for legend in found]


@pytest.mark.rule("B5", "B8")
async def test_each_table_explains_the_marks_that_stand_in_it_and_no_others(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agents = [
        script.Agent("alice", "m", skill=10_100),
        script.Agent("bob", "m"),
        script.Agent("house", "n", marks=script.COHORT),
        script.Agent("greedy", "reference/price-greedy", marks=script.REFERENCE, skill=1_000),
    ]
    async with start("boards") as service:
        await tell(service, [pair for agent in agents for pair in agent.told()])
        await tell(service, script.Week(1).told(agents, words=False))
        for path in ("/models", "/agents", "/"):
            assert 'class="key"' not in (await service.client.get(path)).text, "nothing is drawn yet"
        await tell(service, script.Week(2).told(agents, words=False))
        for path in ("/models", "/agents", "/"):
            assert 'class="key"' in (await service.client.get(path)).text
            page = checked(await service.client.get(path))
            tables = re.findall(r'<div class="board.*?</div>', page, re.DOTALL)
            assert tables
            for table in tables:
                body = table[table.index("<tbody") : table.index("</tbody>")]
                marks = set(re.findall(r'<span class="mark [^>]*title="[^"]+">([^<]+)</span>', body))
                assert _legends(table) == ([marks] if marks else []), path
        contest = _legends(checked(await service.client.get("/contests/2017-W01")))
        assert contest == [{"HOUSE", "cohort", "reference"}]
        assert _legends(checked(await service.client.get("/agents/greedy")))[0] >= {"HOUSE", "reference"}
        assert "small sample" in _legends(checked(await service.client.get("/models/n")))[0]


@pytest.mark.rule("B8")
async def test_the_first_row_looks_like_a_winner_only_when_the_board_names_one(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    best, other = script.Agent("best", "strong", skill=15_000), script.Agent("other", "weak", skill=5_000)
    async with start("boards") as service:
        await tell(service, [*best.told(), *other.told()])
        for number in (1, 2, 3):
            await tell(service, script.Week(number).told([best, other], words=False))
        for path in ("/", "/models", "/agents"):
            page = (await service.client.get(path)).text
            assert 'class="winner"' not in page, path
            assert 'class="board won"' not in page, path
        await tell(service, script.Week(4).told([best, other], words=False))
        for path in ("/", "/models", "/agents"):
            page = (await service.client.get(path)).text
            row = re.search(r'<tr role="row" class="winner">.*?</tr>', page, re.DOTALL)
            assert row is not None, path
            assert ("best" if path == "/agents" else "strong") in row.group(), path
        assert "<h1><bdi>strong leads</bdi>.</h1>" in (await service.client.get("/")).text


@pytest.mark.rule("B8")
async def test_a_verdict_does_not_take_a_fixed_strategy_for_a_model(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    greedy = script.Agent("greedy", "reference/price-greedy", marks=script.REFERENCE, skill=11_000)
    close, far = script.Agent("close", "close"), script.Agent("far", "far", skill=2_000)
    async with start("boards") as service:
        await tell(service, [pair for agent in (greedy, close, far) for pair in agent.told()])

        async def verdict():
            return (await service.client.get("/api/v1/boards/models")).json()["verdict"]

        for number in (1, 2, 3, 4):
            await tell(service, script.Week(number).told([greedy, far], words=False))
        assert await verdict() == (
            "A fixed strategy leads: no other row's interval reaches that of reference/price-greedy."
        )
        assert "<h1><bdi>A fixed strategy leads</bdi>.</h1>" in (await service.client.get("/")).text
        for number in (5, 6):
            await tell(service, script.Week(number).told([greedy, close], words=False))
        assert await verdict() == (
            "No winner: a fixed strategy, reference/price-greedy, has the highest mean, "
            "but the interval of 1 of the 2 other rows overlaps its own."
        )


async def test_a_season_with_nothing_settled_leads_to_the_last_one_that_is(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agent = script.Agent("alice", "m")
    async with start("boards") as service:
        await tell(service, [*agent.told(), *script.Week(1).told([agent], words=False)])
        assert "is settled:" not in checked(await service.client.get("/"))
        await tell(service, [(script.Week(1, season=2020).opened(), 1)])
        page = checked(await service.client.get("/"))
        assert "Season 2020 · 0 settled weeks" in page
        for path in ("/models?season=2017", "/agents?season=2017"):
            assert "Season 2017 is settled" in page
            assert f'href="{path}"' in page
            assert "alice" in (await service.client.get("/agents?season=2017")).text
            assert (await service.client.get(path)).status_code == 200


@pytest.mark.rule("C3")
async def test_the_rules_page_tells_what_the_newest_contest_asks_of_teams_and_games(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    async with start("boards") as service:
        await tell(service, [(script.Week(1).opened(), 1)])
        assert "of one team" not in checked(await service.client.get("/rules"))
        await tell(service, [(script.Week(2, lineup_rules=ev.LineupRules(max_per_team=4)).opened(), 1)])
        page = checked(await service.client.get("/rules"))
        assert "At most <strong>4</strong> players of one team, its defence among them." in page
        assert "different games" not in page
        await tell(service, [(script.Week(3, lineup_rules=ev.LineupRules(min_games=2)).opened(), 1)])
        assert "at least <strong>2</strong> different games" in checked(await service.client.get("/rules"))


@pytest.mark.rule("S2", "B8")
async def test_a_settled_lineup_says_its_rank_among_all_possible_ones_in_words(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agent, week = script.Agent("alice", "m"), script.Week(1)
    async with start("boards") as service:
        await tell(service, [*agent.told(), *week.told([agent])[:-2]])
        assert "possible" not in checked(await service.client.get(f"/contests/{week.contest}"))
        await tell(service, [(event, 1) for event in week.results([agent])])
        page = checked(await service.client.get(f"/contests/{week.contest}"))
        behind = 25_001 - week.points(agent)
        assert f'Rank <span title="{behind * 10**11 + 1:,}">{pages.lineups(behind * 10**11 + 1)}</span> of the' in page
        assert '<span title="31,415,926,535,897,932">3.1 × 10¹⁶</span> lineups that this week’s pool allowed' in page
        assert f"better than {pages.better_than(week.points(agent) * 10**6 // 25_002)} of them" in page
        assert ("level with 1 other;" in page) == (week.points(agent) % 2 == 1)

        # A week without ranks says why.
        other = script.Week(2)
        *lineups, settled = other.results([agent])
        bare = [one.model_copy(update=dict.fromkeys(("rank", "tied", "percentile"))) for one in lineups]
        unranked = settled.model_copy(update={"feasible_lineups": None, "no_ranks": "prices have no common unit"})
        await tell(service, other.told([agent])[:-2] + [(one, 1) for one in (*bare, unranked)])
        page = checked(await service.client.get(f"/contests/{other.contest}"))
        assert "no rank among all possible ones: prices have no common unit." in page
        assert "better than" not in page


@pytest.mark.rule("S2")
@pytest.mark.parametrize(
    ("count", "text"),
    [
        (1, "1"),
        (999_999_999, "999,999,999"),
        (10**9, "1.0 × 10⁹"),
        (32_999 * 10**9, "3.2 × 10¹³"),
        (10**20, "1.0 × 10²⁰"),
    ],
)
def test_numbers_of_lineups_read_as_people_read_them(count: int, text: str) -> None:
    assert pages.lineups(count) == text


@pytest.mark.rule("S2")
@pytest.mark.parametrize(
    ("percentile", "text"),
    [
        (0, "0.0%"),
        (500_999, "50.0%"),
        (992_345, "99.2%"),
        (999_000, "99.9%"),
        (999_871, "99.9871%"),
        (999_999, "99.9999%"),
    ],
)
def test_no_lineup_reads_as_better_than_more_than_it_is(percentile: int, text: str) -> None:
    assert pages.better_than(percentile) == text


def test_ticks_are_round_and_inside_the_scale() -> None:
    scale = Scale(9_700.0, 14_400.0)
    assert [tick.value for tick in scale.ticks()] == [10_000, 11_000, 12_000, 13_000, 14_000]
    assert scale_over([5.0, 5.0]).low < 5.0 < scale_over([5.0, 5.0]).high
    assert scale_over([]) is None
    assert weekly([(None, 3), (5, None)], Scale(0, 10))[0] is None


@pytest.mark.rule("O3")
async def test_metrics_tell_how_many_weeks_wait_for_results(start: Start, script: ModuleType, tell: Tell) -> None:
    agents, week = [script.Agent("alice", "m"), script.Agent("bob", "m")], script.Week(1)
    async with start("boards") as service:
        for event in week.results(agents)[1:]:
            await service.publish(event)
        await service.settle()
        await _until(service, "mafl_boards_incomplete_weeks 1.0")
        await service.publish(week.results(agents)[0])
        await service.settle()
        await _until(service, "mafl_boards_incomplete_weeks 0.0")
        await _until(service, "mafl_boards_switched_total 1.0")


@pytest.mark.rule("O3")
async def test_metrics_tell_for_how_long_a_settled_week_has_not_been_shown(start: Start, script: ModuleType) -> None:
    agents, week = [script.Agent("alice", "m"), script.Agent("bob", "m")], script.Week(1)
    first, *rest = week.results(agents)
    async with start("boards", clock="replay") as service:
        await service.move_clock(week.locks_at + timedelta(days=2, hours=1))
        for event in (week.opened(), *rest):
            await service.publish(event)
        await service.settle()
        await _until(service, "mafl_boards_behind_seconds 3600.0")
        await service.publish(first)
        await service.settle()
        await _until(service, "mafl_boards_behind_seconds 0.0")


async def _until(service, line, patience=60.0):
    deadline = time.monotonic() + patience
    while line not in (await service.client.get("/metrics")).text:
        assert time.monotonic() < deadline, f"{line} did not come"
        await asyncio.sleep(0.05)


def _the(game: ev.Game, status: str) -> ev.Game:
    return game.model_copy(update={"status": status})


@pytest.mark.rule("C2", "C3")
@pytest.mark.parametrize(("status", "says"), [("cancelled", "cancelled"), ("moved", "moved to another day")])
async def test_a_game_that_left_is_marked_and_its_players_are_no_longer_in_the_pool_shown(
    start: Start, script: ModuleType, tell: Tell, status: str, says: str
) -> None:
    week = script.Week(1)
    first, second = week.games
    moved = ev.ContestRescheduled(contest=week.contest, locks_at=second.kickoff, games=(_the(first, status), second))
    async with start("boards") as service:
        await tell(service, [(moved, 2), (week.opened(), 1)])
        page = checked(await service.client.get(f"/contests/{week.contest}"))
        assert f"<s>{first.away}" in page
        assert says in page
        shown = set(re.findall(r"<bdi>([A-Z]+ Player \d)</bdi>", page))
        assert shown == {player.player_name for player in week.players if player.game_id == second.game_id}
        front = checked(await service.client.get("/"))
        assert f"<strong>{len(shown)} players</strong> 1 games" in front
        back = ev.ContestRescheduled(contest=week.contest, locks_at=week.locks_at, games=week.games)
        await tell(service, [(back, 3)])
        page = checked(await service.client.get(f"/contests/{week.contest}"))
        assert len(set(re.findall(r"<bdi>([A-Z]+ Player \d)</bdi>", page))) == len(week.players)
        assert "<s>" not in page


@pytest.mark.rule("C3", "S3")
async def test_the_rules_say_what_games_are_worth_that_are_not_played_as_planned_by_the_contests_own_policies(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    """And the contest's page what became of one after the lock; its players stay in the pool that was picked from."""
    week = script.Week(1)
    first, second = week.games
    policies = ev.Policies(abandoned="counted", resumed_late="counted")
    opened = week.opened().model_copy(update={"policies": policies})
    broken = first.model_copy(update={"became": "abandoned"})
    told = ev.ContestRescheduled(contest=week.contest, locks_at=week.locks_at, games=(broken, second))
    async with start("boards") as service:
        await tell(service, [(opened, 1), (told, 4)])
        page = checked(await service.client.get("/rules"))
        assert dict(
            re.findall(r"<tr><th scope=\"row\">([^<]+)</th><td>(zero for all|what is counted of it)</td>", page)
        ) == {
            "cancelled, so that nothing of it can be counted": "zero for all",
            "moved to a day that the contest does not cover": "zero for all",
            "begun, broken off and never finished": "what is counted of it",
            "begun, broken off and finished in the contest&#39;s week": "what is counted of it",
            "begun, broken off and finished after that week": "what is counted of it",
        }
        page = checked(await service.client.get(f"/contests/{week.contest}"))
        assert "<s>" not in page
        assert ">abandoned</span>" in page


@pytest.mark.rule("C8", "M1")
async def test_a_contest_that_was_called_off_says_so_with_the_reason_and_shows_nothing_else(
    start: Start, script: ModuleType, tell: Tell
) -> None:
    agent = script.Agent("alice", "m")
    reason = "Snow <b>& wind</b> have closed every stadium."
    async with start("boards", clock="replay") as service:
        played, off = script.Week(1), script.Week(2)
        await service.move_clock(off.locks_at - timedelta(days=2))
        cancelled = ev.ContestCancelled(
            contest=off.contest, cancelled_at=off.locks_at - timedelta(days=2), reason=reason
        )
        await tell(service, [(cancelled, 2), (off.opened(), 1)])
        assert (await service.client.get("/")).text.count("Nothing is settled yet.") == 1
        await tell(service, [*agent.told(), *played.told([agent])])
        for path in (f"/contests/{off.contest}", "/contests", "/"):
            page = checked(await service.client.get(path))
            assert "Snow &lt;b&gt;&amp; wind&lt;/b&gt; have closed every stadium." in page, path
            assert "state-cancelled" in page
            assert "countdown" not in page
        assert "Week 1, 2017" in (await service.client.get("/")).text
        for what in ("lineups", "results", "optimal"):
            answer = await service.client.get(f"/api/v1/contests/{off.contest}/{what}")
            assert (answer.status_code, answer.json()["code"]) == (409, "contest-cancelled")
            assert answer.json()["reason"] == reason
        # Its lock time has passed: the front is about what is played.
        await service.move_clock(off.locks_at + timedelta(days=1))
        assert "Snow" not in (await service.client.get("/")).text
        assert "Snow" in (await service.client.get("/contests")).text
