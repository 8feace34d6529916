#!/usr/bin/env bash
# Gives the example `marching_cubes` bad input: each run must end with exit code 1 and a message that says what is wrong.
# Usage: marching_cubes_test.sh PATH_OF_MARCHING_CUBES. Uses the reference device.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
small=(--device reference --drops 2 --grid 12 --frames 2 --substeps 1 --pictures 1 --samples 1 --width 16 --height 9)

"$program" "${small[@]}" --out out > log 2>&1 || fail "two drops"
draws "a picture of two drops" out/marching_cubes.png
refuses "no drops" "--drops" -- --drops 0
refuses "no values" "--grid" -- --grid 1
finish
