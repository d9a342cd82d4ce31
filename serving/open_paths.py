"""Paths that every service answers without a token: the probes, and the files of the page, which hold no data."""

from __future__ import annotations

from typing import Final

PAGE_FILES: Final = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/chart.js": ("chart.js", "text/javascript; charset=utf-8"),
    "/heatmap.js": ("heatmap.js", "text/javascript; charset=utf-8"),
    "/rebalance.js": ("rebalance.js", "text/javascript; charset=utf-8"),
    "/format.js": ("format.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
    "/report-view": ("report-view.html", "text/html; charset=utf-8"),
}
"""Path -> file and media type."""

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", *PAGE_FILES})
"""Kubernetes probes carry no token."""
