// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/recording.hpp"

#include "tessera/core/error.hpp"

#include "core/cuda_backend.hpp"
#include "core/recording_scope.hpp"

namespace tessera {
namespace {

thread_local int num_recordings = 0;

}  // namespace

RecordingScope::RecordingScope() noexcept { ++num_recordings; }
RecordingScope::~RecordingScope() { --num_recordings; }

bool is_recording() noexcept { return num_recordings > 0; }

std::string why_not_recorded(Device device) {
  return device.kind == DeviceKind::cpu ? "the CPU has no queue of work" : "";
}

Recording Recording::of(Device device, FunctionRef<void(Stream)> work) {
  require_available(device);
  const std::string problem = why_not_recorded(device);
  if (!problem.empty()) {
    throw Error(ErrorCode::unsupported, problem, "recording", "run the work itself");
  }
  const RecordingScope scope;
  return {device, cuda_backend::record(device, work)};
}

std::int64_t Recording::num_launches() const {
  return empty() ? 0 : cuda_backend::num_launches(work_.get());
}

void Recording::replay(Stream stream) const {
  if (empty()) {
    throw Error(ErrorCode::invalid_argument, "nothing was recorded", "recording",
                "make it with Recording::of");
  }
  cuda_backend::replay(work_.get(), device_, stream);
}

}  // namespace tessera
