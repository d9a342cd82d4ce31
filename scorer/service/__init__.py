"""The scorer over HTTP: a FastAPI application over `ScorerApi`, its limits, its metrics and its page."""
