#!/usr/bin/env bash
# Tests the example `embed`: its check of the picture finds what is wrong; the exported step draws the same without
# weft; windows, if a virtual display is installed (Xvfb); and bad input, each with a message that says what is wrong.
# Usage: embed_test.sh PATH_OF_EMBED, with embed_exported beside it. Uses a software Vulkan device.
sources="$(cd "$(dirname "${BASH_SOURCE[0]}")/../../examples/embed" && pwd)"
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
small=(--device software --drops 50 --frames 3 --substeps 2 --width 320 --height 180)
embed="$program"
exported="$(dirname "$program")/embed_exported"

"$embed" "${small[@]}" --validate --out weft > log 2>&1 || fail "a small fountain"
draws "a picture of a small fountain" weft/embed.png

# The renderer may include its own headers, Vulkan's and the loader's, and no others of weft.
grep -rnE '#include.*(weft|runtime|frontend|backends)/' "$sources/plain" "$sources/exported" |
  grep -v '<weft/loader/loader.h>' > log && fail "the renderer includes weft" || echo "ok: the renderer includes nothing of weft"
if command -v ldd > /dev/null; then
  ldd "$exported" > log
  grep -q 'libweft\.' log && fail "embed_exported is linked with weft" || echo "ok: embed_exported runs without weft"
fi
"$embed" --export kernels > log 2>&1 || fail "the export of the step"
program="$exported"
"$exported" "${small[@]}" --validate --kernel kernels/fly.json --out plain > log 2>&1 || fail "the exported step"
cmp weft/embed.png plain/embed_exported.png > log 2>&1 || fail "the pictures of weft and of the exported step differ"

refuses "a kernel that is not there" nowhere.json -- --kernel nowhere.json
mkdir damaged
head -c 100 kernels/fly.json > damaged/fly.json
cp kernels/fly.spv damaged/
refuses "a kernel that is damaged" damaged/fly.json -- --kernel damaged/fly.json
sed 's/"velocity"/"speed"/' kernels/fly.json > damaged/fly.json
refuses "a kernel with other arguments" "called velocity" -- --kernel damaged/fly.json
sed 's/"bufferDeviceAddress"/"bufferDeviceTelephone"/' kernels/fly.json > damaged/fly.json
refuses "a kernel that needs more than the program knows" "bufferDeviceTelephone" -- --kernel damaged/fly.json
refuses "no kernel" "--kernel" --
refuses "an exported step that is not taken" "drops are missing in the picture" -- --kernel kernels/fly.json --substeps 0

program="$embed"
refuses "drops that nobody moves" "drops are missing in the picture" -- --substeps 0
: > file
refuses "a folder for the kernel that is a file" file -- --export file
rm file
unset DISPLAY WAYLAND_DISPLAY
"$embed" "${small[@]}" --window > log 2>&1
if command -v xvfb-run > /dev/null && ! grep -q "built without GLFW" log; then
  xvfb-run -a "$embed" "${small[@]}" --window --validate --out window > log 2>&1 || fail "a window"
  cmp weft/embed.png window/embed.png > log 2>&1 || fail "the picture is another with a window"
  echo "ok: a window"
else
  echo "left out: a window (no Xvfb, or built without GLFW)"
fi
refuses "a window without a display" "--window" -- --window
VK_DRIVER_FILES=/nowhere/driver.json VK_ICD_FILENAMES=/nowhere/driver.json \
  refuses "a machine without Vulkan" "there is no Vulkan driver on this machine" --
refuses "no drops" "--drops" -- --drops 0
refuses "frames of another time" "--frames" -- --frames -1
refuses "a picture without pixels" "--width" -- --width 0
refuses "a number that is none" "--substeps" -- --substeps many
finish
