#!/usr/bin/env bash
# Gives the example `drop` bad input: each run must end with exit code 1 and a message that says what is wrong.
# Usage: drop_test.sh PATH_OF_DROP. Uses the reference device, so that no GPU is needed.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
small=(--device reference --frames 1 --substeps 2 --pictures 1 --samples 1 --width 16 --height 9)

accepts() {
  local name="$1" code=0
  shift
  rm -rf pictures
  "$program" "${small[@]}" "$@" > log 2>&1 || code=$?
  [[ "$code" == 0 && -s pictures/drop.png ]] || { fail "$name: exit code $code, or no picture"; return; }
  echo "ok: $name"
}

ln -s "$program" drop  # the pictures cannot go to a folder of this name
mesh() { printf '%b' "$1" > "$2"; }
tetrahedron='v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n'

mesh "${tetrahedron}f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n" good.obj
accepts "a tetrahedron" --mesh good.obj
mesh "${tetrahedron}f -4 -2 -3\nf -4 -3 -1\nf -4 -1 -2\nf -3 -2 -1\n" relative.obj
accepts "indices counted from the end" --mesh relative.obj
mesh 'v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n' quad.obj
accepts "one quad, flat" --mesh quad.obj
mesh 'v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\n' line.obj
accepts "a triangle without area" --mesh line.obj
mesh 'v 0 0 0\nv 1e-30 0 0\nv 0 1e-30 0\nf 1 2 3\n' tiny.obj
accepts "a mesh as small as numbers go" --mesh tiny.obj
mesh "mtllib missing.mtl\r\n${tetrahedron}usemtl none\r\nf 1/1/1 3//2 2\r\n" dos.obj
accepts "line ends of another system, a missing material" --mesh dos.obj

# A folder without drivers stands in for a machine without Vulkan.
without_vulkan=(env -u WEFT_DEVICE VK_DRIVER_FILES=/nowhere/driver.json VK_ICD_FILENAMES=/nowhere/driver.json)
runs_on() {
  local name="$1" device="$2" code=0
  shift 2
  rm -rf pictures
  "$@" "$program" "${small[@]:2}" --mesh good.obj > log 2>&1 || code=$?
  [[ "$code" == 0 && -s pictures/drop.png ]] || { fail "$name: exit code $code, or no picture"; return; }
  grep -q "^device    $device (" log || { fail "$name: another device than $device"; return; }
  echo "ok: $name"
}
runs_on "machine code without Vulkan" cpu "${without_vulkan[@]}"
runs_on "the interpreter with neither Vulkan nor LLVM" reference "${without_vulkan[@]}" WEFT_LLVM=none
grep -q '^weft: device "cpu" is the interpreter, which is slower: .*WEFT_LLVM' log ||
  fail "nothing says why it is the interpreter"
[[ "$(grep -c '^weft: ' log)" == 1 ]] || fail "it is said more than once"

refuses "a file that is not there" nowhere.obj "cannot be read" -- --mesh nowhere.obj
mkdir folder.obj
refuses "a folder" folder.obj "cannot be" -- --mesh folder.obj
: > empty.obj
refuses "an empty file" empty.obj "empty" -- --mesh empty.obj
mesh 'hello\nworld\n' text.obj
refuses "a text" text.obj "no triangles" -- --mesh text.obj
head -c 4096 "$program" > binary.obj
refuses "a program" binary.obj -- --mesh binary.obj
mesh "$tetrahedron" points.obj
refuses "vertices without faces" points.obj "no triangles" -- --mesh points.obj
mesh "${tetrahedron}f 1 2 9\n" range.obj
refuses "an index out of range" range.obj "damaged" -- --mesh range.obj
mesh "${tetrahedron}f 1 2 3 9\n" range4.obj
refuses "an index out of range in a quad" range4.obj "damaged" -- --mesh range4.obj
mesh "${tetrahedron}f 1 2 3 4 99999999\n" range5.obj
refuses "an index out of range in a pentagon" range5.obj "damaged" -- --mesh range5.obj
mesh "${tetrahedron}f 1 2 0\n" zero.obj
mesh "${tetrahedron}f 1 2 3\nf 1 2 3 9\n" some.obj
refuses "an index out of range beside a good face" some.obj "damaged" -- --mesh some.obj
refuses "index 0" zero.obj "damaged" -- --mesh zero.obj
mesh "${tetrahedron}f -1 -2 -9\n" negative.obj
refuses "a negative index out of range" negative.obj "damaged" -- --mesh negative.obj
mesh "${tetrahedron}f 1 2\n" short.obj
refuses "a face cut short" short.obj "no triangles" -- --mesh short.obj
mesh "${tetrahedron}f 1 1 1\n" point.obj
refuses "a face that is one point" point.obj "points or lines" -- --mesh point.obj
mesh "v nan 0 0\n${tetrahedron}f 1 2 3\n" nan.obj
refuses "a position that is no number" nan.obj "not finite" -- --mesh nan.obj
mesh "v 1e39 0 0\n${tetrahedron}f 1 2 3\n" infinite.obj
refuses "a position beyond all numbers" infinite.obj "not finite" -- --mesh infinite.obj

refuses "a picture without pixels" "--width" -- --mesh good.obj --width 0
refuses "more pictures than a sheet holds" "--pictures" -- --mesh good.obj --width 8192 --height 8192 --pictures 100
refuses "no frames" "--frames" -- --mesh good.obj --frames 0
refuses "a number that is none" "--substeps" -- --mesh good.obj --substeps many
finish
