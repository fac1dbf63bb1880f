"""What moderation alone is told by its environment; every variable begins with ``MAFL_MODERATION_``."""

from __future__ import annotations

import os

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

OUR_PIPELINE = "moderation.detectors:load"


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class JudgingSettings(BaseSettings):
    """How texts are judged.

    Raises ``pydantic.ValidationError`` naming each variable that is wrong.
    """

    model_config = SettingsConfigDict(env_prefix="MAFL_MODERATION_", extra="ignore")

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
