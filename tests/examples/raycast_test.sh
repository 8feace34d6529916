#!/usr/bin/env bash
# The example `raycast` with bad input: each must end with exit code 1 and a message that says what is wrong.
# Usage: raycast_test.sh PATH_OF_RAYCAST. On the reference device.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
printf 'v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n' > good.obj
small=(--device reference --mesh good.obj --rounds 1 --samples 1 --width 16 --height 9)

"$program" "${small[@]}" --builder lbvh --out out > log 2>&1 || fail "a tetrahedron"
draws "a picture of a tetrahedron" out/raycast.png
refuses "a device without ray queries" "ray queries" -- --search device
refuses "a search that is none" "--search" -- --search guess
refuses "a builder that is none" "--builder" -- --builder hands
refuses "a file that is not there" nowhere.obj "cannot be opened" -- --mesh nowhere.obj
refuses "no samples" "--samples" -- --samples 0
refuses "a picture without pixels" "--width" -- --width 0
finish
