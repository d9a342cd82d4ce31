"""Stores beside Debian's Prometheus: from PATH, our cache, or built from go/*/go.mod, which pin the versions."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from testing.servers.program_cache import program_of

_GO: Final = Path(__file__).with_name("go")
# Discovery of targets in clouds is not wanted, and their libraries take five times as long to build as all the rest.
_NO_DISCOVERY: Final = ("remove_all_sd",)
# How Thanos is built: it takes labels in memory to be slices, which in Prometheus 3 they are only with this tag
# (https://github.com/thanos-io/thanos/issues/8543).
_SLICES: Final = ("slicelabels",)


def prometheus_3() -> Path:
    """Prometheus 3; the first call on a machine without one builds it, as those below do."""
    package = "github.com/prometheus/prometheus/cmd/prometheus"
    otherwise = "put Prometheus 3 on PATH as prometheus-3 (https://prometheus.io/download/)"
    return program_of(_GO / "prometheus", "prometheus-3", package, otherwise=otherwise, tags=_NO_DISCOVERY)


def promtool_3() -> Path:
    """The promtool of Prometheus 3, which writes names in UTF-8."""
    package = "github.com/prometheus/prometheus/cmd/promtool"
    otherwise = "put promtool of Prometheus 3 on PATH as promtool-3 (https://prometheus.io/download/)"
    return program_of(_GO / "prometheus", "promtool-3", package, otherwise=otherwise, tags=_NO_DISCOVERY)


def victoria_metrics() -> Path:
    """The single node of VictoriaMetrics."""
    package = "github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics"
    otherwise = "put victoria-metrics on PATH (https://docs.victoriametrics.com/victoriametrics/quick-start/)"
    return program_of(_GO / "victoria_metrics", "victoria-metrics", package, otherwise=otherwise)


def thanos() -> Path:
    """Thanos with all its components."""
    otherwise = "put thanos on PATH (https://thanos.io/tip/thanos/getting-started.md/)"
    package = "github.com/thanos-io/thanos/cmd/thanos"
    return program_of(_GO / "thanos", "thanos", package, otherwise=otherwise, tags=_SLICES)
