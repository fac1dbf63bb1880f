"""Every test may use the fixtures of the test kit."""

pytest_plugins = ["testkit.fixtures"]
