"""The examples for Argo CD and Flux hold to the definitions of these, on a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from testing.servers.applying import Applier, NotApplied
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.kustomize import DEPLOY
from testing.servers.program_cache import run_go

Manifest = dict[str, Any]

DEFINITIONS: Final = {
    "github.com/argoproj/argo-cd/v3@v3.1.0": "manifests/crds/application-crd.yaml",
    "github.com/fluxcd/source-controller@v1.9.6": "config/crd/bases/source.toolkit.fluxcd.io_gitrepositories.yaml",
    "github.com/fluxcd/kustomize-controller@v1.9.6": "config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml",
}
"""Files of Go modules; Go checks what it downloads against its checksum database."""

EXAMPLES: Final = {path.name: path for path in sorted((DEPLOY / "examples" / "gitops").iterdir())}


def _definition(module: str, file: str) -> Manifest:
    said = run_go(module, ["mod", "download", "-json", module], directory=Path(__file__).parent, otherwise="none does")
    found: Manifest = yaml.safe_load((Path(json.loads(said)["Dir"]) / file).read_text())
    return found


@pytest.fixture(scope="module")
def applier() -> Iterator[Applier]:
    with ControlPlane() as plane, Applier(plane) as applier:
        applier.apply_all(_definition(module, file) for module, file in DEFINITIONS.items())
        for name in ("argocd", "flux-system"):
            applier.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        yield applier


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_holds_to_the_definitions(name: str, applier: Applier) -> None:
    for one in yaml.safe_load_all(EXAMPLES[name].read_text()):
        applier.apply(one)
        with pytest.raises(NotApplied, match="field not declared in schema"):
            applier.apply(one | {"spec": one["spec"] | {"sauce": {}}})
    assert applier.warnings == []
