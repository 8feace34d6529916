#!/usr/bin/env bash
# Runs the example `mpi_wave` on 1, 2 and 4 processes, whose results must be the same bits, and on wrong arguments.
# Usage: mpi_wave_test.sh PATH_OF_MPI_WAVE PATH_OF_MPIEXEC
set -euo pipefail
program="$1"
mpiexec="$2"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"

for processes in 1 2 4; do
  "$mpiexec" -n "$processes" "$program" --size 50 --steps 60 --save "$processes.bin"
done
[[ "$(stat -c %s 1.bin)" == 10000 ]]
cmp 1.bin 2.bin
cmp 1.bin 4.bin

for arguments in "--size 1" "--steps none" "--device abacus" "--size 2"; do
  # shellcheck disable=SC2086
  if "$mpiexec" -n 4 "$program" $arguments > log 2>&1; then
    echo "FAILED: $arguments is accepted"
    exit 1
  fi
done
