// Every mistake in a launch or a kernel is an Error that names the kernel, the argument and the line.
#include <weft/geometry.h>
#include <weft/runtime/graph.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "../../../frontend/support/platform.h"
#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(Errors);

auto scale() {
  return kernel("scale", [](Arr<float> x, Float s) { x[tid()] *= s; });
}

TEST_P(Errors, null_and_empty_arrays_are_named) {
  const std::string null = error_of([&] { launch(scale(), 4, Array<float>(), 2.f); });
  expect_contains(null, "kernel \"scale\"");
  expect_contains(null, "argument 1 is a null array");
  expect_contains(null, "errors_test.cpp:");
  expect_contains(error_of([&] { launch(scale(), 4, zeros<float>(device(), 0), 2.f); }),
                  "argument 1 is an empty array");
}

TEST_P(Errors, launches_over_no_threads_do_nothing) {
  Array<float> x = full<float>(device(), 4, 1.f);
  launch(scale(), 0, x, 2.f);
  launch(scale(), 0, zeros<float>(device(), 0), 2.f);
  EXPECT_EQ(x.at(0), 1);
}

TEST_P(Errors, negative_and_excessive_launches_are_refused) {
  Array<float> x = full<float>(device(), 4, 1.f);
  expect_contains(error_of([&] { launch(scale(), -1, x, 2.f); }), "dimension 0 of the launch is negative (-1)");
  expect_contains(error_of([&] { launch(scale(), std::int64_t(1) << 31, x, 2.f); }), "2147483648 threads");
  const std::string rank = error_of([&] { launch(scale(), {2, 2}, x, 2.f); });
  expect_contains(rank, "1 coordinate(s)");
  expect_contains(rank, "2 dimension(s)");
}

TEST_P(Errors, arrays_on_several_devices_are_refused) {
  Device other(on_reference() ? "cpu" : "reference");
  const auto add = kernel("add", [](Arr<float> a, Arr<const float> b) { a[tid()] += b[tid()]; });
  const std::string text = error_of([&] { launch(add, 4, zeros<float>(device(), 4), zeros<float>(other, 4)); });
  expect_contains(text, "argument 1 is on device");
  expect_contains(text, "argument 2 is on device");
  expect_contains(error_of([&] { launch(other.stream(), scale(), 4, zeros<float>(device(), 4), 1.f); }),
                  "the stream is on device");
}

TEST_P(Errors, a_native_break_out_of_a_traced_block_is_found) {
  Array<float> x = zeros<float>(device(), 4);
  auto in_range = kernel("in_range", [](Arr<float> x) {
    for (auto i : range(4)) {
      x[i] = 1;
      break;
    }
  });
  expect_contains(error_of([&] { launch(in_range, 1, x); }), "left by a native break");
  auto in_if = kernel("in_if", [](Arr<float> x) {
    for (int k = 0; k < 3; ++k) {
      If (x[0] > 1) {
        x[0] = 2;
        break;
      }
    }
  });
  const int line = __LINE__ - 6;
  const std::string text = error_of([&] { launch(in_if, 1, x); });
  expect_contains(text, "body of If is left by a native break");
  expect_contains(text, "errors_test.cpp:" + std::to_string(line));
  auto returns = kernel("returns", [](Arr<float> x) {
    While (x[0] > 1) {
      return;
    }
  });
  expect_contains(error_of([&] { launch(returns, 1, x); }), "body of While is left by a native break, return or goto");
}

TEST_P(Errors, misplaced_control_flow_is_found) {
  Array<float> x = zeros<float>(device(), 4);
  expect_contains(error_of([&] { launch(kernel("k", [](Arr<float>) { Break(); }), 1, x); }),
                  "Break() outside a traced loop");
  expect_contains(error_of([&] { launch(kernel("k", [](Arr<float>) { Continue(); }), 1, x); }),
                  "Continue() outside a traced loop");
  expect_contains(
      error_of([&] { launch(kernel("k", [](Arr<float> x) { IfChain().else_([&] { x[0] = 1; }); }), 1, x); }),
      "Else does not follow an If");
  expect_contains(error_of([&] {
                    launch(kernel("k",
                                  [](Arr<float> x) {
                                    IfChain chain = if_(x[0] > 0, [&] { x[0] = 1; });
                                    x[1] = 2;
                                    chain.else_([&] { x[0] = 3; });
                                  }),
                           1, x);
                  }),
                  "Else does not follow an If");
}

TEST_P(Errors, values_outside_their_block_or_kernel_are_found) {
  Array<float> x = zeros<float>(device(), 4);
  auto leaks = kernel("leaks", [](Arr<float> x) {
    std::vector<Float> kept;
    If (x[0] > 0) {
      kept.push_back(x[0] * 2);
    }
    x[1] = kept[0];
  });
  expect_contains(error_of([&] { launch(leaks, 1, x); }), "outside the block in which it was declared");
  expect_contains(error_of([] { Float(1.f) + 2; }), "outside a kernel");
  expect_contains(error_of([&] {
                    launch(kernel("outer",
                                  [&](Arr<float> y) {
                                    y[0] = 1;
                                    launch(scale(), 1, x, 1.f);
                                  }),
                           1, x);
                  }),
                  "while another kernel is traced");
  std::vector<Float> captured;
  auto keeps = kernel("keeps", [&](Arr<float> x) { captured.push_back(x[0] * 2); });
  launch(keeps, 1, x);
  auto uses = kernel("uses", [&](Arr<float> x) { x[0] = captured[0]; });
  expect_contains(error_of([&] { launch(uses, 1, x); }), "of another kernel, or of another trace");
  std::function<void()> again;
  auto recursive = kernel("recursive", [&](Arr<float>) { again(); });
  again = [&] { launch(recursive, 1, x); };
  expect_contains(error_of([&] { launch(recursive, 1, x); }), "while another kernel is traced");
}

TEST_P(Errors, integers_that_do_not_fit_a_parameter_are_refused) {
  Array<int> x = zeros<int>(device(), 4);
  auto put = kernel("put", [](Arr<int> x, Int v) noexcept { x[0] = v; });
  launch(put, 1, x, std::int64_t(-5));
  EXPECT_EQ(x.at(0), -5);
  const std::string text = error_of([&] { launch(put, 1, x, std::int64_t(1) << 33); });
  expect_contains(text, "kernel \"put\"");
  expect_contains(text, "argument 2: the integer is out of the range");
  expect_contains(text, "errors_test.cpp:");
  expect_contains(error_of([&] { launch(put, 1, x, 4'000'000'000u); }), "out of the range");
  // Each component of a vector is checked as well.
  auto put_vector = kernel("put a vector", [](Arr<int> x, Vec3i v) { x[0] = v.x + v.y + v.z; });
  launch(put_vector, 1, x, vec<3, std::int64_t>(1, -2, 3));
  EXPECT_EQ(x.at(0), 2);
  expect_contains(error_of([&] { launch(put_vector, 1, x, vec<3, std::int64_t>(0, 5'000'000'000, 0)); }),
                  "argument 2: the integer is out of the range");
  expect_contains(error_of([&] { launch(put_vector, 1, x, vec<3, std::uint32_t>(0, 0, 4'000'000'000u)); }),
                  "out of the range");
}

TEST_P(Errors, structures_that_cannot_be_used_are_named) {
  const Array<float> x = zeros<float>(device(), 1);
  const auto refused = [](const std::string& text, const char* why) {
    expect_contains(text, why);
    expect_contains(text, "kernel \"ask\"");
    expect_contains(text, "errors_test.cpp:");
  };
  const auto ask_mesh =
      kernel("ask", [](Arr<float> x, Var<MeshArrays> mesh) { x[0] = Float(mesh.tree.nodes.shape(0)); });
  const auto ask_grid =
      kernel("ask", [](Arr<float> x, Var<HashGridArrays> grid) { x[0] = Float(grid.points.shape(0)); });
  const auto ask_tree = kernel("ask", [](Var<BvhData> tree, Arr<float> x) { x[0] = Float(tree.nodes.shape(0)); });
  Mesh mesh(device(), shapes::grid(1, 1));
  launch(ask_mesh, 1, x, mesh);
  EXPECT_GT(x.at(0), 0);
  refused(error_of([&] { launch(ask_mesh, 1, x, Mesh()); }), "argument 2: a null mesh is used");
  refused(error_of([&] { launch(ask_grid, 1, x, HashGrid(device(), 4, 4, 4)); }),
          "argument 2: a hash grid is used before it was built");
  refused(error_of([&] { launch(ask_tree, 1, Bvh(), x); }), "argument 1: a null hierarchy of boxes is used");
  Array<int> indices = mesh.indices();
  indices.zero();
  refused(error_of([&] { launch(ask_mesh, 1, x, mesh); }), "argument 2: the indices of a mesh have changed");
  // Errors in an argument that is set for a node of a graph are reported, too.
  const Bvh tree(device(), zeros<vec3>(device(), 3), zeros<vec3>(device(), 3));
  GraphNode node;
  const Graph graph = capture(device(), [&] {
    launch(ask_tree, 1, tree, x);
    node = captured_launch();
  });
  refused(error_of([&] { graph.set(node, ask_tree, Bvh(), x); }), "argument 1: a null hierarchy");
}

TEST(Reference, names_the_kernel_that_was_launched) {
  Device reference("reference");
  Array<float> x = zeros<float>(reference, 4);
  auto first = kernel("first", [](Arr<float> x) { x[tid() * 1000] = 1; });
  auto second = kernel("second", [](Arr<float> x) { x[tid() * 1000] = 1; });
  launch(first, 1, x);
  expect_contains(error_of([&] { launch(second, 2, x); }), "kernel \"second\"");
}

Int factorial(Int n) {
  Int r = 1;
  If (n > 1) {
    r = n * factorial(n - 1);
  }
  return r;
}

TEST_P(Errors, recursion_is_found) {
  Array<int> x = zeros<int>(device(), 4);
  expect_contains(error_of([&] { launch(kernel("k", [](Arr<int> x) { x[0] = factorial(x[1]); }), 1, x); }),
                  "call itself");
}

TEST(Reference, names_the_line_of_a_copy_between_elements) {
  Device reference("reference");
  Array<float> x = zeros<float>(reference, 4);
  const std::string text = error_of([&] { launch(kernel("k", [](Arr<float> x) { x[tid()] = x[tid() + 1]; }), 4, x); });
  expect_contains(text, "errors_test.cpp:");
  expect_contains(text, "thread 3 reads");
}

TEST_P(Errors, coordinates_are_asked_for_in_one_number) {
  Array<float> x = zeros<float>(device(), 4);
  auto mixed = kernel("mixed", [](Arr<float> x) {
    auto [i, j] = tid<2>();
    x[i + j] = Float(tid());
  });
  expect_contains(error_of([&] { launch(mixed, {2, 2}, x); }), "1 coordinate here, but for 2 coordinates before");
}

TEST_P(Errors, literals_that_do_not_fit_are_found) {
  Array<std::uint8_t> x = zeros<std::uint8_t>(device(), 4);
  expect_contains(error_of([&] { launch(kernel("k", [](Arr<std::uint8_t> x) { x[0] = 256; }), 1, x); }),
                  "256 is out of the range of uint8");
  Array<half> h = zeros<half>(device(), 4);
  expect_contains(error_of([&] { launch(kernel("k", [](Arr<half> h) { h[0] = 1e6f; }), 1, h); }),
                  "out of the range of float16");
}

TEST_P(Errors, ranges_that_do_not_advance_are_found) {
  Array<int> x = zeros<int>(device(), 4);
  const auto stuck = kernel("stuck", [](Arr<int> x) {
    for (auto i : range(0, 4, 0)) x[i] = 1;
  });
  const std::string error = error_of([&] { launch(stuck, 1, x); });
  expect_contains(error, "range() with a step of 0");
  expect_contains(error, "errors_test.cpp:");
  const auto traced = kernel("traced", [](Arr<int> x, Int step) {
    for (auto i : range(0, 4, step)) x[i] = 1;
  });
  launch(traced, 1, x, 0);
  EXPECT_EQ(x.to_vector(), (std::vector<int>{0, 0, 0, 0})) << "no values";
  launch(traced, 1, x, 2);
  EXPECT_EQ(x.to_vector(), (std::vector<int>{1, 0, 1, 0}));
}

TEST_P(Errors, a_failed_trace_leaves_everything_usable) {
  Array<float> x = full<float>(device(), 4, 3.f);
  for (int k = 0; k < 3; ++k)
    error_of([&] {
      launch(kernel("k",
                    [](Arr<float> x) {
                      for (auto i : range(3)) {
                        If (x[i] > 0) {
                          Break();
                        }
                      }
                      Break();
                    }),
             1, x);
    });
  launch(scale(), 4, x, 2.f);
  EXPECT_EQ(x.at(3), 6);
}

TEST(Devices, that_do_not_exist_are_named_with_those_that_do) {
  expect_contains(error_of([] { Device("metal:0"); }), "there is no device \"metal:0\"");
  expect_contains(error_of([] { Device("metal:0"); }), "reference");
  const std::string text = error_of([] { Device("vulkan:99"); });
  expect_contains(text, "no device");
  expect_contains(text, "99");
  expect_contains(error_of([] { Device("vulkan:x"); }), "vulkan:x");
}

#ifdef __linux__
TEST(Devices, without_a_vulkan_loader_are_the_reference_alone) {
  namespace fs = std::filesystem;
  // Files with the loader's names that are no libraries stand where the system looks first.
  const fs::path folder = fs::temp_directory_path() / ("weft_no_loader_" + std::to_string(platform::process_id()));
  fs::create_directories(folder);
  for (const char* name : {"libvulkan.so.1", "libvulkan.so"}) std::ofstream(folder / name) << "nothing";
  const std::string command = "LD_LIBRARY_PATH='" + folder.string() + "' '" + test::program_path() +
                              "' --report-devices > '" + (folder / "out").string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::stringstream text;
  text << std::ifstream(folder / "out").rdbuf();
  fs::remove_all(folder);
  expect_contains(text.str(), "no device: there is no Vulkan loader");
  expect_contains(text.str(), "reference works");
}
#endif

TEST(Devices, are_chosen_by_the_environment) {
  const auto before = platform::environment("WEFT_DEVICE");
  platform::set_environment("WEFT_DEVICE", "reference");
  EXPECT_EQ(Device::best().name(), "reference");
  platform::set_environment("WEFT_DEVICE", "nonsense");
  expect_contains(error_of([] { Device::best(); }), "nonsense");
  platform::set_environment("WEFT_DEVICE", before ? before->c_str() : nullptr);
}

TEST(Devices, of_one_name_are_one_device) {
  Device a("reference"), b("reference"), c = Device::open("reference");
  EXPECT_TRUE(a == b);
  EXPECT_FALSE(a == c);
}

}  // namespace
