"""What a service is told by its environment; every variable begins with ``MAFL_``."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Settings of one service process.

    Raises ``pydantic.ValidationError`` naming each variable that is missing or wrong.
    """

    model_config = SettingsConfigDict(env_prefix="MAFL_", extra="ignore")

    database_url: SecretStr = Field(description="PostgreSQL address of this service's own database")
    nats_url: SecretStr = Field(description="NATS address, with this service's own user and password")
    public_url: str = Field("http://127.0.0.1:8000", description="the public origin, without a trailing slash")
    operator_token: SecretStr = Field(description="bearer token of the operator API")
    environment: Literal["production", "embedded"] = Field("production", description="what kind of stack this is")
    clock: Literal["system", "replay"] = Field("system", description="`replay` lets an operator move the time")
    database_pool: int = Field(8, ge=1, le=200, description="connections that this process may hold")
    database_patience: float = Field(
        15, ge=0.5, le=300, description="seconds without a sign from the database after which a call is given up"
    )
    limits: dict[str, str] = Field(
        {}, description='rates of calls in place of the usual ones, JSON: `{"registrations": "30/3600"}`, or `"off"`'
    )
    limits_factor: int | None = Field(
        None, ge=1, le=10_000, description="all usual rates times this; 1, or 1000 in an embedded stack, unless given"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least level that is logged")

    @model_validator(mode="after")
    def _no_replay_in_production(self) -> Self:
        if self.environment == "production" and self.clock == "replay":
            raise ValueError("MAFL_CLOCK=replay moves locks by hand; a production stack takes MAFL_CLOCK=system only")
        return self
