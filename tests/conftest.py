"""Settings of all tests."""

from __future__ import annotations

from hypothesis import settings

# `make test-long` asks for it: every property is tried on thousands of cases instead of a hundred.
settings.register_profile("long", max_examples=2_000, deadline=None)
