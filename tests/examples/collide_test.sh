#!/usr/bin/env bash
# Gives the example `collide` bad input: each run must end with exit code 1 and a message that says what is wrong.
# Usage: collide_test.sh PATH_OF_COLLIDE. Uses the reference device.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
printf 'v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n' > good.obj
small=(--device reference --mesh good.obj --particles 4 --frames 2 --substeps 2 --pictures 1 --samples 1 --width 16 --height 9)

"$program" "${small[@]}" --out out > log 2>&1 || fail "a tetrahedron"
draws "a picture of a tetrahedron" out/collide.png
refuses "a file that is not there" nowhere.obj "cannot be read" -- --mesh nowhere.obj
refuses "no particles" "--particles" -- --particles 0
refuses "no steps" "--substeps" -- --substeps 0
refuses "a number that is none" "--frames" -- --frames many
finish
