#!/usr/bin/env bash
# Gives the example `raymarch` bad input: each run must end with exit code 1 and a message that says what is wrong.
# Usage: raymarch_test.sh PATH_OF_RAYMARCH. Uses the reference device.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
small=(--device reference --voxels 16 --samples 1 --width 32 --height 18)

"$program" "${small[@]}" --out out > log 2>&1 || fail "a torus knot in fog"
draws "a picture of a torus knot in fog" out/raymarch.png
refuses "a file that is not there" nowhere.nvdb -- --fog nowhere.nvdb
echo "no volume" > text.nvdb
refuses "a file of another kind" text.nvdb -- --surface text.nvdb
refuses "fog without thickness" "--thickness" -- --thickness 0
finish
