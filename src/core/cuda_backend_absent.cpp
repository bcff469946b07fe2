// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/error.hpp"

#include "core/cuda_backend.hpp"
#include "core/cuda_timing.hpp"

namespace tessera::cuda_backend {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorCode::backend_unavailable, absent_message, "cuda",
              "use the device cpu, or build with the preset cuda");
}

}  // namespace

bool present() noexcept { return false; }
int device_count() noexcept { return 0; }
DeviceTraits traits(int) { refuse(); }
int make_current(int) { refuse(); }
void make_current_again(int) noexcept {}
MemoryResource& memory(int) { refuse(); }
MemoryResource& transfer_memory() { refuse(); }
void copy(void*, const void*, std::size_t, Device, Stream) { refuse(); }
void fill_zero(void*, std::size_t, Device, Stream) { refuse(); }
void synchronise(Device, Stream) { refuse(); }
void* make_event(Device) { refuse(); }
void record_event(void*, Device, Stream) { refuse(); }
void wait_for_event(void*, Device, Stream) noexcept {}
void destroy_event(void*) noexcept {}
void* make_timed_event(Device) { refuse(); }
void synchronise_event(void*, Device) { refuse(); }
double seconds_between(void*, void*) { refuse(); }
bool follow_event(void*, Device, Stream, bool) { refuse(); }
MemoryUse memory_use(int) { refuse(); }
void reset_memory_peak(int) { refuse(); }
std::shared_ptr<const void> record(Device, FunctionRef<void(Stream)>) { refuse(); }
std::int64_t num_launches(const void*) { refuse(); }
void replay(const void*, Device, Stream) { refuse(); }

std::string gpu_name(int) { refuse(); }
std::vector<double> time_runs(Device, Stream, FunctionRef<void(Stream)>, const MeasureOptions&) {
  refuse();
}
double time_chain(Device, FunctionRef<void(Stream)>, int) { refuse(); }

}  // namespace tessera::cuda_backend
