"""Settings of `scorer`: its service, its scores, and how long its inputs may be relied on."""

from __future__ import annotations

from pathlib import Path

from pydantic import field_validator

from scorer.options import ScoringOptions
from scorer.service.options import ServiceOptions


class ScorerSettings(ServiceOptions, ScoringOptions):
    """How `scorer` runs."""

    kubeconfig: Path | None = None
    """Cluster to follow. None: the one this process runs in, else $KUBECONFIG or ~/.kube/config; `--kubeconfig`."""

    @field_validator("kubeconfig")
    @classmethod
    def _expand_kubeconfig(cls, path: Path | None) -> Path | None:
        return None if path is None else path.expanduser()
