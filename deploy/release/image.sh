#!/bin/sh
# Builds an image that holds weir and the host's certificate authorities, from a static Linux binary, with buildah.
# It needs no container engine and no network:  deploy/release/image.sh BINARY NAME:TAG
# Whoever builds it as root may set BUILDAH_ISOLATION=chroot where the kernel lends no namespaces.
set -eu
binary=$1 name=$2
here=$(dirname "$0")
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
mkdir -p "$context/root/usr/bin" "$context/root/etc/ssl/certs" "$context/root/tmp" "$context/root/results"
cp "$binary" "$context/root/usr/bin/weir"
cp /etc/ssl/certs/ca-certificates.crt "$context/root/etc/ssl/certs/"
echo 'weir:x:65532:65532:weir:/tmp:/' >"$context/root/etc/passwd"
chmod 755 "$context/root/usr/bin/weir"
chmod 1777 "$context/root/tmp" "$context/root/results"
cp "$here/Containerfile" "$context/"
# The time of the commit, so that the same binary gives the same image.
buildah build --quiet --timestamp "$(git -C "$here" log -1 --format=%ct)" --tag "$name" "$context"
