#!/bin/sh
# Unpacks Debian's prometheus and promtool into a directory, without installing them: install_prometheus.sh DIRECTORY
set -eu
directory=${1:?usage: install_prometheus.sh DIRECTORY}
command -v apt-get >/dev/null || {
    echo "no apt-get here: put prometheus and promtool (2.40 or later) on PATH or into \$PROMETHEUS_BIN" >&2
    exit 1
}
download=$(mktemp -d)
trap 'rm -rf "$download"' EXIT
cd "$download"
apt-get download prometheus >/dev/null 2>&1 || {
    apt-get update >/dev/null 2>&1 || true
    apt-get download prometheus >/dev/null || {
        echo "the package prometheus cannot be downloaded: put prometheus and promtool on PATH or into \$PROMETHEUS_BIN" >&2
        exit 1
    }
}
mkdir -p "$directory"
dpkg -x prometheus_*.deb "$directory"
