// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <vector>

#include "core/device_rates.hpp"

namespace tessera {
namespace {

constexpr std::int64_t kib = 1 << 10;
constexpr std::int64_t mib = 1 << 20;

/// Measured by random gathers, copies, chains of kernels and loops of matrix instructions; what
/// has its own line in a data sheet (clock, caches, registers, the rate of the first-level caches:
/// 128 bytes in a cycle of each processor) is from there.
DeviceProfile h200() {
  DeviceProfile gpu;
  gpu.name = "NVIDIA H200";
  gpu.source = "measured in November 2026, CUDA 13.0";
  gpu.compute_capability = 90;
  gpu.processors = 132;
  gpu.clock_mhz = 1980;
  gpu.memory_bytes_per_us = 4.8e6;
  gpu.copy_bytes_per_us = 4.24e6;
  gpu.l2_bytes = 60 * mib;
  gpu.l1_bytes_per_processor = 256 * kib;
  gpu.shared_bytes_per_processor = 228 * kib;
  gpu.registers_per_processor = 65536;
  gpu.l1_gather = {{512, 33.4e6}};
  gpu.l2_gather = {{512, 9.6e6}};
  gpu.memory_gather = {{512, 4.4e6}};
  gpu.latency_us = 0.6;
  gpu.launch_us = 5;
  gpu.replay_us = 1.5;
  gpu.atomics_per_us = 0.34e6;
  gpu.mma_tf32_per_us = 318e6;
  gpu.mma_bf16_per_us = 636e6;
  gpu.mma_s8_per_us = 1273e6;
  gpu.mma_b1_per_us = 10182e6;
  gpu.wgmma_tf32_per_us = 395e6;
  gpu.wgmma_bf16_per_us = 790e6;
  return gpu;
}

/// What a data sheet states; rates of dense matrix operations with sums in fp32.
struct Sheet {
  DeviceTraits traits;
  std::int64_t l1_bytes_per_processor;
  double tf32_per_us, bf16_per_us, s8_per_us, b1_per_us;
};

/// The share of the stated rates that `mma.sync` and `wgmma` reach on the H200, of which the data
/// sheet states 989 million operations of bf16 in a microsecond.
constexpr double reached_by_wgmma = 790.0 / 989;
constexpr double hopper_mma = 636.0 / 989;

DeviceProfile from_sheet(const Sheet& sheet) {
  DeviceProfile gpu = scaled_profile(h200(), sheet.traits);
  gpu.source = "data sheet, the rest scaled from the H200; not measured";
  gpu.l1_bytes_per_processor = sheet.l1_bytes_per_processor;
  const bool hopper = sheet.traits.compute_capability == 90;
  const double mma = hopper ? hopper_mma : 1;
  gpu.mma_tf32_per_us = mma * sheet.tf32_per_us;
  gpu.mma_bf16_per_us = mma * sheet.bf16_per_us;
  gpu.mma_s8_per_us = mma * sheet.s8_per_us;
  gpu.mma_b1_per_us = mma * sheet.b1_per_us;
  gpu.wgmma_tf32_per_us = hopper ? reached_by_wgmma * sheet.tf32_per_us : 0;
  gpu.wgmma_bf16_per_us = hopper ? reached_by_wgmma * sheet.bf16_per_us : 0;
  return gpu;
}

/// The matrix units of the B200 reach their stated rate by instructions that no kernel here has;
/// what `mma.sync` reaches there is taken to be what Hopper's reach in a cycle of a processor.
DeviceProfile b200() {
  DeviceProfile gpu =
      scaled_profile(h200(), {"NVIDIA B200", 100, 148, 1965, 8.0e6, 126 * mib, 228 * kib});
  gpu.source = "data sheet, the rest scaled from the H200; not measured";
  gpu.wgmma_tf32_per_us = gpu.wgmma_bf16_per_us = 0;
  return gpu;
}

}  // namespace

std::span<const DeviceProfile> built_in_profiles() {
  static const std::vector<DeviceProfile> profiles = {
      h200(),
      from_sheet({{"NVIDIA H100 80GB HBM3", 90, 132, 1980, 3.35e6, 50 * mib, 228 * kib},
                  256 * kib,
                  495e6,
                  989e6,
                  1979e6,
                  15830e6}),
      from_sheet({{"NVIDIA A100-SXM4-80GB", 80, 108, 1410, 2.039e6, 40 * mib, 164 * kib},
                  192 * kib,
                  156e6,
                  312e6,
                  624e6,
                  4992e6}),
      from_sheet({{"NVIDIA L40S", 89, 142, 2520, 0.864e6, 96 * mib, 100 * kib},
                  128 * kib,
                  183e6,
                  362e6,
                  733e6,
                  5864e6}),
      from_sheet({{"NVIDIA GeForce RTX 4090", 89, 128, 2520, 1.008e6, 72 * mib, 100 * kib},
                  128 * kib,
                  82.6e6,
                  165e6,
                  660e6,
                  5284e6}),
      b200()};
  return profiles;
}

}  // namespace tessera
