"""Labels of models (A7), and the log of what operators do (A8)."""

import json
import re
from typing import Any

import anyio.to_thread
import pytest

from common import events as ev
from mafl.cli import run
from registry import catalogue, commands
from registry.store import MAPPINGS, MODELS, Store
from testkit.fixtures import OPERATOR_TOKEN, Start, Started
from testkit.serving import served


async def register(service: Started, name: str, model: str) -> dict[str, Any]:
    answer = await service.client.post("/api/v1/agents", json={"name": name, "model": model})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def listed(service: Started, query: str = "") -> dict[str, str | None]:
    models = (await service.operator.get(f"/operator/api/v1/models{query}")).json()["models"]
    return {model["label"]: model["canonical"] for model in models}


async def mapped(service: Started) -> list[tuple[str, str, str, int]]:
    await service.settle()
    return [
        (event.label, event.canonical, event.by, envelope.aggregateversion)
        for envelope, event in await service.envelopes(ev.ModelMapped)
    ]


@pytest.mark.rule("A7")
@pytest.mark.parametrize(
    ("label", "canonical"),
    [
        ("GPT-5", "openai/gpt-5"),
        ("gpt-5", "openai/gpt-5"),
        ("openai/gpt-5", "openai/gpt-5"),
        ("OpenAI/GPT 5", "openai/gpt-5"),
        ("openrouter/openai/gpt-5:free", "openai/gpt-5"),
        ("gpt-5-2025-08-07", "openai/gpt-5"),
        ("gpt-5-mini", "openai/gpt-5-mini"),
        ("claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4.5"),
        ("models/gemini-2.5-pro", "google/gemini-2.5-pro"),
        ("meta-llama/Llama-3.1-8B-Instruct", "meta/llama-3.1-8b"),
        ("qwen/qwen3-coder:free", "qwen/qwen3-coder"),
        ("google/gpt-5", None),
        ("gpt-5-turbo-ultra", None),
        ("my-own/gpt-5", None),
        ("a/b/gpt-5", None),
        ("/", None),
    ],
)
def test_the_spellings_of_one_model_are_one_row(label: str, canonical: str | None) -> None:
    found = catalogue.find(label)
    assert (found and found.canonical) == canonical


@pytest.mark.rule("A7")
def test_the_catalogue_is_sound() -> None:
    entries = catalogue.entries()
    assert len(entries) >= 60
    for entry in entries:
        assert re.fullmatch(r"[a-z0-9]+/[a-z0-9][a-z0-9.+-]*", entry.canonical), entry
        assert entry.family
        assert entry.version
        for name in (entry.name, entry.canonical, *entry.aliases, *(f"{entry.provider}/{a}" for a in entry.aliases)):
            assert catalogue.find(name) == entry, name
    assert len({entry.canonical for entry in entries}) == len(entries)


@pytest.mark.rule("A7")
async def test_a_known_label_is_told_once_and_an_unknown_one_is_kept_as_written_and_listed(start: Start) -> None:
    async with start("registry") as registry:
        await register(registry, "One", "GPT-5")
        await register(registry, "Two", "GPT-5")
        mine = await register(registry, "Three", "My GPT")
        assert await listed(registry) == {"GPT-5": "openai/gpt-5", "My GPT": None}
        assert await listed(registry, "?unknown=true") == {"My GPT": None}
        await registry.client.patch(
            "/api/v1/agents/me",
            json={"model": "openai/gpt-5"},
            headers={"Authorization": f"Bearer {mine['api_key']}"},
        )
        assert await mapped(registry) == [
            ("GPT-5", "openai/gpt-5", "catalogue", 1),
            ("openai/gpt-5", "openai/gpt-5", "catalogue", 1),
        ]
        event = (await registry.published(ev.ModelMapped))[0]
        assert (event.provider, event.family, event.model_version) == ("openai", "gpt-5", "5")
        agents = {agent.agent_name: agent.model for agent in await registry.published(ev.AgentRegistered)}
        assert agents["Three"] == "My GPT"


@pytest.mark.rule("A7")
async def test_an_operator_maps_a_label_with_its_history_and_can_undo_it(start: Start) -> None:
    async with start("registry") as registry:
        await register(registry, "One", "My GPT")
        await register(registry, "Two", "my/other")

        async def put(label: str, canonical: str) -> dict[str, Any]:
            answer = await registry.operator.put(f"/operator/api/v1/models/{label}", json={"canonical": canonical})
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.json()
            return found

        first = await put("My GPT", "gpt-5")
        assert first["model"]["canonical"] == "openai/gpt-5"
        assert await put("My GPT", "GPT-5") == first
        # A row is one step from a label, in whatever order things are said.
        await put("my%2Fother", "My GPT")
        undone = await put("My GPT", "My GPT")
        assert [one["canonical"] for one in undone["history"]] == ["openai/gpt-5", "My GPT"]
        assert (await listed(registry))["my/other"] == "openai/gpt-5"
        await put("my/other", "My GPT")
        await put("My GPT", "openai/o3")
        assert await listed(registry) == {"My GPT": "openai/o3", "my/other": "openai/o3"}
        assert await mapped(registry) == [
            ("My GPT", "openai/gpt-5", "operator", 1),
            ("my/other", "openai/gpt-5", "operator", 1),
            ("My GPT", "My GPT", "operator", 2),
            ("my/other", "My GPT", "operator", 2),
            ("My GPT", "openai/o3", "operator", 3),
            ("my/other", "openai/o3", "operator", 3),
        ]
        unknown = await registry.operator.put("/operator/api/v1/models/nobody", json={"canonical": "gpt-5"})
        assert (unknown.status_code, unknown.json()["code"]) == (404, "model-unknown")
        wrong = await registry.operator.put("/operator/api/v1/models/My GPT", json={"canonical": "דגם"})
        assert wrong.status_code == 422


@pytest.mark.rule("A7")
async def test_a_new_catalogue_is_applied_to_what_is_known_and_not_against_an_operator(start: Start) -> None:
    async with start("registry") as registry:
        for name, model in (("One", "gpt-5"), ("Two", "o3"), ("Three", "grok-4")):
            await register(registry, name, model)
        await registry.operator.put("/operator/api/v1/models/o3", json={"canonical": "openai/o3-pro"})
        async with registry.runtime.database.transaction() as connection:
            # As an older release left it: one label of another meaning, one that it did not know, one not seen at all.
            await connection.execute(MODELS.update().where(MODELS.c.label == "gpt-5").values(canonical="openai/gpt-4"))
            await connection.execute(MAPPINGS.delete().where(MAPPINGS.c.label == "grok-4"))
            await connection.execute(MODELS.delete().where(MODELS.c.label == "grok-4"))
        for _ in range(2):
            async with registry.runtime.database.transaction() as connection:
                await commands.apply_catalogue(Store(connection))
        assert await listed(registry) == {"gpt-5": "openai/gpt-5", "o3": "openai/o3-pro", "grok-4": "xai/grok-4"}
        assert [row for row in await mapped(registry) if row[0] == "gpt-5"] == [
            ("gpt-5", "openai/gpt-5", "catalogue", 1),
            ("gpt-5", "openai/gpt-5", "catalogue", 2),
        ]


@pytest.mark.rule("A7")
async def test_a_spelling_that_comes_after_an_operators_word_on_its_row_goes_where_the_row_went(start: Start) -> None:
    async with start("registry") as registry:
        await register(registry, "One", "openai/gpt-5")
        await register(registry, "Two", "GPT-5")
        answer = await registry.operator.put("/operator/api/v1/models/openai/gpt-5", json={"canonical": "openai/o3"})
        assert answer.status_code == 200, answer.text
        await register(registry, "Three", "openrouter/openai/gpt-5:free")
        everywhere = dict.fromkeys(("openai/gpt-5", "GPT-5", "openrouter/openai/gpt-5:free"), "openai/o3")
        assert await listed(registry) == everywhere
        told = await mapped(registry)
        assert told[-1] == ("openrouter/openai/gpt-5:free", "openai/o3", "catalogue", 1)
        # The same catalogue, read again at the next start, says nothing new.
        async with registry.runtime.database.transaction() as connection:
            await commands.apply_catalogue(Store(connection))
        assert await listed(registry) == everywhere
        assert await mapped(registry) == told


@pytest.mark.rule("A7")
async def test_a_new_catalogue_moves_a_row_with_all_that_stand_on_it(start: Start) -> None:
    async with start("registry") as registry:
        await register(registry, "One", "zeta")
        await register(registry, "Two", "gpt-5")
        async with registry.runtime.database.transaction() as connection:
            # As an older release left it: it did not know the label that an operator mapped another one to.
            await connection.execute(MODELS.update().where(MODELS.c.label == "gpt-5").values(canonical=None, by=None))
            await connection.execute(
                MODELS.update().where(MODELS.c.label == "zeta").values(canonical="gpt-5", by="operator", version=1)
            )
        for _ in range(2):
            async with registry.runtime.database.transaction() as connection:
                await commands.apply_catalogue(Store(connection))
        assert await listed(registry) == {"zeta": "openai/gpt-5", "gpt-5": "openai/gpt-5"}
        assert (await mapped(registry))[1:] == [
            ("gpt-5", "openai/gpt-5", "catalogue", 2),
            ("zeta", "openai/gpt-5", "operator", 2),
        ]


@pytest.mark.rule("A8")
async def test_every_act_of_an_operator_is_kept_with_what_was_before_and_after(start: Start) -> None:
    async with start("registry") as registry:
        agent = (await register(registry, "One", "My GPT"))["agent"]["id"]
        base = "/operator/api/v1"
        await registry.operator.put(f"{base}/agents/{agent}/marks", json={"cohort": True})
        await registry.operator.post(f"{base}/agents/{agent}/claim", json={"owner": "Ann"})
        refused = await registry.operator.post(f"{base}/agents/{agent}/claim", json={"owner": "Bob"})
        assert refused.status_code == 409
        await registry.operator.post(f"{base}/agents/{agent}/release")
        await registry.operator.put(f"{base}/models/My GPT", json={"canonical": "gpt-5"})
        acts = (await registry.operator.get(f"{base}/audit")).json()["acts"]
        assert [(act["what"], act["who"]) for act in acts] == [
            *(("map", "operator"), ("release", "operator"), ("claim", "operator"), ("mark", "operator"))
        ]
        assert [act["target"] for act in acts] == ["model/My GPT", *[f"agent/{agent}"] * 3]
        none = {"house": False, "cohort": False, "reference": False}
        marked = {"house": True, "cohort": True, "reference": False}
        assert (acts[3]["before"]["marks"], acts[3]["after"]["marks"]) == (none, marked)
        assert acts[2]["before"]["owner_id"] is None
        assert acts[2]["after"]["owner_id"] == acts[1]["before"]["owner_id"]
        assert acts[1]["after"]["owner_id"] is None
        assert acts[0]["after"] == {"canonical": "openai/gpt-5", "by": "operator", "version": 1}
        older = (await registry.operator.get(f"{base}/audit?limit=2&before={acts[1]['act']}")).json()["acts"]
        assert older == acts[2:]
        assert (await registry.client.get(f"{base}/audit")).status_code == 401


@pytest.mark.rule("A8")
async def test_no_agent_can_mark_itself(start: Start) -> None:
    async with start("registry") as registry:
        answer = await registry.client.post("/api/v1/agents", json={"name": "One", "model": "m", "house": True})
        assert answer.status_code == 422
        agent = await register(registry, "One", "m")
        headers = {"Authorization": f"Bearer {agent['api_key']}"}
        patched = await registry.client.patch("/api/v1/agents/me", json={"marks": ["house"]}, headers=headers)
        assert patched.status_code == 422
        path = f"/operator/api/v1/agents/{agent['agent']['id']}/marks"
        assert (await registry.client.put(path, json={"house": True}, headers=headers)).status_code == 401


@pytest.mark.rule("A7")
async def test_the_operators_command_lists_and_maps_labels(
    start: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with start("registry") as registry, served(registry.app) as url:
        monkeypatch.setenv("MAFL_OPERATOR_URL", url)
        monkeypatch.setenv("MAFL_OPERATOR_TOKEN", OPERATOR_TOKEN)
        await register(registry, "One", "my/own (model)")
        await register(registry, "Two", "GPT-5")

        async def mafl(*arguments: str) -> tuple[int, str]:
            capsys.readouterr()
            status = await anyio.to_thread.run_sync(run, ["models", *arguments])
            return status, capsys.readouterr().out

        status, out = await mafl("list", "--unknown", "--json")
        assert status == 0
        assert [model["label"] for model in json.loads(out)["models"]] == ["my/own (model)"]
        status, out = await mafl("map", "my/own (model)", "gpt-5")
        assert status == 0
        assert "openai/gpt-5" in out
        status, out = await mafl("list")
        assert "GPT-5" in out
        assert out.count("openai/gpt-5") == 2
        status, out = await mafl("map", "nobody's", "gpt-5", "--json")
        assert (status, json.loads(out)["code"]) == (1, "model-unknown")
