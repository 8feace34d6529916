#!/usr/bin/env bash
# Runs build/gpu.tar.xz (see pack.sh) on a machine with a GPU. Logs go to the folder that is named first. Exits with 1
# if something failed.
# Usage: run.sh FOLDER [tests] [bench] [cases] [profile] [examples]
#   SHARDS     processes of device tests at once (8)
#   FILTER     of device tests (*/gpu)
#   SUITES     of bench (algorithms geometry runtime launch); ROUNDS of these and of cases (9)
#   CASES      of cases: parts of their names, between semicolons
#   PROFILED   suites of profile (algorithms); CASE, a part of their cases' names
#   LIMIT      seconds that each part may take (180)
# Leaves a link at the folder of the build, by which the tests find files of the checkout.
set -uo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
logs="$(mkdir -p "${1:?a folder for logs}" && cd "$1" && pwd)"
shift
packed="$(mktemp -d)"
trap 'rm -rf "$packed"' EXIT
tar -C "$packed" -xJf "$root/build/gpu.tar.xz" || exit 1
failed=0
export LD_LIBRARY_PATH="$packed/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export VK_ADD_LAYER_PATH="$packed/layers" WEFT_CACHE_DIR="$packed/cache"
# Tests look for files where they were built.
built="$(cat "$packed/source_folder")"
if [[ ! -e "$built" ]]; then mkdir -p "$(dirname "$built")" && ln -s "$root" "$built"; fi
if [[ -d "$packed/data" && ! -e "$built/../shared/data" ]]; then
  mkdir -p "$(dirname "$built")/shared" && ln -sfn "$packed/data" "$(dirname "$built")/shared/data"
fi
# NVIDIA's files may be in a place where the loader does not look.
if [[ -z "${VK_DRIVER_FILES:-}" && -z "$(ls /usr/share/vulkan/icd.d /etc/vulkan/icd.d 2>/dev/null)" ]]; then
  found="$(find /usr/local /opt -name nvidia_icd.json 2>/dev/null | head -n 1)"
  [[ -n "$found" ]] && export VK_DRIVER_FILES="$found"
fi
if [[ -e "$packed/bin/cub" ]]; then
  printf '#!/bin/bash\nwhile (($#)); do if [[ "$1" == -o ]]; then cp "%s" "$2"; fi; shift; done\n' "$packed/bin/cub" \
    >"$packed/bin/nvcc"
  chmod +x "$packed/bin/nvcc"
  export WEFT_NVCC="$packed/bin/nvcc"
fi
limit="${LIMIT:-180}"
say() { echo "[$(date +%H:%M:%S)] $*"; }
fail() {
  failed=1
  say "failed: $*"
}
bench() { # suite, then further options; the log is named after both
  local log="$logs/bench_$1${2:+_${2#--}}.txt"
  timeout "$limit" "$packed/bin/weft_bench" --verbose --suite "$1" "${@:2}" --out "$logs/bench.csv" >"$log" 2>&1 ||
    fail "suite $1, status $?"
  cat "$log"
}

say "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null), $(nproc) CPUs"
cat "$packed/commit"
[[ "$(head -n 1 "$packed/commit")" == "$(git -C "$root" rev-parse HEAD 2>/dev/null)" ]] ||
  say "the checkout may be of another commit than what was packed"
"$packed/bin/device_tests" --report-devices 2>&1 | tail -n 5
for part in "$@"; do
  say "$part"
  case "$part" in
    bench)
      for suite in ${SUITES:-algorithms geometry runtime launch}; do bench "$suite" --rounds "${ROUNDS:-9}"; done
      ;;
    cases)
      IFS=';' read -ra names <<<"${CASES:?parts of the names of cases}"
      for name in "${names[@]}"; do
        log="$logs/case_${name//[^A-Za-z0-9]/_}.txt"
        timeout "$limit" "$packed/bin/weft_bench" --verbose --case "$name" --rounds "${ROUNDS:-9}" >"$log" 2>&1 ||
          fail "case $name, status $?"
        cat "$log"
      done
      ;;
    profile)
      for suite in ${PROFILED:-algorithms}; do bench "$suite" --profile --rounds 3 ${CASE:+--case "$CASE"}; done
      ;;
    examples)
      for name in dem raycast collide embed; do
        (mkdir -p "$logs/$name" && cd "$logs/$name" && timeout "$limit" "$packed/bin/$name" >log.txt 2>&1) ||
          fail "$name, status $?"
        tail -n 6 "$logs/$name/log.txt"
      done
      ;;
    tests)
      shards="${SHARDS:-8}"
      processes=()
      for ((k = 0; k < shards; ++k)); do
        GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$k timeout "$limit" "$packed/bin/device_tests" \
          --gtest_filter="${FILTER:-*/gpu}" >"$logs/tests_$k.txt" 2>&1 &
        processes+=($!)
      done
      timeout "$limit" "$packed/bin/unit_tests" --gtest_filter='Vulkan*' >"$logs/unit.txt" 2>&1 || fail "unit tests"
      tail -n 1 "$logs/unit.txt"
      all=0
      for ((k = 0; k < shards; ++k)); do
        log="$logs/tests_$k.txt"
        wait "${processes[k]}" || fail "process $k, status $?"
        passed="$(grep -c '^\[       OK' "$log")"
        all=$((all + passed))
        echo "process $k: $passed passed; $(tail -n 1 "$log")"
        grep '^\[  FAILED  \].*(' "$log"
        # Prints the last test of a process that was stopped in the middle of it.
        grep '^\[ RUN\|^\[  *OK\|^\[  FAILED\|^\[  SKIPPED' "$log" | tail -n 1 | grep '^\[ RUN'
      done
      ((all > 0)) || fail "no test was run"
      ;;
    *) fail "unknown part $part" ;;
  esac
done
say "done"
exit "$failed"
