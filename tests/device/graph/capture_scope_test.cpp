// Captures with a beginning and an end of their own.
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(CaptureScopes);

const auto add_one = kernel("add one", [](Arr<float> x) { x[tid()] += 1; });

TEST_P(CaptureScopes, make_a_graph_of_what_lies_between) {
  Array<float> x = zeros<float>(device(), 10);
  launch(add_one, 10, x);
  CaptureScope capturing(device());
  launch(add_one, 10, x);
  launch(add_one, 10, x);
  const Graph graph = capturing.finish();
  EXPECT_EQ(graph.size(), 2);
  EXPECT_EQ(x.at(3), 1);
  graph.launch();
  graph.launch();
  EXPECT_EQ(x.at(3), 5);
}

TEST_P(CaptureScopes, drop_their_work_without_a_graph) {
  Array<float> x = zeros<float>(device(), 10);
  {
    CaptureScope capturing(device());
    launch(add_one, 10, x);
  }
  EXPECT_EQ(x.at(3), 0);
  launch(add_one, 10, x);
  EXPECT_EQ(x.at(3), 1) << "work runs at once again";
}

TEST_P(CaptureScopes, refuse_a_second_end_and_a_second_beginning) {
  CaptureScope capturing(device());
  expect_contains(error_of([&] { CaptureScope another(device()); }), "a graph is captured");
  (void)capturing.finish();
  expect_contains(error_of([&] { (void)capturing.finish(); }), "has ended");
}

}  // namespace
