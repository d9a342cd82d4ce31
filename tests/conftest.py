"""Settings of all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# Workers of pytest-xdist have it, and commands would take it for the width of a terminal that somebody looks at.
os.environ.pop("COLUMNS", None)

# Nothing is judged by the time it takes: the machine may be busy with other tests.
settings.register_profile("usual", deadline=None)
settings.load_profile("usual")

# `make test-long` asks for it: every property is tried on five times as many cases, hundreds of thousands in all.
settings.register_profile("long", max_examples=500, deadline=None)
