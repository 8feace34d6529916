#!/usr/bin/env bash
# Gives the example `nvdb` bad input: each run must end with exit code 1 and a message that says what is wrong.
# Usage: nvdb_test.sh PATH_OF_NVDB. Uses the reference device.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
small=(--device reference --voxels 16 --rings 20 --balls 4 --frames 2 --substeps 2 --pictures 1 --samples 1 --width 16 --height 9)

"$program" "${small[@]}" --out out > log 2>&1 || fail "a torus knot"
draws "a picture of a torus knot" out/nvdb.png
"$program" "${small[@]}" --volume out/knot.nvdb --name knot --out again > log 2>&1 || fail "the file that was saved"
draws "a picture of the file that was saved" again/nvdb.png
refuses "a grid that the file does not have" out/knot.nvdb "ball" -- --volume out/knot.nvdb --name ball
refuses "a file that is not there" nowhere.nvdb -- --volume nowhere.nvdb
head -c 1000 out/knot.nvdb > short.nvdb
refuses "a file that ends early" short.nvdb -- --volume short.nvdb
refuses "no balls" "--balls" -- --balls 0
finish
