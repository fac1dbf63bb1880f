"""What the tests of every service share: real servers, and services started on them in the test's process."""
