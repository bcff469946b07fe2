// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "core/cuda_backend.hpp"
#include "core/cuda_check.hpp"
#include "core/cuda_handles.hpp"
#include "core/device_work.hpp"
#include "core/limited_streams.hpp"
#include "core/parts_clock.hpp"

namespace tessera::cuda_backend {
namespace {

cudaStream_t raw(Stream stream) { return static_cast<cudaStream_t>(stream.handle); }

/// Set while this thread records: work on another stream would not be part of the recording.
thread_local cudaStream_t recording_stream = nullptr;

using Counters = detail::DeviceWorkCounters;

/// Tells copies to this process from others where somebody wants to know.
void count_copy(const void* to, std::size_t bytes) {
  Counters& counters = detail::device_work_counters;
  Counters::add(counters.copies);
  if (counters.watches.load(std::memory_order_relaxed) == 0 || is_on_gpu(to)) return;
  const auto size = static_cast<std::int64_t>(bytes);
  Counters::add(counters.copies_to_host);
  Counters::add(counters.bytes_to_host, size);
  if (size > counters.largest_to_host) counters.largest_to_host = size;
}

void require_recordable(Stream stream, const char* doing) {
  if (recording_stream == nullptr || raw(stream) == recording_stream) return;
  throw Error(ErrorCode::unsupported, std::string(doing) + " beside the recorded stream",
              "recording", "pass the stream on, and prepare everything before recording");
}

/// Memory from a pool of this library's own, in the order of the stream that asks: no call waits
/// for the GPU, and what other libraries have set for the GPU's default pool stays as it is.
class DeviceMemory final : public MemoryResource {
 public:
  explicit DeviceMemory(int index) : index_(index) {
    const CurrentDevice current(index);
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.handleTypes = cudaMemHandleTypeNone;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = index;
    cuda_check(cudaMemPoolCreate(&pool_, &properties), "making a memory pool");
    // Freed memory stays in the pool: giving it back to the driver after every step is slow.
    std::uint64_t keep = UINT64_MAX;
    cuda_check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep),
               "setting up the memory pool");
  }

  void* allocate(std::size_t bytes, Stream stream) override {
    if (bytes == 0) return nullptr;
    const TimedPart part("allocating");
    Counters::add(detail::device_work_counters.allocations);
    const CurrentDevice current(index_);
    void* memory = nullptr;
    const cudaError_t status = cudaMallocFromPoolAsync(&memory, bytes, pool_, raw(stream));
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      std::size_t available = 0, total = 0;
      cudaMemGetInfo(&available, &total);
      throw Error(ErrorCode::out_of_memory,
                  fmt::format("cannot allocate {:.3g} GiB: {:.3g} of {:.3g} GiB are free",
                              static_cast<double>(bytes) * 0x1p-30,
                              static_cast<double>(available) * 0x1p-30,
                              static_cast<double>(total) * 0x1p-30),
                  to_string(device()), "use a smaller graph or fewer features");
    }
    cuda_check(status, "allocating GPU memory");
    return memory;
  }

  void deallocate(void* memory, std::size_t, Stream stream) noexcept override {
    cudaFreeAsync(memory, raw(stream));
  }

  Device device() const noexcept override { return {DeviceKind::cuda, index_}; }

  MemoryUse use() const {
    return {ask(cudaMemPoolAttrUsedMemCurrent), ask(cudaMemPoolAttrUsedMemHigh)};
  }
  void reset_peak() {
    std::uint64_t zero = 0;
    cuda_check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrUsedMemHigh, &zero),
               "setting up the memory pool");
  }

 private:
  std::int64_t ask(cudaMemPoolAttr attribute) const {
    std::uint64_t bytes = 0;
    cuda_check(cudaMemPoolGetAttribute(pool_, attribute, &bytes), "asking the memory pool");
    return static_cast<std::int64_t>(bytes);
  }

  int index_;
  cudaMemPool_t pool_ = nullptr;
};

/// Locking pages waits for the GPU, and so does giving them back: neither is for a step of work.
class TransferMemory final : public MemoryResource {
 public:
  void* allocate(std::size_t bytes, Stream) override {
    if (bytes == 0) return nullptr;
    void* memory = nullptr;
    cuda_check(cudaMallocHost(&memory, bytes), "locking pages of memory");
    return memory;
  }
  void deallocate(void* memory, std::size_t, Stream) noexcept override { cudaFreeHost(memory); }
  Device device() const noexcept override { return {}; }
};

DeviceMemory& memory_of(int index) {
  // Never destroyed: arrays in static storage may be freed after main ends.
  static auto* const memories = new std::vector<std::unique_ptr<DeviceMemory>>;
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  const auto slot = static_cast<std::size_t>(index);
  if (memories->size() <= slot) memories->resize(slot + 1);
  if (!(*memories)[slot]) (*memories)[slot] = std::make_unique<DeviceMemory>(index);
  return *(*memories)[slot];
}

}  // namespace

bool present() noexcept { return true; }

int device_count() noexcept {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();
  return 0;
}

DeviceTraits traits(int index) {
  const auto attribute = [index](cudaDeviceAttr which) {
    int value = 0;
    cuda_check(cudaDeviceGetAttribute(&value, which, index), "reading what a GPU is");
    return value;
  };
  cudaDeviceProp properties{};
  cuda_check(cudaGetDeviceProperties(&properties, index), "reading what a GPU is");
  DeviceTraits traits;
  traits.name = properties.name;
  traits.compute_capability = 10 * properties.major + properties.minor;
  traits.processors = usable_processors(index, properties.multiProcessorCount);
  traits.clock_mhz = attribute(cudaDevAttrClockRate) * 1e-3;
  // Two transfers in each cycle: the clock is in kHz, the bus in bits.
  traits.memory_bytes_per_us = 2.0 * attribute(cudaDevAttrMemoryClockRate) * 1e-3 *
                               attribute(cudaDevAttrGlobalMemoryBusWidth) / 8;
  traits.l2_bytes = properties.l2CacheSize;
  traits.shared_bytes_per_processor =
      static_cast<std::int64_t>(properties.sharedMemPerMultiprocessor);
  return traits;
}

int make_current(int index) {
  int former = 0;
  cuda_check(cudaGetDevice(&former), "reading the current GPU");
  if (former == index) return -1;
  cuda_check(cudaSetDevice(index), "choosing a GPU");
  return former;
}

void make_current_again(int index) noexcept { cudaSetDevice(index); }

MemoryResource& memory(int index) { return memory_of(index); }

MemoryResource& transfer_memory() {
  // Never destroyed: what is made of it may be freed after main ends.
  static auto* const memory = new TransferMemory;
  return *memory;
}

void copy(void* to, const void* from, std::size_t bytes, Device device, Stream stream) {
  if (bytes == 0) return;
  require_recordable(stream, "copying memory");
  const TimedPart part("copying");
  count_copy(to, bytes);
  const CurrentDevice current(device.index);
  cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, raw(stream)), "copying memory");
}

void fill_zero(void* memory, std::size_t bytes, Device device, Stream stream) {
  if (bytes == 0) return;
  require_recordable(stream, "clearing memory");
  const CurrentDevice current(device.index);
  cuda_check(cudaMemsetAsync(memory, 0, bytes, raw(stream)), "clearing memory");
}

void synchronise(Device device, Stream stream) {
  if (recording_stream != nullptr) {
    throw Error(ErrorCode::unsupported, "waiting for the GPU", "recording",
                "read results after the replay");
  }
  const TimedPart part("waiting");
  Counters::add(detail::device_work_counters.waits);
  const CurrentDevice current(device.index);
  cuda_check(cudaStreamSynchronize(raw(stream)), "waiting for the GPU");
}

void* make_event(Device device) {
  const CurrentDevice current(device.index);
  cudaEvent_t event = nullptr;
  cuda_check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  return event;
}

void record_event(void* event, Device device, Stream stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cuda_check(cudaStreamIsCapturing(raw(stream), &status), "asking whether a stream is captured");
  if (status != cudaStreamCaptureStatusNone) return;
  const CurrentDevice current(device.index);
  cuda_check(cudaEventRecord(static_cast<cudaEvent_t>(event), raw(stream)), "recording an event");
}

void wait_for_event(void* event, Device, Stream stream) noexcept {
  if (cudaStreamWaitEvent(raw(stream), static_cast<cudaEvent_t>(event), 0) != cudaSuccess) {
    cudaGetLastError();
  }
}

void* make_timed_event(Device device) {
  const CurrentDevice current(device.index);
  cudaEvent_t event = nullptr;
  cuda_check(cudaEventCreate(&event), "making an event");
  return event;
}

void synchronise_event(void* event, Device device) {
  const TimedPart part("waiting");
  Counters::add(detail::device_work_counters.waits);
  const CurrentDevice current(device.index);
  cuda_check(cudaEventSynchronize(static_cast<cudaEvent_t>(event)), "waiting for the GPU");
}

double seconds_between(void* earlier, void* later) {
  float milliseconds = 0;
  cuda_check(cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(earlier),
                                  static_cast<cudaEvent_t>(later)),
             "reading a time");
  return static_cast<double>(milliseconds) * 1e-3;
}

void destroy_event(void* event) noexcept { cudaEventDestroy(static_cast<cudaEvent_t>(event)); }

namespace {

/// Asking about an event would end a capture that other threads may have begun, unless the thread
/// that asks says that it knows.
class RelaxedCapture {
 public:
  RelaxedCapture() { exchange(); }
  ~RelaxedCapture() { exchange(); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  void exchange() noexcept {
    if (cudaThreadExchangeStreamCaptureMode(&mode_) != cudaSuccess) cudaGetLastError();
  }

  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace

bool follow_event(void* event, Device device, Stream stream, bool in_order) {
  const auto raw_event = static_cast<cudaEvent_t>(event);
  const CurrentDevice current(device.index);
  const RelaxedCapture relaxed;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(raw(stream), &status) != cudaSuccess) {
    cudaGetLastError();
    status = cudaStreamCaptureStatusNone;
  }
  if (status != cudaStreamCaptureStatusNone) {
    Counters::add(detail::device_work_counters.waits);
    cuda_check(cudaEventSynchronize(raw_event), "waiting for the GPU");
    return true;
  }
  const cudaError_t found = cudaEventQuery(raw_event);
  if (found == cudaSuccess) return true;
  if (found != cudaErrorNotReady) cuda_check(found, "asking about an event");
  cudaGetLastError();
  if (!in_order) {
    cuda_check(cudaStreamWaitEvent(raw(stream), raw_event, 0), "waiting for an event");
  }
  return false;
}

namespace {

/// Recorded work, on a stream of its own.
class RecordedWork {
 public:
  explicit RecordedWork(FunctionRef<void(Stream)> work) { work_.emplace(captured(work)); }

  std::int64_t num_launches() const { return work_->size(); }
  void replay(cudaStream_t stream) const { work_->launch(stream); }

 private:
  cudaGraph_t captured(FunctionRef<void(Stream)> work) {
    cuda_check(cudaStreamBeginCapture(stream_.raw(), cudaStreamCaptureModeThreadLocal),
               "beginning to record");
    recording_stream = stream_.raw();
    std::string problem;
    try {
      work(stream_);
    } catch (const Error& error) {
      problem = error.what();
    } catch (...) {
      end_capture();
      throw;
    }
    auto [status, graph] = end_capture();
    if (problem.empty() && status != cudaSuccess) problem = cudaGetErrorString(status);
    if (problem.empty()) return graph;
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw Error(ErrorCode::unsupported, problem, "recording", "run the work itself");
  }

  std::pair<cudaError_t, cudaGraph_t> end_capture() {
    recording_stream = nullptr;
    cudaGraph_t graph = nullptr;
    const cudaError_t status = cudaStreamEndCapture(stream_.raw(), &graph);
    cudaGetLastError();
    return {status, graph};
  }

  OwnedStream stream_;
  mutable std::optional<CapturedWork> work_;
};

}  // namespace

MemoryUse memory_use(int index) { return memory_of(index).use(); }
void reset_memory_peak(int index) { memory_of(index).reset_peak(); }

std::shared_ptr<const void> record(Device device, FunctionRef<void(Stream)> work) {
  const CurrentDevice current(device.index);
  return std::make_shared<const RecordedWork>(work);
}

std::int64_t num_launches(const void* recorded) {
  return static_cast<const RecordedWork*>(recorded)->num_launches();
}

void replay(const void* recorded, Device device, Stream stream) {
  const CurrentDevice current(device.index);
  static_cast<const RecordedWork*>(recorded)->replay(raw(stream));
}

}  // namespace tessera::cuda_backend
