"""What moderation alone is told by its environment; every variable begins with ``MAFL_MODERATION_``.

How texts are judged, and an external model, where one is to be asked too; docs/moderation.md describes each variable.
"""

from __future__ import annotations

import os
import re
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

PREFIX = "MAFL_MODERATION_"
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_OURS = frozenset({"messages", "model", "n", "response_format", "stream", "stream_options", "tools", "functions"})
"""Fields of a chat request that no option may replace: the answer would not be the one that is demanded."""
OUR_PIPELINE = "moderation.detectors:load"


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class JudgingSettings(BaseSettings):
    """How texts are judged.

    Raises ``pydantic.ValidationError`` naming each variable that is wrong.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore")

    workers: int = Field(
        default_factory=cores, ge=1, le=256, description="processes that judge while there is a backlog; the processors"
    )
    worker_idle_seconds: float = Field(
        60, gt=0, le=86_400, description="seconds without a text after which a process that judges is ended"
    )
    worker_memory: int = Field(
        512, ge=64, le=65_536, description="MiB that a process that judges may take beyond what it starts with"
    )
    text_seconds: float = Field(
        3, ge=0.05, le=600, description="seconds for one text; after them its process is killed and replaced"
    )
    pipeline: str = Field(
        OUR_PIPELINE,
        pattern=r"^[\w.]+:\w+$",
        description="what builds the pipeline, as module:function, importable by the service",
    )


class Misconfigured(ValueError):
    """Variables that are missing or wrong, by name and without their values."""


class ExternalSettings(BaseSettings):
    """An external model and how much it is asked. With ``kind`` ``none``, as by default, nothing is contacted."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_parse_none_str="null", extra="ignore", hide_input_in_errors=True, frozen=True
    )

    kind: Literal["none", "moderations", "chat"] = Field(
        "none",
        description="`moderations`: OpenAI's moderation API or one of its shape; `chat`: a chat model that answers "
        "as OpenAI's does and judges by MAFL's own prompt; `none`: the local pipeline judges alone",
    )
    url: str | None = Field(None, description="base address, such as `https://models.example.org/v1`")
    key: SecretStr | None = Field(None, description="bearer token of the service, where it takes one")
    model: str | None = Field(None, description="the model's name, as the service knows it")
    asking: bool = Field(
        True, description="`false` contacts nobody for now; what waits for the model stays *not checked yet*"
    )
    before_lock: bool = Field(
        False, description="ask before the contest is locked too: whoever runs the model then reads open entries"
    )
    unclaimed: bool = Field(False, description="ask about the words of unclaimed agents too")
    plain_http: bool = Field(False, description="allow `http://` to another machine: words and key travel in the open")
    timeout: float = Field(20, ge=0.1, le=300, description="seconds for one call, from connecting to the last byte")
    batch: int = Field(16, ge=1, le=32, description="texts in one call")
    concurrency: int = Field(4, ge=1, le=32, description="calls at once, of each copy of the service")
    requests_a_minute: int | None = Field(60, ge=1, description="of all copies together; `null` for no limit")
    requests_a_day: int | None = Field(10_000, ge=1, description="in a day of UTC")
    texts_a_minute: int | None = Field(None, ge=1, description="texts sent")
    texts_a_day: int | None = Field(None, ge=1, description="texts sent")
    tokens_a_minute: int | None = Field(
        None, ge=20_000, description="tokens, estimated from above before a call, as the service counts them after it"
    )
    tokens_a_day: int | None = Field(None, ge=20_000, description="tokens")
    thresholds: dict[str, float] = Field(
        {},
        description="by category, from which score on a text is flagged, in place of the service's own word: "
        '`{"violence": 0.9}`',
    )
    answer_format: Literal["json_schema", "json_object", "none"] = Field(
        "json_schema", description="`chat`: how the form of the answer is demanded, as far as the service knows it"
    )
    chat_options: dict[str, Any] = Field({"temperature": 0}, description="`chat`: further fields of the request, JSON")
    retry_seconds: float = Field(
        10,
        ge=0.01,
        le=600,
        description="seconds after which a text is asked about again, twice as many after each failure; six times as "
        "many where the text itself may be what the service does not answer",
    )
    breaker_failures: int = Field(5, ge=1, le=1000, description="failures in a row after which it is left alone")
    breaker_seconds: float = Field(
        30, ge=0.01, le=600, description="for so long at first, twice as long each time, ten minutes at most"
    )

    @field_validator("url")
    @classmethod
    def _plain(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must be an address such as https://models.example.org/v1")
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            raise ValueError("must hold no user, password, query or fragment; the key has a variable of its own")
        if not url.isascii() or any(character.isspace() for character in url):
            raise ValueError("must be ASCII without spaces")
        parts.port  # noqa: B018  (raises where it is no port)
        return url.rstrip("/")

    @field_validator("key")
    @classmethod
    def _a_header(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and not re.fullmatch(r"[\x21-\x7e]{1,4096}", key.get_secret_value()):
            raise ValueError("must be printable ASCII without spaces or line ends")
        return key

    @field_validator("model")
    @classmethod
    def _named(cls, model: str | None) -> str | None:
        if model is not None and not re.fullmatch(r"[\x21-\x7e]{1,200}", model):
            raise ValueError("must be 1 to 200 characters of printable ASCII without spaces")
        return model

    @field_validator("thresholds")
    @classmethod
    def _shares(cls, thresholds: dict[str, float]) -> dict[str, float]:
        for category, score in thresholds.items():
            if not 0 <= score <= 1:
                raise ValueError(f"the score of {category!r} must be from 0 to 1")
        return thresholds

    @field_validator("chat_options")
    @classmethod
    def _not_ours(cls, options: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(_OURS & options.keys()):
            raise ValueError(f"must not set {', '.join(taken)}: MAFL sets what makes the answer readable")
        return options

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.kind == "none":
            return self
        for name in ("url", "model"):
            if getattr(self, name) is None:
                raise ValueError(f"{PREFIX}{name.upper()} must be given with {PREFIX}KIND={self.kind}")
        parts = urlsplit(self.url or "")
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK and not self.plain_http:
            raise ValueError(
                f"{PREFIX}URL must begin with https://; {PREFIX}PLAIN_HTTP=true allows http:// to another machine"
            )
        return self

    @property
    def configured(self) -> bool:
        """Whether a text is cleared only where the model clears it too."""
        return self.kind != "none"

    @property
    def together(self) -> bool:
        """Whether texts of different authors may share a request, and a verdict on words hold for whoever wrote them.

        Not where one text of a request could talk the model round to judge another.
        """
        return self.kind != "chat"

    @classmethod
    def read(cls) -> Self:
        """The settings of the environment. Raises :class:`Misconfigured`, which names no value."""
        try:
            return cls()
        except ValidationError as error:
            wrong = [
                ": ".join(filter(None, ((PREFIX + str(found["loc"][0]).upper()) if found["loc"] else "", found["msg"])))
                for found in error.errors(include_input=False, include_context=False, include_url=False)
            ]
        except SettingsError as error:
            wrong = [f"{PREFIX}*: {error}: it must be JSON"]
        raise Misconfigured("; ".join(wrong))
