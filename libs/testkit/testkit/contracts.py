"""Writes ``contracts/``, the public API's one document, ``docs/events.md`` and ``docs/rules.md`` from the code.

``./run contracts`` writes; the tests fail when something is stale. Schemas, AsyncAPI and OpenAPI follow the code;
the golden examples of events are only added to: an example that was once published must be readable for ever.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema

from common import events as ev
from common import topology
from common.settings import Settings
from testkit import public_api, rules
from testkit.examples import EXAMPLES

ROOT = Path(__file__).resolve().parents[3]
CONTRACTS = ROOT / "contracts"
PUBLIC_API = ROOT / "services" / "contests" / "contests" / "openapi.json"
"""Where contests serves it from."""
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def event_schema(event: type[ev.Event]) -> dict[str, Any]:
    """The JSON Schema of an event in its envelope."""
    _, whole = models_json_schema(
        [(ev.Envelope, "serialization"), (event, "serialization")], ref_template="#/$defs/{model}"
    )
    definitions = whole["$defs"]
    envelope = definitions.pop("Envelope")
    envelope["properties"]["type"] = {"const": event.subject()}
    envelope["properties"]["source"] = {"const": f"/mafl/{event.owner}"}
    envelope["properties"]["data"] = {"$ref": f"#/$defs/{event.__name__}"}
    envelope["description"] = event.__doc__
    return {"$schema": _DIALECT, **envelope, "title": event.subject(), "$defs": definitions}


def asyncapi(service: str) -> dict[str, Any]:
    """The AsyncAPI 3.0 document of a service: what it sends, and what it receives through which durable."""
    channels: dict[str, Any] = {}
    operations: dict[str, Any] = {}

    def channel(event: type[ev.Event]) -> dict[str, str]:
        channels[event.name] = {
            "address": event.subject(),
            "description": event.__doc__,
            "messages": {
                event.name: {
                    "name": event.name,
                    "contentType": "application/cloudevents+json",
                    "payload": {"$ref": f"../events/{event.subject()}.schema.json"},
                }
            },
        }
        return {"$ref": f"#/channels/{event.name}"}

    for event in ev.EVENTS:
        if event.owner == service:
            operations[f"send-{event.name}"] = {
                "action": "send",
                "channel": channel(event),
                "x-stream": event.stream,
            }
    for durable in topology.durables_of(service):
        for event in durable.events:
            operations[f"receive-{event.name}"] = {
                "action": "receive",
                "channel": channel(event),
                "x-stream": durable.stream,
                "x-durable": durable.service,
            }
    return {
        "asyncapi": "3.0.0",
        "info": {"title": f"MAFL {service}", "version": "1"},
        "channels": channels,
        "operations": operations,
    }


def openapi(service: str) -> dict[str, Any]:
    """The OpenAPI document of a service."""
    settings = Settings.model_validate(
        {
            "database_url": "postgresql+psycopg://nowhere",
            "nats_url": "nats://nowhere",
            "operator_token": "none",
            "environment": "embedded",
        }
    )
    app: FastAPI = import_module(f"{service}.main").app(settings)
    return app.openapi()


def events_page() -> str:
    """``docs/events.md``: every event, who owns it, who reads it, what it carries."""
    lines = [
        "# Events",
        "",
        "Written by `./run contracts` from `libs/common/common/events.py`; a test fails when it is stale.",
        "Each event travels in a CloudEvents 1.0 envelope; points are hundredths, shares millionths, times UTC.",
        "",
        "| event | subject | owner | stream | read by |",
        "|---|---|---|---|---|",
    ]
    for event in ev.EVENTS:
        readers = [durable.service for durable in topology.DURABLES if event in durable.events]
        lines.append(
            f"| [`{event.name}`](#{event.name.replace('.', '')}) | `{event.subject()}` | {event.owner} "
            f"| `{event.stream}` | {', '.join(readers) or 'nobody yet'} |"
        )
    for event in ev.EVENTS:
        lines += ["", f"## {event.name}", "", (event.__doc__ or "").strip().replace("\n    ", "\n"), ""]
        lines += ["| field | type | |", "|---|---|---|"]
        properties = event.model_json_schema(mode="serialization", ref_template="{model}")["properties"]
        for name, field in properties.items():
            lines.append(f"| `{name}` | {_type_of(field)} | {field.get('description', '')} |")
        lines += [
            "",
            f"Schema: [`contracts/events/{event.subject()}.schema.json`]"
            f"(../contracts/events/{event.subject()}.schema.json), with an example beside it.",
        ]
    return "\n".join(lines) + "\n"


def _type_of(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_type_of(choice) for choice in field["anyOf"])
    if "allOf" in field:
        return _type_of(field["allOf"][0])
    if "$ref" in field:
        return str(field["$ref"])
    if field.get("type") == "array":
        return f"list of {_type_of(field.get('items', {}))}"
    if field.get("type") == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"map to {_type_of(field['additionalProperties'])}"
    return str(field.get("format") or field.get("type") or field.get("const", "any"))


@cache
def files() -> dict[Path, str]:
    """Every generated file with its content; golden examples apart."""
    documents: dict[Path, Any] = {}
    for event in ev.EVENTS:
        documents[CONTRACTS / "events" / f"{event.subject()}.schema.json"] = event_schema(event)
    for service in topology.SERVICES:
        documents[CONTRACTS / "asyncapi" / f"{service}.json"] = asyncapi(service)
        documents[CONTRACTS / "openapi" / f"{service}.json"] = openapi(service)
    documents[PUBLIC_API] = public_api.merged(
        {service: documents[CONTRACTS / "openapi" / f"{service}.json"] for service in public_api.SERVICES}
    )
    texts = {path: json.dumps(document, indent=1, ensure_ascii=False) + "\n" for path, document in documents.items()}
    texts[ROOT / "docs" / "events.md"] = events_page()
    texts[ROOT / "docs" / "rules.md"] = rules.page()
    return texts


def example_path(event: type[ev.Event]) -> Path:
    """Where the golden example of an event is kept."""
    return CONTRACTS / "events" / f"{event.subject()}.example.json"


def main() -> None:
    """Write what is stale; golden examples only where there is none yet."""
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print("wrote", path.relative_to(ROOT))
    for envelope in EXAMPLES:
        path = example_path(ev.BY_SUBJECT[envelope.type])
        if not path.exists():
            path.write_text(json.dumps(envelope.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n")
            print("wrote", path.relative_to(ROOT))


if __name__ == "__main__":
    main()
