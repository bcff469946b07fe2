// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What this machine is made of, as far as Tessera cares.
namespace tessera::app {

struct CpuInfo {
  std::string model;
  std::string architecture;
  int cores = 0;  ///< that this process may use
  /// Those it has that kernels are or could be compiled for: avx2, avx512f, sve, ...
  std::vector<std::string> instruction_sets;
  std::int64_t memory_bytes = 0;
  std::int64_t available_bytes = 0;
};

CpuInfo probe_cpu();

struct GpuDevice {
  std::string name;
  std::int64_t memory_bytes = 0;
  int compute_major = 0;
  int compute_minor = 0;
  int multiprocessors = 0;
};

struct GpuInfo {
  bool hardware_seen = false;   ///< an NVIDIA display device is on the bus
  bool driver_library = false;  ///< libcuda.so.1 could be loaded
  int driver_version = 0;       ///< highest CUDA version it serves: 12040 is 12.4
  std::string problem;          ///< what is wrong with the driver, if anything is
  std::vector<GpuDevice> devices;
};

/// Asks the driver, loaded at run time: nothing of CUDA is linked.
GpuInfo probe_gpu();

}  // namespace tessera::app
