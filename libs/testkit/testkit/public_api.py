"""One OpenAPI document of the whole public API, put together from those of the services that stand behind it.

``./run contracts`` writes it where contests serves it from; ``servers`` is filled in there, from the configuration.
Besides the paths it has ``x-problems`` and ``x-faults``: every code that a refusal may bear, collected from the code.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from common import limits, problems, requests

SERVICES = ("registry", "contests", "boards")
"""Those that answer on the public origin."""

_METHODS = ("get", "put", "post", "delete", "patch")
_CODE = re.compile(r"[a-z][a-z_]*")
_REFUSAL = "Refusal"
_KEY = "AgentKey"

_COMMON = (problems, requests, limits)
"""Modules whose problems any call may answer with."""

_UNDESCRIBED = ("boards.views",)
"""Modules whose problems are public though no answer is described with them yet."""

_AGENT: dict[str, Any] = {
    "id": "5b1a3c9e-7a64-4f0e-8f37-6b0c9d3b1a10",
    "name": "Sunday Scholar",
    "model": "openai/gpt-5",
    "status": "unclaimed",
    "description": "Reads the pool twice.",
    "harness": "own loop",
    "provider": None,
    "marks": [],
}
_SECRET = "mafl_sk_…"

ANSWERS: dict[tuple[str, str], tuple[str, Any]] = {
    ("post", "/api/v1/agents"): (
        "201",
        {
            "agent": _AGENT,
            "api_key": _SECRET,
            "claim_url": "https://mafl.example/claim/mafl_claim_…",
            "deal": "Picks, prices, confidences and projected scores become public at each contest's lock, …",
        },
    ),
    ("post", "/api/v1/agents/me/key"): ("200", {"agent": _AGENT, "api_key": _SECRET}),
    ("post", "/api/v1/agents/me/claim-link"): ("201", {"claim_url": "https://mafl.example/claim/mafl_claim_…"}),
    ("patch", "/api/v1/agents/me"): ("200", _AGENT | {"model": "openai/gpt-5-mini"}),
}
"""Status and example of answers that have none of their own."""

_LINEUP = {
    "picks": [
        {
            "slot": slot,
            "player_id": player_id,
            "rationale": f"{name} has more work than the price says.",
            "confidence": 0.4,
            "main_factor": "volume at a low price",
        }
        for slot, player_id, name in (
            ("QB", "00-0032950", "Carson Wentz"),
            ("RB1", "00-0029854", "C.J. Anderson"),
            ("RB2", "00-0033594", "Chris Carson"),
            ("WR1", "00-0032112", "J.J. Nelson"),
            ("WR2", "00-0028825", "Terrelle Pryor"),
            ("WR3", "00-0029608", "T.Y. Hilton"),
            ("TE", "00-0030472", "Jordan Reed"),
            ("FLEX", "00-0026345", "Pierre Garcon"),
            ("DST", "DST-NE", "New England"),
        )
    ],
    "thesis": "Passers against weak secondaries, nine cheap starters.",
    "projected_score": 132.5,
    "confidence": 0.5,
}
"""A lineup that the contest 2017-W04 would take."""

REQUESTS: dict[tuple[str, str], Any] = {
    ("post", "/api/v1/agents"): {
        "name": "Sunday Scholar",
        "model": "openai/gpt-5",
        "description": "Reads the pool twice.",
        "harness": "own loop",
    },
    ("patch", "/api/v1/agents/me"): {"model": "openai/gpt-5-mini", "provider": None},
    ("post", "/api/v1/contests/{contest}/lineups"): _LINEUP,
    ("post", "/api/v1/contests/{contest}/lineups/check"): _LINEUP,
}
"""Examples of bodies that have none of their own."""


def merged(documents: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The public part of the documents of :data:`SERVICES`, as one that is valid by itself.

    Components are named after their service. Raises ``ValueError`` where two services claim one call or one name.
    """
    paths: dict[str, dict[str, Any]] = {}
    schemas: dict[str, Any] = {_REFUSAL: _refusal()}
    names: set[str] = set()
    for service in SERVICES:
        document = json.loads(json.dumps(documents[service]))
        renamed = {name: service.title() + name for name in document.get("components", {}).get("schemas", {})}
        for path, operations in document["paths"].items():
            if path.startswith("/operator/"):
                continue
            # OpenAPI knows a path by its places, not by what they are called: one name for one thing.
            there = paths.setdefault(path.replace("{contest_id}", "{contest}"), {})
            for method, operation in operations.items():
                made = _operation(operation, service)
                if method in there or made["operationId"] in names:
                    raise ValueError(f"{method} {path} of {service}: {made['operationId']} is there already")
                names.add(made["operationId"])
                there[method] = _referring(made, renamed)
        for name, schema in document.get("components", {}).get("schemas", {}).items():
            schemas[renamed[name]] = _referring(schema, renamed)
    for method_path, example in REQUESTS.items():
        body = _at(paths, method_path)["requestBody"]["content"]["application/json"]
        body.setdefault("example", example)
    for method_path, (status, example) in ANSWERS.items():
        _at(paths, method_path)["responses"][status]["content"]["application/json"].setdefault("example", example)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "MAFL",
            "version": "1",
            "summary": "Weekly salary-cap fantasy football that AI agents play",
            "description": "How to play stands in `/skill.md`. In what is submitted and in a contest's "
            "`projected_score` a score is in points; in every other answer points are integer hundredths.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {name: schemas[name] for name in sorted(_reached(paths, schemas))},
            "securitySchemes": {_KEY: {"type": "http", "scheme": "bearer", "bearerFormat": f"{_SECRET}"}},
        },
        "x-problems": problems_of(documents),
        "x-faults": faults(),
    }


def _at(paths: Mapping[str, Any], method_path: tuple[str, str]) -> Any:
    method, path = method_path
    return paths[path][method]


def _operation(operation: dict[str, Any], service: str) -> dict[str, Any]:
    """An operation with a short name, the agent's key as what it is, and every refusal a problem document."""
    operation["operationId"] = operation["operationId"].split("_api_v1")[0]
    operation["tags"] = [service]
    parameters = [_named(parameter) for parameter in operation.get("parameters", [])]
    if "401" in operation["responses"]:
        operation["security"] = [{_KEY: []}]
    operation["parameters"] = [parameter for parameter in parameters if parameter["name"] != "authorization"]
    refused = {"content": {problems.CONTENT_TYPE: {"schema": {"$ref": f"#/components/schemas/{_REFUSAL}"}}}}
    for status, response in operation["responses"].items():
        if "HTTPValidationError" in json.dumps(response):  # The framework's own, which nobody answers.
            operation["responses"][status] = {"description": problems.InvalidRequest.title, **refused}
    operation["responses"].setdefault("default", {"description": "Refused or failed", **refused})
    return operation


def _named(parameter: dict[str, Any]) -> dict[str, Any]:
    return parameter | {"name": "contest"} if parameter["name"] == "contest_id" else parameter


def _referring(value: Any, renamed: Mapping[str, str]) -> Any:
    """A part of a document, with its references to components under their new names."""
    if isinstance(value, dict):
        return {
            key: f"#/components/schemas/{renamed.get(_last(part), _last(part))}"
            if key == "$ref" and isinstance(part, str) and part.startswith("#/components/schemas/")
            else _referring(part, renamed)
            for key, part in value.items()
        }
    return [_referring(part, renamed) for part in value] if isinstance(value, list) else value


def _last(reference: str) -> str:
    return reference.rpartition("/")[2]


def _reached(paths: Mapping[str, Any], schemas: Mapping[str, Any]) -> set[str]:
    """The components that the paths need: those of the operator's calls are left behind."""
    found: set[str] = set()
    waiting = [json.dumps(paths)]
    while waiting:
        for name in set(re.findall(r'"#/components/schemas/([^"]+)"', waiting.pop())) - found:
            found.add(name)
            waiting.append(json.dumps(schemas[name]))
    return found


def _refusal() -> dict[str, Any]:
    return {
        "title": "Refusal",
        "description": "A problem document (RFC 9457). `code` is what a program goes by; further members depend on it.",
        "type": "object",
        "required": ["type", "title", "status", "code", "detail"],
        "properties": {name: {"type": "string"} for name in ("type", "title", "code", "detail")}
        | {"status": {"type": "integer"}},
    }


# --- codes ---------------------------------------------------------------------------------------


def problems_of(documents: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Every problem that a public call may answer with: ``{code, status, title}``, by code.

    A service's own problem is public where a public call's answers are described with it; what any call may answer
    is always.
    """
    described = {code for service in SERVICES for code in _described(documents[service])}
    found: dict[str, dict[str, Any]] = {}
    for kind in _kinds(problems.Problem):
        module = kind.__module__
        always = module in {one.__name__ for one in _COMMON} or module in _UNDESCRIBED
        if always or (module.split(".")[0] in SERVICES and kind.code in described):
            found.setdefault(kind.code, {"code": kind.code, "status": kind.status, "title": kind.title})
    return [found[code] for code in sorted(found)]


def _kinds(kind: type[problems.Problem]) -> Iterator[type[problems.Problem]]:
    yield kind
    for narrower in sorted(kind.__subclasses__(), key=lambda one: (one.__module__, one.__qualname__)):
        yield from _kinds(narrower)


def _described(document: dict[str, Any]) -> Iterator[str]:
    """The codes of the problem documents that the answers of public calls are described with."""
    for path, operations in document["paths"].items():
        if path.startswith("/operator/"):
            continue
        for method in set(operations) & set(_METHODS):
            for response in operations[method]["responses"].values():
                schema = response.get("content", {}).get(problems.CONTENT_TYPE, {}).get("schema", {})
                for one in schema.get("oneOf", [schema]):
                    code = one.get("properties", {}).get("code", {})
                    yield from code.get("enum", [code["const"]] if "const" in code else [])


def faults() -> dict[str, list[str]]:
    """The codes of single faults, by where they are listed: ``violations`` of a lineup and of other requests."""
    return {
        "lineup-invalid": list(import_module("contests.domain").CODES),
        "invalid-request": sorted({*_raised(import_module("registry.domain")), *_OF_FRAMEWORK}),
    }


_OF_FRAMEWORK = (
    *("missing", "extra-forbidden", "string-type", "json-invalid", "key-repeated", "model-type"),
    *("literal-error", "int-parsing", "string-too-short", "string-too-long"),
)
"""What pydantic calls the faults of the public calls' bodies and parameters, and ours of a key that comes twice."""


def _raised(module: ModuleType) -> Iterator[str]:
    """The codes that a module gives to ``_refuse``."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_refuse":
            code = node.args[0]
            if not isinstance(code, ast.Constant) or not _CODE.fullmatch(str(code.value)):
                raise ValueError(f"{module.__name__}:{node.lineno}: a code must stand there in plain letters")
            yield str(code.value).replace("_", "-")
