"""What an operator must see of each service is on its ``/metrics``."""

from __future__ import annotations

import pytest

from common import topology
from testkit.fixtures import Start

EVERYWHERE = ("mafl_service_info", "mafl_outbox_waiting", "mafl_http_request_seconds_count", "mafl_loop_delay_seconds")
OF = {
    "registry": ("mafl_registrations_total",),
    "contests": ("mafl_lineups_accepted_total", "mafl_lineups_refused_total", "mafl_contest_locks_in_seconds"),
    "moderation": ("mafl_moderation_backlog", "mafl_moderation_backlog_age_seconds"),
    "settlement": ("mafl_settlements_total", "mafl_certification_failures_total"),
    "boards": ("mafl_boards_behind_seconds", "mafl_boards_incomplete_weeks", "mafl_live_watchers"),
}


@pytest.mark.rule("O3")
@pytest.mark.parametrize("name", topology.SERVICES)
async def test_each_service_tells_its_health_and_what_an_operator_watches(start: Start, name: str) -> None:
    async with start(name) as service:
        assert (await service.client.get("/healthz")).json() == {"status": "alive"}
        assert (await service.client.get("/readyz")).json() == {"status": "ready", "faults": []}
        text = (await service.client.get("/metrics")).text
        for metric in (*EVERYWHERE, *OF[name]):
            assert f"\n# HELP {metric.removesuffix('_count')} " in f"\n{text}", metric
        assert f'mafl_service_info{{service="{name}"}} 1.0' in text
