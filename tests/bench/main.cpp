// weft_bench: the suites in the order of the table.
#include "harness.h"

int main(int argc, char** argv) {
  weft::bench::Harness harness;
  weft::bench::add_codegen(harness);
  weft::bench::add_codegen_library(harness);
  weft::bench::add_structs(harness);
  weft::bench::add_ladders(harness);
  weft::bench::add_compile(harness);
  weft::bench::add_launch(harness);
  weft::bench::add_runtime(harness);
  weft::bench::add_gradient(harness);
  weft::bench::add_algorithms(harness);
  weft::bench::add_geometry(harness);
  weft::bench::add_geometry_rays(harness);
  weft::bench::add_geometry_queries(harness);
  weft::bench::add_hash_grid(harness);
  weft::bench::add_geometry_memory(harness);
  weft::bench::add_volume(harness);
  weft::bench::add_cpu(harness);
  weft::bench::add_cpu_algorithms(harness);
  weft::bench::add_cpu_builds(harness);
  weft::bench::add_cpu_rays(harness);
  weft::bench::add_cpu_queries(harness);
  weft::bench::add_cpu_hash_grid(harness);
  weft::bench::add_cpu_launch(harness);
  return harness.main(argc, argv);
}
