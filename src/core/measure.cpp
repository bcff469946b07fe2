// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/measure.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>

#include "tessera/core/memory.hpp"

#include "core/cuda_timing.hpp"

namespace tessera {
namespace {

/// 192 MiB each way: several times the last cache of the machines this runs on.
constexpr std::int64_t copied_bytes = std::int64_t{192} << 20;

double measure_copy_bandwidth() {
  Buffer<char> from(copied_bytes), to(copied_bytes);
  constexpr std::int64_t grain = 1 << 20;
  // Written by the threads that will read, so that pages lie near them.
  parallel_ranges(copied_bytes, grain, [&](std::int64_t begin, std::int64_t end) {
    std::memset(from.data() + begin, 1, static_cast<std::size_t>(end - begin));
    std::memset(to.data() + begin, 2, static_cast<std::size_t>(end - begin));
  });
  const auto copy = [&] {
    parallel_ranges(copied_bytes, grain, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(to.data() + begin, from.data() + begin, static_cast<std::size_t>(end - begin));
    });
  };
  MeasureOptions options;
  options.warmups = 1;
  options.repeats = 7;
  const double best_us = measure(copy, options).min_us;
  return 2 * static_cast<double>(copied_bytes) / (best_us * 1e-6);
}

/// 1 GiB each way, as a copy on the GPU itself.
double measure_device_bandwidth(Device device) {
  constexpr std::int64_t bytes = std::int64_t{1} << 30;
  Buffer<char> from(bytes, default_memory(device)), to(bytes, default_memory(device));
  fill_zero(from.data(), bytes, device);
  fill_zero(to.data(), bytes, device);
  synchronise(device);
  MeasureOptions options;
  options.warmups = 3;
  options.repeats = 20;
  options.min_seconds = 0;
  const Timing timing = measure_on(
      device, [&](Stream stream) { copy_bytes(to.data(), from.data(), bytes, device, stream); },
      options);
  return 2 * static_cast<double>(bytes) / (timing.min_us * 1e-6);
}

}  // namespace

Timing summarise(std::vector<double> samples_us) {
  Timing timing;
  if (samples_us.empty()) return timing;
  std::sort(samples_us.begin(), samples_us.end());
  const std::size_t count = samples_us.size();
  timing.median_us = (samples_us[(count - 1) / 2] + samples_us[count / 2]) / 2;
  timing.min_us = samples_us.front();
  timing.worst_us = samples_us.back();
  timing.mean_us =
      std::accumulate(samples_us.begin(), samples_us.end(), 0.0) / static_cast<double>(count);
  timing.repeats = static_cast<std::int64_t>(count);
  return timing;
}

Timing measure(FunctionRef<void()> function, const MeasureOptions& options) {
  for (int i = 0; i < options.warmups; ++i) function();
  return summarise(repeat_timed(options, [&] {
    const Stopwatch watch;
    function();
    return watch.microseconds();
  }));
}

std::vector<double> repeat_timed(const MeasureOptions& options, FunctionRef<double()> timed_run) {
  constexpr std::size_t fewest = 3;
  const auto wanted = static_cast<std::size_t>(std::max(options.repeats, 1));
  const auto most = std::max(static_cast<std::size_t>(std::max(options.max_repeats, 1)), wanted);
  std::vector<double> samples;
  const Stopwatch total;
  while (samples.size() < most) {
    samples.push_back(timed_run());
    const double elapsed = total.seconds();
    if (samples.size() >= wanted && elapsed >= options.min_seconds) break;
    if (samples.size() >= fewest && elapsed >= options.max_seconds) break;
  }
  return samples;
}

Timing measure_on(Device device, FunctionRef<void(Stream)> enqueue, const MeasureOptions& options) {
  return measure_on_stream(device, {}, enqueue, options);
}

Timing measure_on_stream(Device device, Stream stream, FunctionRef<void(Stream)> enqueue,
                         const MeasureOptions& options) {
  require_available(device);
  if (device.kind == DeviceKind::cpu) return measure([&] { enqueue({}); }, options);
  Timing timing = summarise(cuda_backend::time_runs(device, stream, enqueue, options));
  if (options.chain > 0 && timing.median_us < options.chain_below_us) {
    timing.chain_us = cuda_backend::time_chain(device, enqueue, options.chain);
  }
  return timing;
}

double copy_bandwidth(Device device) {
  if (device.kind == DeviceKind::cpu) return copy_bandwidth();
  static std::mutex mutex;
  static std::map<int, double> known;
  const std::scoped_lock lock(mutex);
  const auto place = known.find(device.index);
  if (place != known.end()) return place->second;
  return known[device.index] = measure_device_bandwidth(device);
}

double copy_bandwidth() {
  static std::mutex mutex;
  static std::map<int, double> known;
  const std::scoped_lock lock(mutex);
  const auto [place, is_new] = known.try_emplace(num_threads(), 0.0);
  if (is_new) place->second = measure_copy_bandwidth();
  return place->second;
}

double floor_us(std::int64_t bytes, Device device) {
  return static_cast<double>(bytes) / copy_bandwidth(device) * 1e6;
}

}  // namespace tessera
