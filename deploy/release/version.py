"""Which version and which commit a release is of."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parents[2]


def one_version() -> str:
    """Return the version that pyproject.toml, chart and image name. Raises RuntimeError if they differ."""
    chart, image = (
        yaml.safe_load((ROOT / "deploy" / path).read_text())
        for path in ("chart/Chart.yaml", "components/image/kustomization.yaml")
    )
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found = {
        "pyproject.toml": project["project"]["version"],
        "version of deploy/chart/Chart.yaml": chart["version"],
        "appVersion of deploy/chart/Chart.yaml": chart["appVersion"],
        "deploy/components/image/kustomization.yaml": image["images"][0]["newTag"],
    }
    if len({*found.values()}) > 1:
        raise RuntimeError("versions differ: " + ", ".join(f"{place}: {version}" for place, version in found.items()))
    return str(found["pyproject.toml"])


def git(*arguments: str) -> str:
    """Return what it prints, without the last line end. Raises RuntimeError."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.rstrip()
