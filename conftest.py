"""Every test may use the fixtures of the test kit, and none is failed by a machine that has other work too."""

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["testkit.fixtures"]

# Of what hypothesis checks by the clock, nothing: an example may wait for a processor. What else it has set, in CI for
# one, stays.
settings.register_profile("patient", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files whose tests may take longest by their own word, so that at the end no worker waits alone.

    Without ``timeout`` marks a file stays where it was, after the others. Workers take whole files; each orders alike.
    """
    longest: dict[str, float] = {}
    for item in items:
        given = item.get_closest_marker("timeout")
        if given is not None and given.args:
            file = item.nodeid.partition("::")[0]
            longest[file] = max(longest.get(file, 0.0), given.args[0])
    items.sort(key=lambda item: -longest.get(item.nodeid.partition("::")[0], 0.0))
