// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

/// How a smaller GPU is tried on a larger one. The environment variable TESSERA_GPU_LIMITS says
/// what the GPU shall do without: "processors=64" confines the streams that the library makes to a
/// green context of so many processors, and grids are sized for it; "no_wgmma" leaves Hopper's
/// matrix instructions alone. Several are separated by commas.
namespace tessera {

struct GpuLimits {
  int processors = 0;  ///< 0: all
  bool no_wgmma = false;
};

/// Throws `invalid_argument` for a word that is none of those above.
GpuLimits parse_gpu_limits(const std::string& text);

/// Those of the environment, read once.
const GpuLimits& gpu_limits();

}  // namespace tessera
