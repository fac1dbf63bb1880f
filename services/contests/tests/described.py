"""Whether answers are what an application's OpenAPI document says of them."""

import json
import re
from functools import cached_property
from typing import Any

import httpx
from fastapi import FastAPI
from jsonschema import Draft202012Validator


class Described:
    """Checks answers of one application. ``check`` is a response hook of an ``httpx.AsyncClient``."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._validators: dict[tuple[str, str, str, str], Draft202012Validator] = {}

    @cached_property
    def document(self) -> dict[str, Any]:
        return self._app.openapi()

    @cached_property
    def _paths(self) -> list[tuple[re.Pattern[str], str]]:
        """The paths as patterns; those without a parameter first, as the routes have it."""
        paths = sorted(self.document["paths"], key=lambda path: path.count("{"))
        return [(re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), path) for path in paths]

    async def check(self, response: httpx.Response) -> None:
        """Fail for an answer whose status, media type, members or values are not described."""
        path = next((path for found, path in self._paths if found.fullmatch(response.request.url.path)), None)
        method = response.request.method.lower()
        operation = self.document["paths"].get(path, {}).get(method)
        if operation is None or path is None:
            return
        described = operation["responses"]
        status = str(response.status_code) if str(response.status_code) in described else "default"
        assert response.status_code >= 400 or status != "default", f"{method} {path} answers {response.status_code}"
        await response.aread()
        if not response.content and "content" not in described[status]:
            return
        media = response.headers["content-type"].split(";")[0]
        assert media in described[status]["content"], f"{method} {path} {status} is {media}"
        if media.endswith("json"):
            self._validator(path, method, status, media).validate(json.loads(response.content))

    def _validator(self, path: str, method: str, status: str, media: str) -> Draft202012Validator:
        place = (path, method, status, media)
        if place not in self._validators:
            schema = self.document["paths"][path][method]["responses"][status]["content"][media]["schema"]
            self._validators[place] = Draft202012Validator(schema | {"components": self.document["components"]})
        return self._validators[place]
