#!/usr/bin/env bash
# The example `fluid_checkpoint` with bad input, and with too few runs: each must end with exit code 1 and a message that
# says what is wrong. Usage: fluid_checkpoint_test.sh PATH. Runs in a folder of its own, on the reference device.
set -uo pipefail

fluid="$1"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"
failures=0
small=(--device reference --size 16 --steps 4 --sweeps 2 --iterations 3)

fail() {
  echo "FAILED: $1"
  sed 's/^/  | /' log
  failures=$((failures + 1))
}

# refuses NAME TEXT ARGUMENTS: the message must hold the text.
refuses() {
  local name="$1" text="$2" code=0
  shift 2
  "$fluid" "${small[@]}" "$@" > log 2>&1 || code=$?
  if [[ "$code" == 1 ]] && grep -qF -- "$text" log; then
    echo "ok: $name"
  else
    fail "$name: exit code $code, or no \"$text\""
  fi
}

refuses "three runs are too few" "the loss did not fall" --out out
[[ -s out/fluid_checkpoint.png ]] || fail "no picture of runs that miss"
losses() { grep '^run' log; }
for slots in 1 2 4; do
  "$fluid" "${small[@]}" --slots "$slots" > log 2>&1
  losses > "losses_$slots"
done
if [[ -s losses_1 ]] && cmp -s losses_1 losses_2 && cmp -s losses_1 losses_4; then
  echo "ok: the same losses for every number of slots"
else
  fail "losses differ between numbers of slots"
fi
refuses "an odd number of sweeps" "3 is not even" --sweeps 3
refuses "too small a square" "--size" --size 8
refuses "no slots" "--slots" --slots 0
refuses "a number that is none" "--iterations" --iterations many
refuses "an unknown device" "abacus" --device abacus
refuses "an unknown option" "--colour" --colour red
: > file
refuses "an output folder that is a file" file --out file

[[ "$failures" == 0 ]] || echo "$failures failed"
exit $((failures > 0))
