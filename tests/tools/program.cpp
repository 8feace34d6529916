// A program that makes its kernels in functions, for the test of weft-kernels. Its argument is its exit status.
#include <weft/weft.h>

#include <cstdio>
#include <cstdlib>

using namespace weft;

int main(int argc, char** argv) try {
  const Device device("reference");
  auto square = kernel("square", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()]; });
  auto says = kernel("says", [](Arr<float> x) { print("says", x[tid()]); });
  auto x = Array<float>(device, {1, 2, 3, 4}).requires_grad();
  auto y = zeros<float>(device, 4).requires_grad();
  Tape tape;
  tape.record([&] { launch(square, 4, x, y); });
  tape.backward({{y, ones_like(y)}});
  launch(square, 2, x.slice(0, 4, 2), y.slice(0, 2));
  launch(square, 4, x, y);
  launch(says, 1, y);
  std::printf("gradient %g\n", x.grad().at(3));
  return argc > 1 ? std::atoi(argv[1]) : 0;
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
