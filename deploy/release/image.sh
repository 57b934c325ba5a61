#!/bin/sh
# Builds an image that holds weir and the host's certificate authorities, from static Linux binaries, with buildah.
# It needs no container engine and no network, and runs nothing of the image, so any host builds any platform:
#   deploy/release/image.sh NAME:TAG linux/amd64=BINARY linux/arm64=BINARY
# Where the kernel lends no namespaces, root may set BUILDAH_ISOLATION=chroot, and STORAGE_DRIVER=vfs.
set -eu
name=$1
shift
here=$(dirname "$0")
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
mkdir -p "$context/root/usr/bin" "$context/root/etc/ssl/certs" "$context/root/tmp" "$context/root/results"
cp /etc/ssl/certs/ca-certificates.crt "$context/root/etc/ssl/certs/"
echo 'weir:x:65532:65532:weir:/tmp:/' >"$context/root/etc/passwd"
chmod 1777 "$context/root/tmp" "$context/root/results"
cp "$here/Containerfile" "$context/"
if buildah manifest exists "$name"; then buildah manifest rm "$name" >/dev/null; fi
for platform; do
  cp "${platform#*=}" "$context/root/usr/bin/weir"
  chmod 755 "$context/root/usr/bin/weir"
  # The time of the commit, so that the same binary gives the same image.
  buildah build --quiet --timestamp "$(git -C "$here" log -1 --format=%ct)" --platform "${platform%%=*}" --manifest "$name" "$context"
done
