# Functions for the tests of the examples; each sources this file first. The first argument of the test is the program,
# which runs in an empty folder. Options of a case override those of `small`, which make a run short.
set -uo pipefail

program="$1"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"
failures=0

fail() {
  echo "FAILED: $1"
  sed 's/^/  | /' log
  failures=$((failures + 1))
}

# refuses NAME TEXT... -- ARGUMENTS: the run must end with exit code 1, and its message must have each TEXT.
refuses() {
  local name="$1" texts=() code=0
  shift
  while [[ "$1" != -- ]]; do
    texts+=("$1")
    shift
  done
  shift
  "$program" "${small[@]}" "$@" > log 2>&1 || code=$?
  [[ "$code" == 1 ]] || { fail "$name: exit code $code instead of 1"; return; }
  for text in "${texts[@]}"; do
    grep -qF -- "$text" log || { fail "$name: no \"$text\" in the message"; return; }
  done
  echo "ok: $name"
}

# draws NAME PICTURE: the previous run must have written the picture.
draws() {
  if [[ -s "$2" ]]; then echo "ok: $1"; else fail "$1: no $2"; fi
}

# Bad input that every example refuses. Called last.
finish() {
  refuses "an unknown device" "abacus" -- --device abacus
  refuses "an unknown option" "--colour" -- --colour red
  : > file
  refuses "an output folder that is a file" file -- --out file
  [[ "$failures" == 0 ]] || echo "$failures failed"
  exit $((failures > 0))
}
