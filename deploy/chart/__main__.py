"""`python -m deploy.chart`: write the Helm chart: the templates here, and the files of deploy/ that they build.

The chart holds no copy of a manifest in the repository: its templates read the kustomizations, as kubectl does.
"""

from __future__ import annotations

import argparse
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from forecast_scheduler.settings.document import Settings

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
_OWN: Final = ("Chart.yaml", "values.yaml", "templates/*")
_BUILT: Final = ("deploy/base", "deploy/components", "deploy/crds", "deploy/overlays", "dashboards")


def main() -> None:
    """Write one archive, which helm takes in place of a directory, and print its path."""
    parser = argparse.ArgumentParser(prog="python -m deploy.chart", description=__doc__)
    parser.add_argument(
        "--output", type=Path, default=ROOT / "dist", metavar="DIR", help="where to write (default: %(default)s)"
    )
    print(write_chart(parser.parse_args().output))


def write_chart(directory: Path) -> Path:
    """Write NAME-VERSION.tgz into a directory. Returns its path."""
    chart = yaml.safe_load((HERE / "Chart.yaml").read_text())
    directory.mkdir(parents=True, exist_ok=True)
    archive = directory / f"{chart['name']}-{chart['version']}.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        for name, content in _files():
            entry = tarfile.TarInfo(f"{chart['name']}/{name}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return archive


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


if __name__ == "__main__":
    main()
