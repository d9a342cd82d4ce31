#!/bin/sh
# Unpacks Debian's chromium with the libraries it needs into a directory, without installing: install_chromium.sh DIRECTORY
set -eu
directory=${1:?usage: install_chromium.sh DIRECTORY}
way_out='put chromium on PATH or its path into $CHROMIUM'
command -v apt-get >/dev/null || { echo "no apt-get here: $way_out" >&2; exit 1; }
download=$(mktemp -d)
trap 'rm -rf "$download"' EXIT
cd "$download"
apt-cache show chromium >/dev/null 2>&1 || apt-get update >/dev/null 2>&1 || true
packages=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
    --no-enhances chromium fonts-dejavu-core 2>/dev/null | grep '^[a-z0-9]' | sort -u)
[ -n "$packages" ] || { echo "the package chromium is not known to apt: $way_out" >&2; exit 1; }
# Together, or where that fails one by one: among alternatives of a dependency some exist only by name.
# shellcheck disable=SC2086
apt-get download $packages >/dev/null 2>&1 || for package in $packages; do
    ls "${package}"_*.deb >/dev/null 2>&1 || apt-get download "$package" >/dev/null 2>&1 || true
done
ls chromium_*.deb >/dev/null 2>&1 || { echo "the package chromium cannot be downloaded: $way_out" >&2; exit 1; }
mkdir -p "$directory"
for file in *.deb; do
    # The C library belongs to the machine: a second one beside its loader does not start.
    case $file in libc6_* | libc-bin_* | libgcc-s1_*) continue ;; esac
    dpkg -x "$file" "$directory"
done
