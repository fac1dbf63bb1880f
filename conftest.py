"""Every test may use the fixtures of the test kit, and none is failed by a machine that has other work too."""

from hypothesis import HealthCheck, settings

pytest_plugins = ["testkit.fixtures"]

# Of what hypothesis checks by the clock, nothing: an example may wait for a processor. What else it has set, in CI for
# one, stays.
settings.register_profile("patient", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
