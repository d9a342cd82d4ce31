"""Pages that begin on a cluster without anything of ours: what goes into the namespace comes after the namespace."""

from __future__ import annotations

import pytest
import yaml

from tests.docs.pages import ROOT, blocks, commands, text_of

NAMESPACE = "deploy/base/common/namespace.yaml"


@pytest.mark.parametrize("name", ["operate/deployment.md", "start/getting-started.md"])
def test_the_namespace_is_there_before_anything_is_put_into_it(name: str) -> None:
    lines = [line for block in blocks(text_of(ROOT / "docs" / name)) for line in commands(block)]
    makes_it = {f"kubectl apply --server-side -f {NAMESPACE}", "kubectl apply --server-side -f dist/install.yaml"}
    for kind in ("kubectl -n forecast-scheduler create", "kubectl apply --server-side -k"):
        first = next(number for number, line in enumerate(lines) if line.startswith(kind))
        assert makes_it & {*lines[:first]}, lines[first]
    [found] = yaml.safe_load_all((ROOT / NAMESPACE).read_text())
    assert (found["kind"], found["metadata"]["name"]) == ("Namespace", "forecast-scheduler")
