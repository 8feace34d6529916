#!/usr/bin/env bash
# The example `throw` with bad input, and with too few throws to land: each must end with exit code 1 and a message that
# says what is wrong. Usage: throw_test.sh PATH_OF_THROW. On the reference device.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
small=(--device reference --rings 20 --steps 300 --iterations 2 --samples 1 --width 16 --height 9)

refuses "two throws are too few" "the loss did not fall" -- --out out
draws "a picture of throws that miss" out/throw.png
# Called where it stands: the folder cannot have the name of the program.
ln -s "$program" throw
refuses "nor do they suffice without a folder" "the loss did not fall" --
draws "a picture in the folder that is usual" pictures/throw.png
refuses "an odd number of steps" "301 is not even" -- --steps 301
refuses "too few steps" "--steps" -- --steps 10
refuses "no slots" "--slots" -- --slots 0
refuses "a number that is none" "--iterations" -- --iterations many
finish
