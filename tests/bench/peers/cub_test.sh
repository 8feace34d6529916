#!/usr/bin/env bash
# Compiles cub.cu and runs it on a few elements: its own checks must hold if there is a CUDA device.
# Usage: cub_test.sh NVCC FOLDER
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
"$1" -O1 -std=c++17 -o "$2/cub" "$here/cub.cu"
rm -f "$2/cub.txt"
"$2/cub" 10007 2 20011 3 "$2/cub.txt"
if [[ -e "$2/cub.txt" ]]; then
  read -r keys pairs keys_in_a_row pairs_in_a_row scan <"$2/cub.txt"
  echo "keys $keys s, pairs $pairs s, in a row $keys_in_a_row s, $pairs_in_a_row s, scan $scan s"
else
  echo "there is no CUDA device here: compiled, not run"
fi
