#!/usr/bin/env bash
# Runs weft-kernels on a library, on a program, on exported files, and on other things.
# Usage: weft_kernels_test.sh TOOL LIBRARY PROGRAM
set -euo pipefail

tool="$1" library="$2" program="$3"
work="$(mktemp -d "${TMPDIR:-/tmp}/weft kernels.XXXXXX")"
trap 'rm -rf "$work"' EXIT
# The test needs no device.
export VK_DRIVER_FILES=/nonexistent VK_ICD_FILENAMES=/nonexistent

# expect TEXT FILE: a line of the file must have the text.
expect() {
  grep -qF -e "$1" "$2" || {
    printf 'no line has "%s":\n' "$1" >&2
    cat "$2" >&2
    exit 1
  }
}
# fails TEXT COMMAND...: the command must end with an error that has the text.
fails() {
  local text="$1"
  shift
  if "$@" >"$work/out" 2>"$work/err"; then
    echo "no error: $*" >&2
    exit 1
  fi
  expect "$text" "$work/err"
}

# The library has four kernels, of which one cannot be exported.
"$tool" list "$library" >"$work/list"
expect 'saxpy              kernel   "saxpy", 3 arguments in 40 bytes, workgroups of 256' "$work/list"
expect 'saxpy.2            kernel' "$work/list"
expect 'needs shaderFloat64' "$work/list"
expect 'prints             kernel   not exported: ' "$work/list"
[[ "$(wc -l <"$work/list")" == 4 ]]

"$tool" dump "$library" --kernel halves_of_doubles --form ir >"$work/ir"
expect 'kernel "halves of doubles"' "$work/ir"
"$tool" dump "$library" -k "halves of doubles" >"$work/spirv"
expect 'OpCapability Float64' "$work/spirv"
"$tool" dump "$library" -k saxpy.2 -f json >"$work/json"
expect '"type": "Array<vec3>"' "$work/json"

fails 'prints is not exported: ' "$tool" export -o "$work/all" "$library"
[[ -s "$work/all/saxpy.spv" && -s "$work/all/saxpy.2.json" && ! -e "$work/all/prints.spv" ]]
"$tool" export -o "$work/one" "$library" --adjoint -k saxpy -k saxpy.adjoint --optimise >"$work/out"
[[ "$(wc -l <"$work/out")" == 4 ]]
[[ "$(cd "$work/one" && echo *.spv)" == 'saxpy.2.adjoint.spv saxpy.2.spv saxpy.adjoint.spv saxpy.spv' ]]

# Exported files can be read again.
"$tool" list "$work/one" >"$work/list"
expect 'saxpy.adjoint    adjoint  "saxpy", 5 arguments' "$work/list"
"$tool" dump "$work/one/saxpy.json" >"$work/spirv"
expect 'OpEntryPoint GLCompute' "$work/spirv"

# The program's kernels are listed as they are launched, with strides and without, and so is the adjoint of its tape.
"$tool" list -- "$program" >"$work/list" 2>"$work/err"
expect 'gradient 8' "$work/err"
expect 'square          kernel   "square", 2 arguments in 36 bytes' "$work/list"
expect 'square.2        kernel' "$work/list"
expect 'square.adjoint  adjoint  "square", 4 arguments' "$work/list"
expect 'says            kernel   not exported: ' "$work/list"
"$tool" export -o "$work/program" --target floor -k square.2 -- "$program" 0 >/dev/null 2>&1
expect '"layout": "strided"' "$work/program/square.2.json"
expect '128,' "$work/program/square.2.json"
"$tool" dump -f ir -k square -- "$program" >"$work/ir" 2>"$work/err"
expect 'kernel "square"' "$work/ir"

# The environment exports without the tool, too.
WEFT_EXPORT_KERNELS="$work/by hand" "$program" >/dev/null
[[ -s "$work/by hand/square.adjoint.spv" && -s "$work/by hand/square.ir" && -s "$work/by hand/says.refused" ]]
fails 'no target is called "gpu"' env WEFT_EXPORT_KERNELS="$work/x" WEFT_EXPORT_TARGET=gpu "$program"

fails 'ended with 3' "$tool" list -- "$program" 3
fails 'a program is run: weft-kernels list -- PROGRAM' "$tool" list "$program"
fails 'nothing.so' "$tool" list "$work/nothing.so"
fails 'cannot be run' "$tool" list -- "$work/nothing"
fails 'launched no kernels' "$tool" list -- true
fails 'no kernel is called "axpy"; there are saxpy, halves_of_doubles, saxpy.2, prints' "$tool" list "$library" -k axpy
fails 'no target is called "gpu"' "$tool" list "$library" --target gpu
fails 'neither a file nor a program' "$tool" list
fails '--adjoint is for libraries' "$tool" list --adjoint -- "$program"
fails '--adjoint is for libraries' "$tool" list --adjoint "$work/one"
fails '--adjoint is for libraries' "$tool" list "$work/one/saxpy.json" --adjoint
fails 'no program stands after --' "$tool" list --
fails 'cannot be read' "$tool" list "$work/nothing.json"
mkfifo "$work/pipe.so" "$work/pipe.json"
fails 'pipe.so is no regular file' timeout 20 "$tool" list "$work/pipe.so"
fails 'cannot be read' timeout 20 "$tool" list "$work/pipe.json"
echo '{}' >"$work/empty.json"
fails 'empty.json: reflection: $.format is missing' "$tool" list "$work/empty.json"
cp "$work/one/saxpy.json" "$work/empty.json"
cp "$work/one/saxpy.2.spv" "$work/empty.spv"
fails 'the .spv beside it is another module' "$tool" list "$work/empty.json"
fails 'cannot be written' "$tool" export -o "$work/list" "$library" -k saxpy
echo "weft-kernels does what it says"
