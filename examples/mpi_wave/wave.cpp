// Waves on a lake that is split over the processes of MPI: each computes a strip of rows, and gives its outermost rows
// to its neighbours, straight from the memory of its arrays. The result does not depend on the number of processes, bit
// by bit. The same in Python: examples/python/mpi_wave.py.
//
//   mpiexec -n 4 mpi_wave --size 1024 --steps 500 --save waves.bin
#include <mpi.h>
#include <weft/weft.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

using namespace weft;

namespace {

// A hill at one place of the lake. Row 0 of each strip is its neighbour's.
const auto drop = kernel("drop", [](Arr<float, 2> height, Int first_row, Int size) {
  auto [i, j] = tid<2>();
  Float x = Float(i - 1 + first_row) / Float(size) - 0.3f, y = Float(j) / Float(size) - 0.4f;
  height(i, j) = exp(-(x * x + y * y) * 400);
});

// One step of the wave equation, by differences of second order; the shores at both sides reflect.
const auto advance = kernel(
    "advance", [](Arr<const float, 2> now, Arr<const float, 2> before, Arr<float, 2> after, Float speed_squared) {
      auto [i, j] = tid<2>();
      Int row = i + 1, left = max(j - 1, 0), right = min(j + 1, now.shape(1) - 1);
      Float middle = now(row, j);
      Float curvature = now(row - 1, j) + now(row + 1, j) + now(row, left) + now(row, right) - 4 * middle;
      after(row, j) = 2 * middle - before(row, j) + speed_squared * curvature;
    });

// The rows of one process, with one more at each side, which are the neighbours' or reflect.
class Strip {
 public:
  Strip(const Device& device, int size) : size_(size) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &processes_);
    first_ = first_of(rank_);
    rows_ = first_of(rank_ + 1) - first_;
    now_ = zeros<float, 2>(device, {rows_ + 2, size});
    before_ = zeros<float, 2>(device, {rows_ + 2, size});
    after_ = zeros<float, 2>(device, {rows_ + 2, size});
    for (const auto& array : {now_, before_}) launch(drop, {rows_ + 2, size}, array, first_, size);
  }
  int rank() const { return rank_; }

  void step(float speed_squared) {
    exchange();
    launch(advance, {rows_, size_}, now_, before_, after_, speed_squared);
    std::swap(before_, now_);
    std::swap(now_, after_);
  }

  // All rows of the lake in the first process; nothing in the others.
  std::vector<float> gather() {
    std::vector<int> counts, places;
    for (int k = 0; k < processes_; ++k) {
      counts.push_back((first_of(k + 1) - first_of(k)) * size_);
      places.push_back(first_of(k) * size_);
    }
    std::vector<float> whole(rank_ == 0 ? std::size_t(size_) * std::size_t(size_) : 0);
    MPI_Gatherv(now_.host_span().data() + size_, rows_ * size_, MPI_FLOAT, whole.data(), counts.data(), places.data(),
                MPI_FLOAT, 0, MPI_COMM_WORLD);
    return whole;
  }

 private:
  int first_of(int process) const { return int(std::int64_t(size_) * process / processes_); }

  // Gets the neighbours' outermost rows. host_span() waits for the work on the array, and is its memory.
  void exchange() {
    float* const rows = now_.host_span().data();
    float* const last = rows + (rows_ + 1) * size_;
    const int above = rank_ > 0 ? rank_ - 1 : MPI_PROC_NULL, below = rank_ + 1 < processes_ ? rank_ + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(rows + size_, size_, MPI_FLOAT, above, 0, last, size_, MPI_FLOAT, below, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(last - size_, size_, MPI_FLOAT, below, 1, rows, size_, MPI_FLOAT, above, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (above == MPI_PROC_NULL) std::copy_n(rows + size_, size_, rows);
    if (below == MPI_PROC_NULL) std::copy_n(last - size_, size_, last);
  }

  int size_, rank_ = 0, processes_ = 1, first_ = 0, rows_ = 0;
  Array<float, 2> now_, before_, after_;
};

int run(int argc, char** argv) {
  int size = 512, steps = 200;
  std::string save, device = "cpu";
  CLI::App app("Waves over the processes of MPI");
  app.add_option("--size", size, "rows and columns of the lake")->check(CLI::Range(2, 40000));
  app.add_option("--steps", steps)->check(CLI::PositiveNumber);
  app.add_option("--device", device);
  app.add_option("--save", save, "a file for the heights, as float32");
  CLI11_PARSE(app, argc, argv);

  int processes = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  if (processes > size) throw std::runtime_error("there are more processes than rows");
  Strip strip(Device(device), size);
  strip.step(0.2f);  // compiles the kernels
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int k = 1; k < steps; ++k) strip.step(0.2f);
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - start;
  const std::vector<float> whole = strip.gather();
  if (strip.rank() != 0) return 0;
  const auto [low, high] = std::ranges::minmax(whole);
  std::printf("%d processes: %.0f million cells a second\n", processes,
              double(size) * size * (steps - 1) / seconds / 1e6);
  std::printf("heights from %.4f to %.4f\n", double(low), double(high));
  if (!save.empty())
    std::ofstream(save, std::ios::binary)
        .write(reinterpret_cast<const char*>(whole.data()), std::streamsize(whole.size() * sizeof(float)));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int code = 1;
  try {
    code = run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return code;
}
