"""The HTTP client of the operator's API: ``OperatorClient`` runs a season."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx

from mafl import models
from mafl.client import PublicClient, Retry, part

AUDITED = ("registry", "contests", "moderation", "settlement", "boards")
"""The services that keep a list of operators' acts."""


class OperatorClient(PublicClient):
    """The operator's calls. ``url`` is the operator origin, which the public cannot reach."""

    def __init__(
        self, url: str, *, token: str, retry: Retry | None = None, timeout: float = 60.0, connections: int = 20
    ) -> None:
        super().__init__(url, token=token, retry=retry, timeout=timeout, connections=connections)

    async def operate(self, method: str, path: str, **options: Any) -> Any:
        """A call below ``/operator/api/v1``; its JSON."""
        return await self._json(method, f"/operator/api/v1{path}", **options)

    async def agents(self) -> list[dict[str, Any]]:
        """All agents in the order of registration, with names, marks and owners."""
        listed: list[dict[str, Any]] = (await self.operate("GET", "/agents"))["agents"]
        return listed

    async def claim(self, agent_id: str, owner: str) -> Any:
        """Claim an agent for an owner by the operator's word."""
        return await self.operate("POST", f"/agents/{part(agent_id)}/claim", body={"owner": owner})

    async def release(self, agent_id: str) -> Any:
        """Release an agent: its name and words are hidden again."""
        return await self.operate("POST", f"/agents/{part(agent_id)}/release")

    async def mark(self, agent_id: str, *, house: bool = False, cohort: bool = False, reference: bool = False) -> Any:
        """Set all marks of an agent; those not given are taken away."""
        marks = {"house": house, "cohort": cohort, "reference": reference}
        return await self.operate("PUT", f"/agents/{part(agent_id)}/marks", body=marks)

    async def model_labels(self, *, unknown: bool = False) -> list[dict[str, Any]]:
        """Every label of a model that agents have claimed, or those alone that nobody knows yet."""
        params = {"unknown": unknown or None}
        listed: list[dict[str, Any]] = (await self.operate("GET", "/models", params=params))["models"]
        return listed

    async def map_model(self, label: str, canonical: str) -> Any:
        """Let a label mean another model, for past results too. Returns it with all that it has meant."""
        return await self.operate("PUT", f"/models/{part(label)}", body={"canonical": canonical})

    async def audit(
        self, service: str = "registry", *, before: int | None = None, limit: int = 100
    ) -> list[dict[str, Any]]:
        """What operators did in one of :data:`AUDITED`, the newest first; ``before`` is a number of its acts."""
        path = "/audit" if service == "registry" else f"/audit/{part(service)}"
        params = {"before": before, "limit": limit}
        acts: list[dict[str, Any]] = (await self.operate("GET", path, params=params))["acts"]
        return acts

    async def all_acts(self, *, limit: int = 100) -> list[dict[str, Any]]:
        """The newest acts of operators in all services, the newest first, each with its ``service``."""
        acts = [{"service": service, **act} for service in AUDITED for act in await self.audit(service, limit=limit)]
        return sorted(acts, key=lambda act: datetime.fromisoformat(act["at"]), reverse=True)[:limit]

    async def import_contests(
        self,
        content: bytes,
        *,
        season: int | None = None,
        week: int | None = None,
        ruleset: str | None = None,
        schedule: bytes | None = None,
        players: Sequence[bytes] = (),
        dry_run: bool = False,
        force: bool = False,
    ) -> Any:
        """Import salaries (CSV or gzip): all weeks of the file, or one. All or nothing. Returns the report.

        ``schedule`` and ``players`` are files to match the list to. ``force`` changes a contest that lineups have come
        in to; without it ``MaflError`` (409 ``contest-exists``) says what that would break.
        """
        params = {
            "season": season,
            "week": week,
            "ruleset": ruleset,
            "dry_run": dry_run or None,
            "force": force or None,
        }
        beside = [("schedule", schedule)] if schedule is not None else []
        beside += [("players", file) for file in players]
        body, headers = self._upload([("file", content), *beside])
        return await self.operate("POST", "/contests/import", content=body, params=params, headers=headers)

    def _upload(self, files: Sequence[tuple[str, bytes]]) -> tuple[bytes, dict[str, str]]:
        """Body and headers that send files: one as it is, several as a form, encoded once for all retries."""
        if len(files) == 1:
            return files[0][1], {}
        form = httpx.Request("POST", self.url, files=[(name, (name, file)) for name, file in files])
        return form.read(), {"Content-Type": form.headers["Content-Type"]}

    async def operator_contests(self) -> Any:
        """All contests with their totals."""
        return await self.operate("GET", "/contests")

    async def open(self, contest: str) -> Any:
        """Let a contest take lineups."""
        return await self.operate("POST", f"/contests/{part(contest)}/open")

    async def lock(self, contest: str) -> Any:
        """Lock a contest whose lock time has come. Raises ``MaflError`` (409 ``not-yet``) before."""
        return await self.operate("POST", f"/contests/{part(contest)}/lock")

    async def move_game(self, contest: str, game_id: str, kickoff: datetime) -> Any:
        """Give a game another kickoff, and move the lock with it; to a day that is not covered it leaves.

        Raises ``MaflError``: 409 ``contest-locked``, ``contest-cancelled``, ``no-game-left``.
        """
        moved = {"game_id": game_id, "kickoff": kickoff.isoformat()}
        return await self.operate("POST", f"/contests/{part(contest)}/reschedule", body=moved)

    async def follow_schedule(self, content: bytes, *, dry_run: bool = False) -> Any:
        """Follow a schedule file (CSV or gzip) in every contest that is not locked: all or nothing. What changed.

        Raises ``MaflError``: 409 ``no-game-left``, 422 ``file-malformed``.
        """
        params = {"dry_run": dry_run or None}
        return await self.operate("POST", "/contests/reschedule", content=content, params=params)

    async def drop_game(self, contest: str, game_id: str, *, moved: bool = False) -> Any:
        """Take a game out of a contest that is not locked: it is cancelled, or moved. Raises as ``move_game``."""
        left = {"game_id": game_id, "status": "moved" if moved else "cancelled"}
        return await self.operate("POST", f"/contests/{part(contest)}/drop-game", body=left)

    async def game_became(self, contest: str, game_id: str, became: str, resumed_at: datetime | None = None) -> Any:
        """Say after the lock what became of a game that was not played as planned; ``played`` takes it back.

        Raises ``MaflError`` (409 ``contest-not-locked``, 404 ``game-unknown``). Returns the contest.
        """
        said = {"game_id": game_id, "became": became}
        if resumed_at is not None:
            said["resumed_at"] = resumed_at.isoformat()
        return await self.operate("POST", f"/contests/{part(contest)}/became", body=said)

    async def restore_game(self, contest: str, game_id: str, kickoff: datetime | None = None) -> Any:
        """Let a game that has left come back, at a new kickoff or the one it had. Raises as ``move_game``."""
        back = {"game_id": game_id, "kickoff": kickoff.isoformat() if kickoff else None}
        return await self.operate("POST", f"/contests/{part(contest)}/restore-game", body=back)

    async def cancel(self, contest: str, reason: str) -> Any:
        """Call a contest off before its lock, for a reason that everybody reads. Raises 409 ``contest-locked``."""
        return await self.operate("POST", f"/contests/{part(contest)}/cancel", body={"reason": reason})

    async def clock(self) -> datetime:
        """The time that MAFL goes by."""
        now: str = (await self.operate("GET", "/clock"))["now"]
        return datetime.fromisoformat(now).astimezone(UTC)

    async def move_clock(self, now: datetime) -> Any:
        """Move the replay clock; never backwards. A production stack refuses."""
        return await self.operate("PUT", "/clock", body={"now": now.isoformat()})

    async def import_statistics(
        self,
        *files: bytes,
        season: int | None = None,
        week: int | None = None,
        final: bool,
        games: Mapping[str, str] | None = None,
    ) -> Any:
        """Import statistics (CSV, gzip or Parquet), all of the files or one week, as provisional or as final ones.

        Several files are read together. ``games`` says how far some games are: ``waiting``, ``playing`` or ``over``.
        Returns the report.
        """
        told = [f"{game}:{state}" for game, state in (games or {}).items()]
        params = {"season": season, "week": week, "final": final, "game": told or None}
        body, headers = self._upload([("file", file) for file in files])
        return await self.operate("POST", "/statistics", content=body, params=params, headers=headers)

    async def settle(self, contest: str, *, reason: str | None = None, force: bool = False) -> models.Settled:
        """Settle a contest. Raises ``MaflError`` (409 ``lineups-missing``, ``statistics-missing``).

        ``force``, with a reason, settles though games of the contest have no statistic at all.
        """
        body: dict[str, object] = {"reason": reason} if reason else {}
        if force:
            body["force"] = True
        answer = await self.call("POST", f"/operator/api/v1/contests/{part(contest)}/settle", body=body)
        return models.Settled.model_validate_json(answer.content)

    async def settle_preview(self, contest: str) -> dict[str, Any]:
        """What settling a contest would do now, and what is missing; nothing is changed."""
        found: dict[str, Any] = await self.operate("GET", f"/contests/{part(contest)}/settle")
        return found

    async def digest(self) -> Any:
        """The digest of the boards: SHA-256 over their canonical JSON."""
        return await self.operate("GET", "/boards/digest")

    async def moderation_queue(self, *, limit: int = 100, only_open: bool = False) -> list[dict[str, Any]]:
        """Texts and names that are not cleared; those that owners ask to look at again come first.

        ``only_open`` leaves out what a person withheld and nobody asks about again.
        """
        params = {"limit": limit, "open": only_open or None}
        listed: list[dict[str, Any]] = (await self.operate("GET", "/moderation/queue", params=params))["items"]
        return listed

    async def moderation_backlog(self) -> dict[str, Any]:
        """What waits to be judged, and what is set aside because it could not be."""
        waiting: dict[str, Any] = await self.operate("GET", "/moderation/backlog")
        return waiting

    async def try_set_aside_again(self) -> int:
        """Have what could not be judged tried once more; how many texts and names."""
        wanted: int = (await self.operate("POST", "/moderation/set-aside/again"))["wanted"]
        return wanted

    async def judge(self, **judgement: Any) -> Any:
        """Clear or flag a text (``lineup_id``, ``pointer``), a name (``agent_id``) or a ``model``'s label by hand.

        ``version`` is that of the verdict that you saw; ``state`` is cleared or flagged; ``note`` says why and
        ``by`` who. Raises ``MaflError`` (409 ``judged-meanwhile``) where somebody judged it meanwhile.
        """
        return await self.operate("POST", "/moderation/judgements", body=judgement)

    async def redact(
        self,
        lineup_id: str,
        pointer: str,
        *,
        reason: str,
        note: str,
        by: str = "operator",
        revisions: Sequence[int] = (),
        dry_run: bool = False,
    ) -> Any:
        """Let the words of a text go for good, from every store, in all revisions of its lineup or in those named.

        It cannot be undone. Returns ``{dry_run, texts, redactions}``; the answer comes when moderation is rid of the
        words, and :meth:`redactions` tells when everything else is. Raises ``MaflError`` (404 ``not-found``).
        """
        order = {
            "lineup_id": lineup_id,
            "pointer": pointer,
            "reason": reason,
            "note": note,
            "by": by,
            "revisions": list(revisions),
            "dry_run": dry_run,
        }
        return await self.operate("POST", "/moderation/redactions", body=order)

    async def agents_by_id(self, agent_id: str) -> list[dict[str, Any]]:
        """The agent with this id, if there is one, in a list."""
        return [one for one in await self.agents() if one["id"] == agent_id]

    async def redact_agent(
        self, agent_id: str, *, reason: str, fields: Sequence[str] = ("name", "description"), by: str = "operator"
    ) -> dict[str, Any]:
        """Let an agent's name, its description or both go for good, from every store; the agent as it is then.

        It cannot be undone; :meth:`redactions` tells when every store is rid of them. Raises ``MaflError`` (404).
        """
        body = {"fields": list(fields), "reason": reason, "by": by}
        answer: dict[str, Any] = await self.operate("POST", f"/agents/{part(agent_id)}/redactions", body=body)
        return answer

    async def redactions(
        self, lineup_id: str | None = None, *, agent_id: str | None = None, limit: int = 100
    ) -> list[dict[str, Any]]:
        """What was redacted, the newest first, each with when which store said that it is rid of the words.

        With ``agent_id`` of an agent's own name and description alone.
        """
        params = {"lineup_id": lineup_id, "agent_id": agent_id, "limit": limit}
        listed: list[dict[str, Any]] = (await self.operate("GET", "/moderation/redactions", params=params))[
            "redactions"
        ]
        return listed

    async def rerun(self, **wanted: Any) -> dict[str, Any]:
        """Judge old texts again by the pipeline as it is now: a rerun that goes on in the background, as it stands.

        ``contests``, ``seasons`` or ``everything``, and ``older``, choose them; ``dry_run`` changes nothing; ``by``
        says who. Asked for again while it runs, it is the one that is under way.
        """
        answer: dict[str, Any] = await self.operate("POST", "/moderation/reruns", body=wanted)
        return answer

    async def rerun_state(self, rerun: str) -> dict[str, Any]:
        """A rerun and how far it is."""
        answer: dict[str, Any] = await self.operate("GET", f"/moderation/reruns/{part(rerun)}")
        return answer

    async def rerun_changes(
        self, rerun: str, *, after: int = 0, limit: int = 200, words: bool = False
    ) -> list[dict[str, Any]]:
        """What a rerun changed, or a dry run would have, behind a position; ``words`` with each text."""
        params = {"after": after, "limit": limit, "words": words or None}
        changes: list[dict[str, Any]] = (
            await self.operate("GET", f"/moderation/reruns/{part(rerun)}/changes", params=params)
        )["changes"]
        return changes

    async def stop_rerun(self, rerun: str, *, by: str = "operator") -> dict[str, Any]:
        """End a rerun where it stands; what it changed stays changed."""
        answer: dict[str, Any] = await self.operate("POST", f"/moderation/reruns/{part(rerun)}/stop", body={"by": by})
        return answer

    async def note_on_text(self, **note: Any) -> Any:
        """Note something of a text (``lineup_id``, ``pointer``), a name (``agent_id``) or a ``model``'s label."""
        return await self.operate("POST", "/moderation/notes", body=note)

    async def take_back(self, position: int, *, by: str) -> Any:
        """Let hold again what held before a judgement; ``position`` is the one that its history has.

        Raises ``MaflError`` (409 ``judged-meanwhile``) where anything was said of the text since.
        """
        return await self.operate("POST", f"/moderation/judgements/{position}/take-back", body={"by": by})

    async def moderation_history(
        self, *, lineup_id: str | None = None, agent_id: str | None = None, model: str | None = None
    ) -> Any:
        """A lineup's texts, an agent's name or a model's label, with all that people judged and noted of it."""
        path = f"/lineups/{part(lineup_id or '')}"
        if model is not None:
            path = f"/models/{part(model)}"
        elif agent_id is not None:
            path = f"/agents/{part(agent_id)}"
        return await self.operate("GET", f"/moderation{path}")
