"""The Helm chart: the templates here, and the files of deploy/ that they build. `make release` writes it.

The chart holds no copy of a manifest in the repository: its templates read the kustomizations, as kubectl does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from deploy.archive import EARLIEST, Entry, write_archive
from forecast_scheduler.settings.document import Settings

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
_OWN: Final = ("Chart.yaml", "values.yaml", "templates/*")
_BUILT: Final = ("deploy/base", "deploy/components", "deploy/crds", "deploy/overlays", "dashboards")


def write_chart(directory: Path, *, moment: int = EARLIEST) -> Path:
    """Write NAME-VERSION.tgz, which helm takes in place of a directory. Returns its path.

    moment : Unix time that the files in it get
    """
    chart = yaml.safe_load((HERE / "Chart.yaml").read_text())
    entries = (Entry(f"{chart['name']}/{name}", content) for name, content in _files())
    return write_archive(directory / f"{chart['name']}-{chart['version']}.tgz", entries, moment=moment)


def values_schema() -> dict[str, Any]:
    """The schema of values.yaml: the one here, with that of the settings under `settings`."""
    schema: dict[str, Any] = json.loads((HERE / "values.schema.json").read_text())
    settings = Settings.model_json_schema()
    schema["$defs"] |= settings.pop("$defs")
    schema["properties"]["settings"] = settings
    return schema


def _files() -> Iterator[tuple[str, bytes]]:
    """Path in the chart and content."""
    for pattern in _OWN:
        for path in sorted(HERE.glob(pattern)):
            yield str(path.relative_to(HERE)), path.read_bytes()
    yield "values.schema.json", json.dumps(values_schema()).encode()
    for directory in _BUILT:
        for path in sorted((ROOT / directory).rglob("*")):
            if path.suffix in (".yaml", ".json"):
                yield f"kustomize/{path.relative_to(ROOT)}", path.read_bytes()
