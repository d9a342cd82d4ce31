"""Grafana dashboards, recording rules and alerts, made from code: `python -m dashboards` writes the files beside it."""
