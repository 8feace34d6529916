#!/usr/bin/env bash
# Builds and runs the benchmarks: all, or the suite named. Prints a table and writes build/bench/summary.csv.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
bash cmake/install_packages.sh
cmake --preset release --log-level=WARNING
cmake --build --preset release --target weft_bench
mkdir -p build/bench
arguments=()
if (($#)) && [[ "$1" != -* ]]; then
  arguments+=(--suite "$1")
  shift
fi
exec build/release/weft_bench ${arguments[@]+"${arguments[@]}"} "$@"
