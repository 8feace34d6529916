#!/usr/bin/env bash
# Gives the example `fluid_checkpoint` bad input, and too few runs: each run must end with exit code 1 and a message
# that says what is wrong. Usage: fluid_checkpoint_test.sh PATH. Uses the reference device.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
small=(--device reference --size 16 --steps 4 --sweeps 2 --iterations 3)

ln -s "$program" fluid_checkpoint
refuses "three runs are too few" "the loss did not fall" --
draws "a picture of runs that miss, in the folder that is usual" pictures/fluid_checkpoint.png
losses() { grep '^run' log; }
for slots in 1 2 4; do
  "$program" "${small[@]}" --slots "$slots" > log 2>&1
  losses > "losses_$slots"
done
if [[ -s losses_1 ]] && cmp -s losses_1 losses_2 && cmp -s losses_1 losses_4; then
  echo "ok: the same losses for every number of slots"
else
  fail "losses differ between numbers of slots"
fi
refuses "an odd number of sweeps" "3 is not even" -- --sweeps 3
refuses "too small a square" "--size" -- --size 8
refuses "no slots" "--slots" -- --slots 0
refuses "a number that is none" "--iterations" -- --iterations many
finish
