// Errors name the line of the host's call; errors of kernels also name that of the launch.
#include <weft/algorithms.h>
#include <weft/geometry.h>
#include <weft/runtime/graph.h>
#include <weft/vulkan.h>

#include <cstring>
#include <functional>
#include <string>

#include "../device_test.h"

using namespace weft;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(ErrorPlaces);

auto scale() {
  static const auto k = kernel("scale", [](Arr<float> x, Float s) { x[tid()] *= s; });
  return k;
}

std::string place_of(int line) { return std::string(__FILE__) + ":" + std::to_string(line); }

// Expects that the error names this file and line, once or beside a kernel's.
void expect_place(const std::function<void()>& call, int line, const char* text) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown by " << text;
  } catch (const Error& e) {
    ASSERT_TRUE(e.caller()) << text << ": " << e.what();
    EXPECT_STREQ(e.caller().file, __FILE__) << text << ": " << e.what();
    EXPECT_EQ(e.caller().line, line) << text << ": " << e.what();
    expect_contains(e.what(), place_of(line));
    if (e.kernel().empty()) {
      EXPECT_EQ(e.loc().line, line) << e.what();
      EXPECT_EQ(std::string(e.what()).rfind(place_of(line), 0), 0u) << e.what();
    }
  }
}
#define EXPECT_PLACE(...) expect_place([&] { (void)(__VA_ARGS__); }, __LINE__, #__VA_ARGS__)

TEST_P(ErrorPlaces, of_launches_are_the_kernels_and_the_launchs) {
  const Array<float> x = zeros<float>(device(), 4);
  const auto k = scale();
  try {
    launch(k, 4, Array<float>(), 2.f);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.loc().line, k.loc().line);
    EXPECT_EQ(e.caller().line, __LINE__ - 4);
    expect_contains(e.what(), place_of(k.loc().line) + ": invalid argument in kernel \"scale\"");
    expect_contains(e.what(), "argument 1 is a null array (called at " + place_of(__LINE__ - 6) + ")");
  }
  const Extent two{2, 2};
  const auto grid = kernel("grid", [](Arr<float> x) {
    auto [i, j] = tid<2>();
    x[i + j] = 1;
  });
  EXPECT_PLACE(launch(k, -1, x, 2.f));
  EXPECT_PLACE(launch(k, {2, 2}, x, 2.f));
  EXPECT_PLACE(launch(k, two, x, 2.f));
  EXPECT_PLACE(launch(grid, x.extent(), x));
  EXPECT_PLACE(launch(device().stream(), k, {2, 2}, x, 2.f));
  EXPECT_PLACE(
      launch(kernel("count", [](Arr<std::int8_t> x, Int8 n) { x[0] = n; }), 1, zeros<std::int8_t>(device(), 1), 300));
  EXPECT_PLACE(gradcheck(k, {2, 2}, x, 2.f));
}

TEST_P(ErrorPlaces, of_what_a_kernel_found_are_the_kernels_and_the_launchs) {
  const auto positive = kernel("positive", [](Arr<const float> x) { assert_(x[tid()] > 0, "positive"); });
  const Array<float> x(device(), {1.f, -1.f});
  const int line = __LINE__ + 1;
  launch(positive, 2, x);
  try {
    device().synchronize();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kernel_fault);
    EXPECT_EQ(e.loc().line, positive.loc().line);
    expect_contains(e.what(), "(launched at " + place_of(line) + ")");
  }
}

TEST_P(ErrorPlaces, of_views_are_the_callers) {
  Array<float, 2> a = zeros<float, 2>(device(), {3, 4});
  const Array<float> x = zeros<float>(device(), 4), null;
  EXPECT_PLACE(x.slice(0, 5));
  EXPECT_PLACE(x.slice(5));
  EXPECT_PLACE(x.slice(0, 2, 0));
  EXPECT_PLACE(a[3]);
  EXPECT_PLACE(a[-4]);
  EXPECT_PLACE(a.reshape<1>(5));
  EXPECT_PLACE(a.transpose().flatten());
  EXPECT_PLACE(a.transpose({0, 0}));
  EXPECT_PLACE((Array<float, 2>().transpose()));
  EXPECT_PLACE(null.scalars());
  EXPECT_PLACE(x.shape(1));
  EXPECT_PLACE(x.stride(-1));
  EXPECT_PLACE(null.device());
  EXPECT_PLACE(indexed(x, Array<int>(), x.device() == device() ? zeros<int>(device(), 1) : Array<int>()));
}

TEST_P(ErrorPlaces, of_copies_and_lengths_are_the_callers) {
  Array<float> x = zeros<float>(device(), 4), y = zeros<float>(device(), 3), null;
  const std::vector<float> three(3);
  std::vector<float> out(3);
  EXPECT_PLACE(x.copy_from(y));
  EXPECT_PLACE(copy(x, y));
  EXPECT_PLACE(copy(x, y, 3, 0, 3));
  EXPECT_PLACE(x.assign(three));
  EXPECT_PLACE(x.copy_to(out));
  EXPECT_PLACE(x.copy_to_async(out));
  EXPECT_PLACE(null.to_vector());
  EXPECT_PLACE(null.fill(1));
  EXPECT_PLACE(null.zero());
  EXPECT_PLACE(null.clone());
  EXPECT_PLACE(null.to(device()));
  EXPECT_PLACE(null.host_span());
  EXPECT_PLACE(null.free());
  EXPECT_PLACE(x.at(4));
  EXPECT_PLACE(zeros<float, 2>(device(), {2, 2}).at(0, 2));
  EXPECT_PLACE(Array<float>(device(), 4, three));
  EXPECT_PLACE(zeros<float>(device(), -1));
  EXPECT_PLACE(full<float, 2>(device(), {2, -1}, 3.f));
  EXPECT_PLACE(empty<float, 2>(device(), Extent{2}));
  EXPECT_PLACE(ones_like(null));
  EXPECT_PLACE(arange(device(), 0, 4, 0));
  EXPECT_PLACE(from_flat<vec3>(device(), std::vector<float>(4)));
  EXPECT_PLACE(Extent{1, 2, 3, 4, 5});
  EXPECT_PLACE(Device("vulkan:12345"));
}

TEST_P(ErrorPlaces, of_tapes_are_the_callers) {
  Array<float> x = zeros<float>(device(), 1), null;
  EXPECT_PLACE(x.grad());
  EXPECT_PLACE(x.zero_grad());
  EXPECT_PLACE(null.requires_grad());
  Tape tape;
  EXPECT_PLACE(tape.backward(x));
  EXPECT_PLACE(tape.backward({{x, x}}));
  EXPECT_PLACE(tape.backward(zeros<float>(device(), 2)));
  EXPECT_PLACE(tape.gradient(x));
  EXPECT_PLACE(tape.record_func([] {}, x));
  EXPECT_PLACE(tape.checkpointed(1, 1, [](int) {}));
  EXPECT_PLACE(tape.record({}));
  EXPECT_PLACE(jacobian(tape, x, x));
}

TEST_P(ErrorPlaces, of_functions_that_are_given_are_theirs) {
  const Array<float> x = full<float>(device(), 1, 2.f).requires_grad(), null;
  Array<float> y = zeros<float>(device(), 1);
  const auto square = kernel("square", [](Arr<const float> x, Arr<float> y) { y[0] = x[0] * x[0]; });
  Tape tape;
  tape.record([&] { EXPECT_PLACE(null.clone()); });
  const int line = __LINE__ + 1;
  const auto refused = [&] { launch(square, 1, null, y); };
  expect_place([&] { tape.record([&] { refused(); }); }, line, "record()");
  expect_place([&] { capture(device(), [&] { refused(); }); }, line, "capture()");
  expect_place([&] { Tape::unrecorded([&] { refused(); }); }, line, "unrecorded()");
  tape.record([&] {
    launch(square, 1, x, y);
    tape.record_func([&] { refused(); }, x, y);
  });
  expect_place([&] { tape.backward(y); }, line, "record_func()");
  bool again = false;
  Tape steps;
  steps.record([&] {
    steps.checkpointed(2, 1, [&](int) {
      if (again) refused();
      launch(square, 1, x, y);
    });
  });
  again = true;
  expect_place([&] { steps.backward(y); }, line, "checkpointed()");
}

TEST_P(ErrorPlaces, of_graphs_are_the_callers) {
  const Array<float> x = zeros<float>(device(), 4);
  const auto k = scale();
  GraphNode node;
  const Graph graph = capture(device(), [&] {
    launch(k, 4, x, 2.f);
    node = captured_launch();
    EXPECT_PLACE(x.at(0));
    EXPECT_PLACE(x.to_vector());
    EXPECT_PLACE(graph_if(Array<int>(), [] {}));
    EXPECT_PLACE(graph_while(zeros<int>(device(), 1), 0, [] {}));
  });
  EXPECT_PLACE(graph.set(node, k, Array<float>(), 2.f));
  EXPECT_PLACE(graph.set(GraphNode(), k, x, 2.f));
  EXPECT_PLACE(Graph().launch());
  EXPECT_PLACE(capture(device(), {}));
  EXPECT_PLACE(captured_launch());
  EXPECT_PLACE(graph_if(zeros<int>(device(), 1), [] {}));
}

TEST_P(ErrorPlaces, of_algorithms_and_structures_are_the_callers) {
  const Array<float> x = zeros<float>(device(), 4), y = zeros<float>(device(), 3), null;
  const Array<int> n = zeros<int>(device(), 4);
  EXPECT_PLACE(exclusive_scan(x, y));
  EXPECT_PLACE(inclusive_scan(null, y));
  EXPECT_PLACE(reduce_sum(null));
  EXPECT_PLACE(reduce_min(x, null));
  EXPECT_PLACE(inner_product(x, y));
  EXPECT_PLACE(radix_sort(null));
  EXPECT_PLACE(radix_sort_pairs(x, zeros<int>(device(), 3)));
  EXPECT_PLACE(segmented_sort(null, n));
  EXPECT_PLACE(histogram(x, 1, 0, n));
  EXPECT_PLACE(compact(x, n, y, Array<int>()));
  EXPECT_PLACE(compact_indices(Array<int>(), n, n));
  EXPECT_PLACE(run_length_encode(x, null, n, n));
  EXPECT_PLACE(spatial_order(Array<vec3>()));
  const Array<vec3> points = zeros<vec3>(device(), 3);
  const std::vector<vec3> host(2);
  EXPECT_PLACE(Bvh(device(), points, zeros<vec3>(device(), 2)));
  EXPECT_PLACE(Bvh(device(), host, std::vector<vec3>(1)));
  EXPECT_PLACE(Bvh().refit());
  EXPECT_PLACE(Bvh().rebuild());
  EXPECT_PLACE(Bvh().depth());
  EXPECT_PLACE(Mesh(points, n));
  EXPECT_PLACE(Mesh(points, Array<vec3i>()));
  EXPECT_PLACE(Mesh().refit());
  EXPECT_PLACE(Mesh().rebuild());
  EXPECT_PLACE(Mesh().id());
  EXPECT_PLACE(HashGrid(device(), 0, 1, 1));
  HashGrid grid(device(), 4, 4, 4);
  EXPECT_PLACE(grid.build(points, -1));
  EXPECT_PLACE(grid.reserve(-1));
}

TEST_P(ErrorPlaces, of_waits_streams_files_and_exports_are_the_callers) {
  const Array<float> x = zeros<float>(device(), 4);
  const Stream stream = device().create_stream();
  const Event event = stream.record();
  EXPECT_PLACE(event.wait_for(-1));
  EXPECT_PLACE(device().set_dispatch_budget(-1));
  EXPECT_PLACE(device().detach());
  EXPECT_PLACE(stream.record_into({}, [] {}));
  EXPECT_PLACE(stream.wait({}, 1));
  EXPECT_PLACE(stream.signal({}, 1));
  EXPECT_PLACE(load_mesh("no such folder/mesh.obj"));
  EXPECT_PLACE(load_mesh("mesh.xyz"));
  EXPECT_PLACE(save_mesh("mesh.obj", MeshData()));
  EXPECT_PLACE(scale().dump("assembler"));
  EXPECT_PLACE(scale().spirv({.gradients = {"x"}}));
  EXPECT_PLACE(write_spirv(SpirvKernel(), "/dev/null/folder", "kernel"));
  const Graph graph = capture(device(), [&] {
    launch(scale(), 4, x, 2.f);
    EXPECT_PLACE(event.wait());
    EXPECT_PLACE(device().synchronize());
    EXPECT_PLACE(stream.wait(event));
    EXPECT_PLACE(Stream(stream).synchronize());
  });
}

}  // namespace
