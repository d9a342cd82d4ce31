"""Settings of all tests."""

from __future__ import annotations

from hypothesis import settings

# `make test-long` asks for it: every property is tried on five times as many cases, hundreds of thousands in all.
settings.register_profile("long", max_examples=500, deadline=None)
