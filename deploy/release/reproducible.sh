#!/bin/sh
# Builds weir twice from the last commit, in two folders and with two caches, and compares the bytes. It takes minutes.
#   deploy/release/reproducible.sh            linux and amd64
#   GOOS=darwin GOARCH=arm64 deploy/release/reproducible.sh
set -eu
root=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CGO_ENABLED=0 GOFLAGS= GOOS="${GOOS:-linux}" GOARCH="${GOARCH:-amd64}"
for side in one another-folder; do
  git clone --quiet "$root" "$work/$side"
  GOCACHE="$work/cache-$side" go -C "$work/$side" build -trimpath -buildvcs=true -ldflags '-s -w' -o "$work/$side.bin" ./cmd/weir-all
  rm -rf "$work/cache-$side"
done
sha256sum "$work/one.bin" "$work/another-folder.bin" | sed "s|$work/||"
cmp "$work/one.bin" "$work/another-folder.bin"
echo "the same bytes for $GOOS/$GOARCH"
