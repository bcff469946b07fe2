// SPDX-License-Identifier: Apache-2.0
#include "place.hpp"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "copies.hpp"
#include "operators.hpp"

namespace tessera::torch_ops {

/// The machine's memory, or what a container leaves of it (cgroups, both versions).
std::int64_t memory_of_device(int) {
  std::int64_t bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::int64_t limit = 0;
    if (std::ifstream(path) >> limit) bytes = std::min(bytes, limit);  // or the word "max"
  }
  return bytes;
}

void release_free_memory() noexcept {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

Place place_of(const Tensor&) { return {}; }
bool is_capturing(const Place&) { return false; }
void wait_for(Device) noexcept {}
void make_all(const std::vector<Copy>& copies) {
  for (const Copy& copy : copies) make_one(copy);
}
DeviceScope::DeviceScope(const Tensor&) {}
DeviceScope::~DeviceScope() = default;

}  // namespace tessera::torch_ops

STABLE_TORCH_LIBRARY_IMPL(tessera, CPU, library) {
  tessera::torch_ops::register_operators(library);
}
