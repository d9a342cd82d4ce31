"""`make release`: everything that is published of one commit, into dist/, with checksums.

    forecast_scheduler-VERSION.tar.gz, ...-py3-none-any.whl   for pipx and uv
    forecast-scheduler-VERSION.tgz                            the Helm chart
    install.yaml                                              for kubectl apply, observe only
    kubectl-forecast-VERSION.tar.gz, forecast.yaml            for Krew
    k9s-plugins.yaml                                          shortcuts of k9s
    forecast-scheduler-VERSION.cdx.json                       the SBOM of the image
    SHA256SUMS

The same commit, image and URL give the same bytes. The image is not among them: `make image`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from deploy.chart.chart_archive import write_chart
from deploy.release.bill_of_materials import write_bill_of_materials
from deploy.release.distributions import build_distributions
from deploy.release.install_file import remark_on_image, write_install_file
from deploy.release.krew_plugin import write_krew_plugin
from deploy.release.version import ROOT, git, one_version

_SUMS: Final = "SHA256SUMS"


def main() -> int:
    """Write them, and say in one line what is wrong if they cannot be written. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="make release", description="Write all that is published of a commit.")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", metavar="DIR")
    parser.add_argument("--image", default="forecast-scheduler", help="of install.yaml, without a tag")
    parser.add_argument("--url", default="https://releases.example", help="of the directory Krew fetches from")
    chosen = parser.parse_args()
    try:
        write_release(chosen.output, image=chosen.image, url=chosen.url)
    except RuntimeError as error:
        print(f"make release: {error}", file=sys.stderr)
        return 2
    print((chosen.output / _SUMS).read_text(), end="")
    if remark := remark_on_image(chosen.image):
        print(f"make release: {remark}", file=sys.stderr)
    return 0


def write_release(directory: Path, *, image: str, url: str) -> None:
    """Write all into a directory in place of an earlier release. Raises RuntimeError, and then changes nothing."""
    _check_clean()
    if directory.exists() and any(directory.iterdir()) and not (directory / _SUMS).exists():
        raise RuntimeError(f"{directory} has files, and they are no earlier release: remove them, or --output DIR")
    version = one_version()
    moment = int(git("show", "--no-patch", "--format=%ct", "HEAD"))  # SOURCE_DATE_EPOCH of all archives
    with TemporaryDirectory() as scratch:
        place = Path(scratch) / "release"
        place.mkdir()
        built = build_distributions(place, moment=moment)
        write_chart(place, moment=moment)
        write_install_file(place, version, image=image)
        write_krew_plugin(place, built.wheel, version, url=url, moment=moment)
        shutil.copyfile(ROOT / "deploy" / "k9s" / "plugins.yaml", place / "k9s-plugins.yaml")
        write_bill_of_materials(place, version, moment=moment)
        sums = [f"{sha256(one.read_bytes()).hexdigest()}  {one.name}\n" for one in sorted(place.iterdir())]
        (place / _SUMS).write_text("".join(sums))
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(place, directory)


def _check_clean() -> None:
    """Raises RuntimeError where the tree is not the commit: the archives could not be made again."""
    if changed := git("status", "--porcelain"):
        first, *others = changed.splitlines()
        more = f" and {len(others)} more" if others else ""
        raise RuntimeError(f"made of a commit only, and {first[2:].strip()}{more} is not committed: commit or stash")


if __name__ == "__main__":
    sys.exit(main())
