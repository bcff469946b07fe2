// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/error.hpp"

#include "core/cuda_backend.hpp"
#include "core/cuda_timing.hpp"

namespace tessera::cuda_backend {

std::string gpu_name(int index) {
  require_available({DeviceKind::cuda, index});
  return {};
}

std::vector<double> time_runs(Device device, Stream, FunctionRef<void(Stream)>,
                              const MeasureOptions&) {
  require_available(device);
  return {};
}

double time_chain(Device device, FunctionRef<void(Stream)>, int) {
  require_available(device);
  return 0;
}

}  // namespace tessera::cuda_backend
