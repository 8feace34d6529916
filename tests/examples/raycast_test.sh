#!/usr/bin/env bash
# Gives the example `raycast` bad input: each run must end with exit code 1 and a message that says what is wrong.
# Usage: raycast_test.sh PATH_OF_RAYCAST. Uses the reference device.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
printf 'v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n' > good.obj
small=(--device reference --mesh good.obj --rounds 1 --samples 1 --width 16 --height 9)

"$program" "${small[@]}" --builder lbvh --out out > log 2>&1 || fail "a tetrahedron"
draws "a picture of a tetrahedron" out/raycast.png
# If the edge of the picture cut a mesh off, most rays would hit the mesh.
printf 'v %s\n' "0 0 0" "1 0 0" "1 1 0" "0 1 0" "0 0 1" "1 0 1" "1 1 1" "0 1 1" > cube.obj
printf 'f %s\n' "1 4 3 2" "5 6 7 8" "1 2 6 5" "4 8 7 3" "1 5 8 4" "2 3 7 6" >> cube.obj
for size in "32 18" "9 32"; do
  "$program" "${small[@]}" --mesh cube.obj --width "${size% *}" --height "${size#* }" > log 2>&1 || fail "a cube"
  if grep -qE ' [1-4]?[0-9]\.[0-9] % hit the mesh' log; then
    echo "ok: a cube fits a picture of $size"
  else
    fail "a cube does not fit a picture of $size"
  fi
done
grep -qF 'row 32 of 32' log || fail "no progress is shown"
refuses "a device without ray queries" "ray queries" -- --search device
refuses "a search that is none" "--search" -- --search guess
refuses "a builder that is none" "--builder" -- --builder hands
refuses "a file that is not there" nowhere.obj "cannot be read" -- --mesh nowhere.obj
refuses "no samples" "--samples" -- --samples 0
refuses "a picture without pixels" "--width" -- --width 0
finish
