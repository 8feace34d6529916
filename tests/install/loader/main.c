/* A user's program in C: opens the exported kernel "axpy" of the consumer and fills its argument block. */
#include <stdio.h>
#include <string.h>
#include <weft/loader/loader.h>

static int check(weft_loader_status status) {
  if (status != WEFT_LOADER_OK) printf("%s\n", weft_loader_error());
  return status == WEFT_LOADER_OK;
}

int main(int argc, char** argv) {
  weft_kernel* kernel = NULL;
  weft_kernel_info info;
  weft_groups groups;
  unsigned char block[128];
  const int64_t n = 1000;
  const float a = 2;
  uint64_t address;
  weft_argument y;
  if (argc != 2 || !check(weft_kernel_open(argv[1], &kernel)) || !check(weft_kernel_describe(kernel, &info))) return 1;
  if (strcmp(info.name, "axpy") != 0 || info.argument_count != 3 || info.block_bytes > sizeof block) return 1;
  if (!check(weft_block_clear(kernel, block)) || !check(weft_block_set_array(kernel, block, 0, 0x10000, &n, NULL)) ||
      !check(weft_block_set_array(kernel, block, 1, 0x20000, &n, NULL)) ||
      !check(weft_block_set_value(kernel, block, 2, &a, sizeof a)) ||
      !check(weft_block_set_threads(kernel, block, &n, 1, 65535, &groups)) ||
      !check(weft_kernel_argument(kernel, 0, &y)))
    return 1;
  memcpy(&address, block + y.offset, sizeof address);
  if (address != 0x10000 || groups.x != (1000 + info.workgroup_size - 1) / info.workgroup_size) return 1;
  weft_kernel_close(kernel);
  puts("right block");
  return 0;
}
