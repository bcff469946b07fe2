// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/recording.hpp"

#include "tessera/core/error.hpp"

#include "core/cuda_backend.hpp"

namespace tessera {

std::string why_not_recorded(Device device) {
  return device.kind == DeviceKind::cpu ? "the CPU has no queue of work" : "";
}

Recording Recording::of(Device device, FunctionRef<void(Stream)> work) {
  require_available(device);
  const std::string problem = why_not_recorded(device);
  if (!problem.empty()) {
    throw Error(ErrorCode::unsupported, problem, "recording", "run the work itself");
  }
  return {device, cuda_backend::record(device, work)};
}

void Recording::replay(Stream stream) const {
  if (empty()) {
    throw Error(ErrorCode::invalid_argument, "nothing was recorded", "recording",
                "make it with Recording::of");
  }
  cuda_backend::replay(work_.get(), device_, stream);
}

}  // namespace tessera
