#!/usr/bin/env bash
# Runs compilers_tests for a GPU of AMD's that is not there. Ends with 77, which is a skipped test, if Mesa's driver for
# these GPUs is not installed or does not open that one without hardware.
# Usage: run.sh PROGRAM FOLDER_OF_LAYERS FAMILY
set -euo pipefail

program="$1"
export VK_LAYER_PATH="$2" RADV_FORCE_FAMILY="$3"
unset VK_ADD_LAYER_PATH # loaders look at one of the two
folders="$(ls -d /usr/share/vulkan/icd.d /usr/local/share/vulkan/icd.d /etc/vulkan/icd.d 2>/dev/null || true)"
# shellcheck disable=SC2086
driver="$([[ -z "$folders" ]] || find $folders -name 'radeon_icd*.json' -print -quit)"
if [[ -z "$driver" ]]; then
  echo "Mesa's driver for AMD's GPUs (radv) is not installed"
  exit 77
fi
export VK_DRIVER_FILES="$driver" VK_ICD_FILENAMES="$driver" # for newer and older loaders
export VK_INSTANCE_LAYERS=VK_LAYER_WEFT_hardware MESA_SHADER_CACHE_DISABLE=1

# A driver that does not know the family ends the process.
status=0
"$program" --probe || status=$?
case "$status" in
  0) exec "$program" ;;
  3) echo "the layer of $VK_LAYER_PATH was not loaded" && exit 1 ;;
  *) echo "$driver does not open a $RADV_FORCE_FAMILY that is not there" && exit 77 ;;
esac
