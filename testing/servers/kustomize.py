"""What a kustomization builds, by the kustomize that is in kubectl."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, Final

import yaml

from testing.servers.kubectl.binary import kubectl

DEPLOY: Final = Path(__file__).parents[2] / "deploy"


def built(directory: Path | str) -> list[dict[str, Any]]:
    """The objects of a kustomization, in the order in which kubectl applies them; a relative name lies in deploy/."""
    done = subprocess.run(
        [str(kubectl()), "kustomize", str(DEPLOY / directory)], capture_output=True, text=True, timeout=120
    )
    if done.returncode or done.stderr:  # it warns on stderr of what is deprecated
        raise RuntimeError(f"{directory} was not built: {done.stderr}")
    return [one for one in yaml.safe_load_all(done.stdout) if one is not None]


def built_from(place: Path, **fields: Any) -> list[dict[str, Any]]:
    """The objects of a kustomization that is written to `place`; resources and components are named as in deploy/."""
    place.mkdir(parents=True, exist_ok=True)
    for key in ("resources", "components"):
        if key in fields:  # it takes no absolute paths
            fields[key] = [os.path.relpath(DEPLOY / one, place) for one in fields[key]]
    header = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (place / "kustomization.yaml").write_text(yaml.safe_dump(header | fields))
    return built(place)
