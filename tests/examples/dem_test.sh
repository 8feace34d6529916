#!/usr/bin/env bash
# Gives the example `dem` bad input, and grains that do what grains cannot: each run must end with exit code 1 and a
# message that says what is wrong. Usage: dem_test.sh PATH_OF_DEM. Uses the reference device.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
small=(--device reference --grains 64 --frames 4 --substeps 32 --above 0 --pictures 1 --samples 1 --width 16 --height 9)

ln -s "$program" dem  # the pictures cannot go to a folder of this name
refuses "one step a frame is too few" "more energy than at the start" -- --substeps 1 --frames 20
draws "a picture, in the folder that is usual" pictures/frame_0000.png
refuses "grains that were thrown do not rest at once" "not come to rest" -- --rest 0.1
draws "a picture of them" pictures/dem.png
refuses "no grains" "--grains" -- --grains 0
refuses "a block below the floor" "--above" -- --above -1
refuses "more pictures than a sheet holds" "--pictures" -- --width 8192 --height 8192 --pictures 100
refuses "a number that is none" "--frames" -- --frames many
finish
