// Forks of a process in which another thread opens and closes devices. A program of its own, without sanitizers: their
// allocators keep locks in the child that threads of the parent held.
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

using namespace weft;

namespace {

// The child of a fork in the middle of an opening: it opens no device of the driver, and the interpreter all the same.
[[noreturn]] void child(const char* name) {
  alarm(60);  // a signal ends a child that hangs
  (void)Device::list();
  try {
    const Device device(name);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::device_lost) std::_Exit(1);
  }
  const Device reference("reference");
  std::_Exit(full<float>(reference, 3, 1).at(2) == 1 ? 0 : 2);
}

// The status of the first child that did not end well, or 0. The first fork comes after a time, so that forks of
// several processes meet different moments of what a process does once.
int fork_among_openings(const char* name, bool beside_another, std::chrono::microseconds after) {
  std::atomic<bool> over = false;
  std::thread opener([&] {
    std::optional<Device> first;
    if (beside_another) first.emplace(name);
    while (!over) (void)Device(name), (void)Device::open(name);
  });
  int status = 0;
  const auto first_fork = std::chrono::steady_clock::now() + after;
  while (std::chrono::steady_clock::now() < first_fork) {
  }
  for (int k = 0; k < 40 && status == 0; ++k) {
    std::fflush(nullptr);
    const pid_t made = fork();
    if (made == 0) child(name);
    if (made < 0 || waitpid(made, &status, 0) != made) status = -1;
  }
  over = true;
  opener.join();
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : "cpu";
  // Each process opens its first device once, and the first fork may happen at that moment.
  if (argc > 3) {
    const std::chrono::microseconds after(std::atoi(argv[3]));
    return fork_among_openings(name, std::strcmp(argv[2], "beside") == 0, after) == 0 ? 0 : 1;
  }
  int failed = 0;
  for (const char* how : {"alone", "beside"}) {
    for (int k = 0; k < 16; ++k) {
      const pid_t made = fork();  // before this process has opened any device
      if (made == 0) execl("/proc/self/exe", argv[0], name, how, std::to_string(100 * k).c_str(), nullptr), _exit(127);
      int status = 0;
      if (made < 0 || waitpid(made, &status, 0) != made || status != 0) {
        std::printf("forks among openings, %s: a child did not end as it should (status %d)\n", how, status);
        ++failed;
      }
    }
  }
  return failed ? 1 : 0;
}
