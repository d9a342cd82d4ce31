"""install.yaml: deploy/install as one file for `kubectl apply -f`, with the image of a release."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import yaml

from deploy.release.version import ROOT

_HEAD: Final = """\
# forecast-scheduler {version}, observe only: forecasts of nodes and services, nothing in the cluster is changed.
#
#   kubectl apply --server-side -f install.yaml
#   kubectl -n forecast-scheduler create job --from cronjob/forecast-scheduler-trainer first-run
#
# It finds the metrics store in the cluster, and learns every night (docs/operate/deployment.md).
"""


def write_install_file(directory: Path, version: str, *, image: str) -> None:
    """Write install.yaml. Raises RuntimeError without kubectl, whose kustomize builds it.

    image : without a tag, which is the version
    """
    if shutil.which("kubectl") is None:
        raise RuntimeError("kubectl builds install.yaml, and is not in PATH: https://kubernetes.io/docs/tasks/tools/")
    with TemporaryDirectory() as scratch:
        kustomization = {
            "resources": [os.path.relpath(ROOT / "deploy" / "install", Path(scratch).resolve())],
            "images": [{"name": "forecast-scheduler", "newName": image, "newTag": version}],
        }
        (Path(scratch) / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
        done = subprocess.run(["kubectl", "kustomize", scratch], capture_output=True, text=True, timeout=120)
    if done.returncode or done.stderr:
        raise RuntimeError(f"deploy/install was not built: {done.stderr}")
    (directory / "install.yaml").write_text(_HEAD.format(version=version) + done.stdout)


def remark_on_image(image: str) -> str:
    """What is wrong with an image for nodes that pull it; "" = nothing. A name without a registry is Docker Hub's."""
    if "/" in image:
        return ""
    return (
        f"install.yaml names the image {image} without a registry, from which no node can pull it: "
        "make release IMAGE=registry.example/forecast-scheduler, where `make image` pushed it"
    )
