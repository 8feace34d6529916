# What the tests of the examples share; each sources it first. The program is the first argument of the test, which goes
# on in an empty folder. Between the options of `small`, which make a run short, and those of a case the latter win.
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

# refuses NAME TEXT... -- ARGUMENTS: it must end with exit code 1, and the message must hold each TEXT.
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

# draws NAME PICTURE: there must be one, by the run before.
draws() {
  if [[ -s "$2" ]]; then echo "ok: $1"; else fail "$1: no $2"; fi
}

# What every example refuses. Called last.
finish() {
  refuses "an unknown device" "abacus" -- --device abacus
  refuses "an unknown option" "--colour" -- --colour red
  : > file
  refuses "an output folder that is a file" file -- --out file
  [[ "$failures" == 0 ]] || echo "$failures failed"
  exit $((failures > 0))
}
