#!/bin/sh
# Builds the API server of Kubernetes and its controllers, for the tests of the chart, from the Go proxy:
#   deploy/helm/apiserver.sh FOLDER && PATH="FOLDER:$PATH" go test ./deploy/helm
# It takes some ten minutes of two idle cores. The tests also need etcd (Debian: etcd-server).
set -eu
to=$(mkdir -p "$1" && cd "$1" && pwd)
version=36.3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$(cd "$work" && go mod download -json "k8s.io/kubernetes@v1.$version" | sed -n 's/^.*"Dir": "\(.*\)".*/\1/p')" "$work/src"
chmod -R u+w "$work/src"
cd "$work/src"
rm -rf go.work go.work.sum vendor
# The module's own parts are replaced by folders that it has only in its repository: take what is published.
for module in $(sed -n 's/^.*\(k8s.io\/[a-z0-9-]*\) => .*/\1/p' go.mod); do
  go mod edit -dropreplace="$module" -require="$module@v0.$version"
done
for program in kube-apiserver kube-controller-manager; do
  GOFLAGS=-mod=mod CGO_ENABLED=0 go build -ldflags "-X k8s.io/component-base/version.gitVersion=v1.$version" -o "$to/$program" "./cmd/$program"
done
