#!/usr/bin/env bash
# missing_modules.sh DIRECTORY: writes what module proxies do not serve yet into DIRECTORY, a copy of this one.
#
# k8s.io/apiextensions-api, new in 1.38, holds the types and clients of CustomResourceDefinitions that were in
# k8s.io/apiextensions-apiserver before. So they are taken from that module's last release. Delete this file, and the
# replace line of go.mod, as soon as `go mod download k8s.io/apiextensions-api@VERSION` succeeds.
set -euo pipefail
release=v0.37.2
to=$1/apiextensions-api
from=$(go mod download -json "k8s.io/apiextensions-apiserver@$release" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
mkdir -p "$to/pkg/apis/apiextensions"
cp -r "$from"/pkg/apis/apiextensions/v1 "$from"/pkg/apis/apiextensions/v1beta1 "$to/pkg/apis/apiextensions"
cp -r "$from/pkg/client" "$to/pkg"
chmod -R u+w "$to"
find "$to" -name '*_test.go' -delete
rm "$to"/pkg/apis/apiextensions/*/*conversion*.go  # stayed in k8s.io/apiextensions-apiserver
for version in v1 v1beta1; do
    printf 'package %s\n\nvar nullLiteral = []byte("null")\n' "$version" > "$to/pkg/apis/apiextensions/$version/literals.go"
done
grep -rlZ . "$to" --include='*.go' | xargs -0 sed -i \
    's#k8s.io/apiextensions-apiserver/#k8s.io/apiextensions-api/#; s#structured-merge-diff/v6/#structured-merge-diff/v7/#'
printf 'module k8s.io/apiextensions-api\n\ngo 1.27.0\n' > "$to/go.mod"
