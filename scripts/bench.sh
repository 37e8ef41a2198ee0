#!/usr/bin/env bash
# The reference set: every scenario that runs on a database of the demo's `dev` size, each for a minute, and a page of it.
# OUT (a folder that is not there yet), SECONDS_EACH and SCENARIOS may be given.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-bench/results/$(uname -n)-$(date -u +%Y%m%dT%H%M%SZ)}
each=${SECONDS_EACH:-60s}
if [ -e "$out" ]; then
    echo "$out is there already; results are not written over" >&2
    exit 2
fi
cargo build --release --locked --bin rowdeck
rowdeck=target/release/rowdeck
# Those that the engine drives, one a line.
driven() { "$rowdeck" bench list --json | sed 's/{"name":"/\n/g' | sed -n 's/^\([a-z-]*\)".*"engine":true.*/\1/p'; }
scenarios=${SCENARIOS:-$(driven)}
mkdir -p "$out"
"$rowdeck" demo --headless --keep --size dev
# Started again without --keep, the server ends with it.
trap '"$rowdeck" demo --headless --size dev >/dev/null' EXIT
worst=0
for scenario in $scenarios; do
    "$rowdeck" --target demo bench run "$scenario" --seconds "$each" --out "$out/$scenario.json" || worst=$?
done
"$rowdeck" --target demo bench run big-move --out "$out/big-move.json" || worst=$?
"$rowdeck" bench report "$out" --out "$out/report.md"
exit "$worst"
