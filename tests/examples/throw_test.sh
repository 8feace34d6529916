#!/usr/bin/env bash
# Gives the example `throw` bad input, and too few throws to land: each run must end with exit code 1 and a message that
# says what is wrong. Usage: throw_test.sh PATH_OF_THROW. Uses the reference device.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
small=(--device reference --rings 20 --steps 300 --iterations 2 --samples 1 --width 16 --height 9)

refuses "two throws are too few" "the loss did not fall" -- --out out
draws "a picture of throws that miss" out/throw.png
# A file has the name of the program here, so that its pictures cannot go to a folder of that name.
ln -s "$program" throw
refuses "nor do they suffice without a folder" "the loss did not fall" --
draws "a picture in the folder that is usual" pictures/throw.png
refuses "an odd number of steps" "301 is not even" -- --steps 301
refuses "too few steps" "--steps" -- --steps 10
refuses "no slots" "--slots" -- --slots 0
refuses "a number that is none" "--iterations" -- --iterations many
finish
