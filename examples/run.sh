#!/usr/bin/env bash
# Installs what is missing, builds the examples and runs the main one, `drop`, on the best device present.
# Arguments go to the example: bash examples/run.sh --mesh bunny.obj
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
case " $* " in
  *" -h "* | *" --help "*)
    sed -n '2,3s/^# //p' "${BASH_SOURCE[0]}"
    if [[ -x "$root/build/release/examples/drop" ]]; then exec "$root/build/release/examples/drop" --help; fi
    echo "After the first run, this tells the example's options too."
    exit 0
    ;;
esac
bash "$root/cmake/install_packages.sh"
(cd "$root" && cmake --preset release --log-level=WARNING && cmake --build --preset release --target drop)

arguments=("$@")
out="$root/build/drop"
given=0
for ((i = 0; i < ${#arguments[@]}; i++)); do
  case "${arguments[i]}" in
    --out) out="${arguments[i + 1]:-}" given=1 ;;
    --out=*) out="${arguments[i]#--out=}" given=1 ;;
  esac
done
if [[ "$given" == 0 ]]; then
  mkdir -p "$out"
  arguments+=(--out "$out")
fi
# The example runs in the caller's folder, because paths in the arguments are the caller's.
"$root/build/release/examples/drop" ${arguments[@]+"${arguments[@]}"}
echo "The pictures are in $out"
