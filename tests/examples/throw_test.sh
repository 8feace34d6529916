#!/usr/bin/env bash
# The example `throw` with bad input, and with too few throws to land: each must end with exit code 1 and a message that
# says what is wrong. Usage: throw_test.sh PATH_OF_THROW. Runs in a folder of its own, on the reference device.
set -uo pipefail

throw="$1"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"
failures=0
small=(--device reference --rings 20 --steps 300 --iterations 2 --samples 1 --width 16 --height 9 --out out)

# refuses NAME TEXT ARGUMENTS: the message must hold the text.
refuses() {
  local name="$1" text="$2" code=0
  shift 2
  "$throw" "${small[@]}" "$@" > log 2>&1 || code=$?
  if [[ "$code" == 1 ]] && grep -qF -- "$text" log; then
    echo "ok: $name"
  else
    echo "FAILED: $name: exit code $code, or no \"$text\""
    sed 's/^/  | /' log
    failures=$((failures + 1))
  fi
}

refuses "two throws are too few" "the loss did not fall"
[[ -s out/throw.png ]] || { echo "FAILED: no picture of throws that miss"; failures=$((failures + 1)); }
refuses "an odd number of steps" "301 is not even" --steps 301
refuses "too few steps" "--steps" --steps 10
refuses "no slots" "--slots" --slots 0
refuses "a number that is none" "--iterations" --iterations many
refuses "an unknown device" "abacus" --device abacus
refuses "an unknown option" "--colour" --colour red
: > file
refuses "an output folder that is a file" file --out file

[[ "$failures" == 0 ]] || echo "$failures failed"
exit $((failures > 0))
