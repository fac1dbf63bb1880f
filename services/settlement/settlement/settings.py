"""What settlement alone is told by its environment; every variable begins with ``MAFL_SETTLEMENT_``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class FeedSettings(BaseSettings):
    """The live feed of statistics; docs/statistics.md describes each variable. Off, as by default, asks nobody.

    Raises ``pydantic.ValidationError`` naming each variable that is wrong.
    """

    model_config = SettingsConfigDict(env_prefix="MAFL_SETTLEMENT_", extra="ignore")

    feed: Literal["off", "nflverse"] = Field(
        "off", description="where statistics are fetched from while games are played"
    )
    feed_url: str = Field(
        "https://github.com/nflverse/nflverse-data/releases/download",
        pattern=r"^https?://[^\s?#]+$",
        description="where `stats_player/`, `stats_team/` and `schedules/` are: nflverse's releases, or a mirror",
    )
    feed_seconds: float = Field(300, ge=1, le=86_400, description="seconds between two looks")
    feed_timeout: float = Field(30, ge=0.1, le=600, description="seconds that the server may be silent")
    feed_final_after_hours: float | None = Field(
        None,
        ge=0,
        le=336,
        description="hours after a week's last kickoff from which on its statistics are taken as final, once every "
        "game that counts has its score; none: an operator imports the final ones",
    )
