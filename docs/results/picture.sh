#!/bin/sh
# Makes the picture of README.md: one producer that waits for each answer, and a server that stands still for three
# seconds. service is what such a generator mostly reports; response counts from the instant a message was due.
#   sh docs/results/picture.sh OUT.svg
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
weir run --driver jetstream --start process --rate 20/s --in-flight 1 --measure 40s --fault "stop all at 20s for 3s" --out "$folder/run"
python3 "$(dirname "$0")/picture.py" "$folder/run/report.html" "send by percentile" >"$1"
