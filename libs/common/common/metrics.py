"""Every metric name of the project, with what it counts: the one place.

A process has one :class:`Metrics` on a registry of its own, so that several services can live in one
test process. Labels never hold ids.
"""

from __future__ import annotations

from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

disable_created_metrics()  # type: ignore[no-untyped-call]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """The metrics of one service process."""

    def __init__(self, service: str) -> None:
        self.registry = registry = CollectorRegistry()
        self.info = Gauge("mafl_service_info", "Always 1; the label names the service", ["service"], registry=registry)
        self.info.labels(service).set(1)
        self.http_seconds = Histogram(
            "mafl_http_request_seconds",
            "Time to answer, by route pattern, method and status",
            ["route", "method", "status"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.http_seconds_of = cache(self.http_seconds.labels)
        """The histogram of one route, method and status: finding it anew costs more than adding to it."""
        self.outbox_waiting = Gauge("mafl_outbox_waiting", "Events committed and not yet on the bus", registry=registry)
        self.outbox_published = Counter("mafl_outbox_published", "Events put on the bus", ["event"], registry=registry)
        self.events_applied = Counter("mafl_events_applied", "Events applied once", ["event"], registry=registry)
        self.events_repeated = Counter(
            "mafl_events_repeated", "Deliveries that the inbox had seen already", ["event"], registry=registry
        )
        self.events_retried = Counter(
            "mafl_events_retried", "Deliveries put back after an error", ["event"], registry=registry
        )
        self.events_dead = Counter("mafl_events_dead", "Events moved to the dead letters", ["event"], registry=registry)
        self.consumer_waiting = Gauge(
            "mafl_consumer_waiting",
            "Events of a stream that this service has not applied",
            ["stream"],
            registry=registry,
        )
        self.consumer_broken = Gauge(
            "mafl_consumer_broken", "1 while a durable cannot be read", ["stream"], registry=registry
        )
        self.loop_delay_seconds = Gauge(
            "mafl_loop_delay_seconds", "How late the event loop ran its last two-second timer", registry=registry
        )
        self.task_failures = Counter(
            "mafl_task_failures", "Times a background task raised", ["task"], registry=registry
        )

        self.lineups_accepted = Counter("mafl_lineups_accepted", "Revisions accepted", registry=registry)
        self.lineups_refused = Counter("mafl_lineups_refused", "Submissions refused", ["code"], registry=registry)
        self.contest_locks_in_seconds = Gauge(
            "mafl_contest_locks_in_seconds", "Time to the lock of an open contest", ["contest"], registry=registry
        )
        self.registrations = Counter(
            "mafl_registrations",
            "Registrations, by outcome (created, replayed, refused)",
            ["outcome"],
            registry=registry,
        )
        self.moderation_backlog = Gauge("mafl_moderation_backlog", "Texts not checked yet", registry=registry)
        self.moderation_backlog_age_seconds = Gauge(
            "mafl_moderation_backlog_age_seconds", "Age of the oldest text not checked yet", registry=registry
        )
        self.moderation_waiting = Gauge(
            "mafl_moderation_waiting",
            "Not checked yet and waiting for it, by kind (text, name, model)",
            ["kind"],
            registry=registry,
        )
        self.moderation_set_aside_now = Gauge(
            "mafl_moderation_set_aside_now",
            "Could not be judged and waits for a new pipeline or an operator, by kind (text, name, model)",
            ["kind"],
            registry=registry,
        )
        self.moderation_set_aside_age_seconds = Gauge(
            "mafl_moderation_set_aside_age_seconds", "Age of the oldest that was set aside", registry=registry
        )
        self.moderation_set_aside = Counter(
            "mafl_moderation_set_aside",
            "Set aside as not checked, by cause (raised, too-slow, died) and detector, `unknown` where it is",
            ["cause", "detector"],
            registry=registry,
        )
        self.moderation_batch_seconds = Histogram(
            "mafl_moderation_batch_seconds",
            "Time to read, judge and write a batch, by kind (text, name, model)",
            ["kind"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.moderation_workers = Gauge("mafl_moderation_workers", "Processes that judge, alive", registry=registry)
        self.moderation_workers_started = Counter(
            "mafl_moderation_workers_started", "Processes that judge, started", registry=registry
        )
        self.moderation_workers_lost = Counter(
            "mafl_moderation_workers_lost",
            "Processes that judge, lost over a text and replaced, by cause (too-slow, died)",
            ["cause"],
            registry=registry,
        )
        self.moderation_judged = Counter(
            "mafl_moderation_judged", "Texts judged, by state", ["state"], registry=registry
        )
        self.moderation_findings = Counter(
            "mafl_moderation_findings", "Findings, by detector", ["detector"], registry=registry
        )
        self.moderation_detector_errors = Counter(
            "mafl_moderation_detector_errors", "Texts that a detector could not judge", ["detector"], registry=registry
        )
        self.moderation_external_waiting = Gauge(
            "mafl_moderation_external_waiting",
            "Texts that the external model may be asked about now and has not answered",
            registry=registry,
        )
        self.moderation_external_waiting_age_seconds = Gauge(
            "mafl_moderation_external_waiting_age_seconds", "How long the oldest of them has waited", registry=registry
        )
        self.moderation_external_asked = Counter(
            "mafl_moderation_external_asked", "Texts sent to the external model", registry=registry
        )
        self.moderation_external_answered = Counter(
            "mafl_moderation_external_answered",
            "Texts that the external model judged, by state (cleared, flagged)",
            ["state"],
            registry=registry,
        )
        self.moderation_external_failed = Counter(
            "mafl_moderation_external_failed",
            "Calls of the external model that gave no answer, by cause; their texts stay unchecked",
            ["cause"],
            registry=registry,
        )
        self.moderation_external_seconds = Histogram(
            "mafl_moderation_external_seconds",
            "Time of one call of the external model, answered or not",
            buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 300),
            registry=registry,
        )
        self.moderation_external_breaker = Gauge(
            "mafl_moderation_external_breaker",
            "1 for the state that the external model's circuit breaker is in (closed, half-open, open)",
            ["state"],
            registry=registry,
        )
        self.moderation_external_budget_left = Gauge(
            "mafl_moderation_external_budget_left",
            "What is left to spend on the external model, by unit (requests, texts, tokens) and period (minute, day)",
            ["unit", "period"],
            registry=registry,
        )
        self.settlements = Counter("mafl_settlements", "Settlement versions written", registry=registry)
        self.certification_failures = Counter(
            "mafl_certification_failures", "Weeks whose optimum the two methods do not agree on", registry=registry
        )
        self.feed_looks = Counter(
            "mafl_feed_looks",
            "Looks of the live feed of statistics, by outcome: imported, unchanged, nothing-due, or what went wrong",
            ["outcome"],
            registry=registry,
        )
        self.feed_failing = Gauge(
            "mafl_feed_failing", "Whether the last look of the live feed of statistics failed", registry=registry
        )
        self.settle_seconds = Histogram(
            "mafl_settle_seconds",
            "Time to settle a week",
            buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
            registry=registry,
        )
        self.live_watchers = Gauge(
            "mafl_live_watchers", "Pages that are told of new scores by this process", registry=registry
        )
        self.live_refused = Counter(
            "mafl_live_refused", "Pages that were not, since there were as many as may be", registry=registry
        )
        self.boards_switched = Counter(
            "mafl_boards_switched", "Settlement versions that the boards show", registry=registry
        )
        self.boards_incomplete_weeks = Gauge(
            "mafl_boards_incomplete_weeks", "Settled weeks whose results have not all arrived", registry=registry
        )
        self.boards_behind_seconds = Gauge(
            "mafl_boards_behind_seconds",
            "Age of the oldest settlement version that the boards do not show, 0 when they show all",
            registry=registry,
        )
