// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/calibration.hpp"

#include <array>
#include <cstddef>
#include <utility>

#include "core/cuda_handles.hpp"
#include "core/cuda_timing.hpp"
#include "cuda/array.hpp"
#include "cuda/wgmma_device.hpp"
#include "ops/plan/calibrate/probes.hpp"
#include "ops/plan/measured_profile.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/core/memory.hpp"

namespace tessera::ops {
namespace {

constexpr std::array<int, 6> row_lengths = {32, 64, 128, 256, 512, 1024};
constexpr int kernels_in_a_row = 200;
constexpr std::int64_t far_bytes = std::int64_t{1} << 31;  ///< out of reach for every cache

class Probing {
 public:
  Probing(Device device, const DeviceProfile& gpu)
      : device_(device),
        processors_(gpu.processors),
        near_bytes_(gpu.l1_bytes_per_processor / 4),
        cached_bytes_(gpu.l2_bytes / 6),
        place_(device),
        memory_(far_bytes, place_),
        results_(probes::bytes_of_results(processors_), place_) {
    cuda::clear(memory_, place_);
    cuda::clear(results_, place_);
    synchronise(device_, place_.stream);
  }

  void gathers(DeviceProfile& gpu) const {
    gpu.l1_gather = rates(near_bytes_);
    gpu.l2_gather = rates(cached_bytes_);
    gpu.memory_gather = rates(far_bytes);
  }

  void memory(DeviceProfile& gpu) const {
    gpu.copy_bytes_per_us = copy_bandwidth(device_) * 1e-6;
    gpu.latency_us = 1 / per_us([this](Stream stream) {
                       return probes::wait_for_loads(room(far_bytes), stream);
                     });
    gpu.atomics_per_us = per_us([this](Stream stream) {
      return probes::add_atomically(room(cached_bytes_), processors_, stream);
    });
  }

  void starts(DeviceProfile& gpu) const {
    gpu.launch_us = 1 / per_us([](Stream stream) {
                      for (int i = 0; i < kernels_in_a_row; ++i) probes::start_nothing(stream);
                      return kernels_in_a_row;
                    });
    gpu.replay_us = cuda_backend::time_chain(
        device_, [](Stream stream) { probes::start_nothing(stream); }, kernels_in_a_row);
  }

  void products(DeviceProfile& gpu) const {
    using probes::Matrix;
    gpu.mma_tf32_per_us = multiplied(Matrix::tf32);
    gpu.mma_s8_per_us = multiplied(Matrix::s8);
    gpu.mma_b1_per_us = multiplied(Matrix::b1);
    gpu.mma_bf16_per_us = multiplied(Matrix::bf16);
    gpu.loaded_clock_mhz = last_clock_mhz();
    gpu.wgmma_bf16_per_us = cuda::has_wgmma(device_) ? multiplied(Matrix::wgmma_bf16) : 0;
    gpu.wgmma_tf32_per_us = gpu.wgmma_bf16_per_us / 2;
  }

 private:
  probes::Room room(std::int64_t bytes) const {
    return {const_cast<std::byte*>(memory_.data()), bytes, const_cast<std::byte*>(results_.data())};
  }

  /// How much of something is done in a microsecond.
  template <class Enqueue>
  double per_us(Enqueue&& enqueue) const {
    MeasureOptions options;
    options.min_seconds = 0.05;
    options.max_seconds = 1;
    double amount = 0;
    const Timing timing = measure_on(
        device_, [&](Stream stream) { amount = enqueue(stream); }, options);
    return amount / timing.median_us;
  }

  GatherRates rates(std::int64_t bytes) const {
    GatherRates found;
    for (const int length : row_lengths) {
      found.push_back({static_cast<double>(length), per_us([&](Stream stream) {
                         return probes::gather(room(bytes), length, processors_, stream);
                       })});
    }
    return found;
  }

  double multiplied(probes::Matrix kind) const {
    return per_us([&](Stream stream) {
      return probes::multiply(kind, room(0).results, processors_, stream);
    });
  }

  double last_clock_mhz() const {
    const auto* const clocks = reinterpret_cast<const long long*>(results_.data());
    const auto cycles = static_cast<double>(cuda::value_at(clocks, place_));
    return cycles / static_cast<double>(cuda::value_at(clocks + 1, place_)) * 1e3;
  }

  Device device_;
  int processors_;
  std::int64_t near_bytes_;    ///< that every first-level cache keeps
  std::int64_t cached_bytes_;  ///< that the second-level cache keeps, and the first ones little of
  Place place_;
  Buffer<std::byte> memory_, results_;
};

}  // namespace

DeviceProfile calibrate(const CalibrationOptions& options) {
  require_a_gpu(options.device);
  DeviceProfile gpu = device_profile(options.device.index);
  const cuda_backend::CurrentDevice current(options.device.index);
  const Probing probing(options.device, gpu);
  const std::array<std::pair<const char*, void (Probing::*)(DeviceProfile&) const>, 4> parts = {
      {{"starting kernels", &Probing::starts},
       {"gathering rows", &Probing::gathers},
       {"loading, copying and adding", &Probing::memory},
       {"multiplying", &Probing::products}}};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    report(options.progress, parts[i].first, static_cast<std::int64_t>(i),
           static_cast<std::int64_t>(parts.size()));
    (probing.*parts[i].second)(gpu);
  }
  gpu.source = options.date.empty() ? "measured" : "measured on " + options.date;
  gpu.driver = driver_of_gpus();
  gpu.build = this_build();
  gpu.validate("what was measured");
  return gpu;
}

}  // namespace tessera::ops
