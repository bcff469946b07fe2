// SPDX-License-Identifier: Apache-2.0
#include "core/readiness.hpp"

#include "core/cuda_backend.hpp"

namespace tessera {

Readiness::~Readiness() {
  if (event_ != nullptr) cuda_backend::destroy_event(event_);
}

void Readiness::mark(const Place& place) {
  if (place.device.kind == DeviceKind::cpu) return;
  place_ = place;
  if (event_ == nullptr) event_ = cuda_backend::make_event(place.device);
  cuda_backend::record_event(event_, place.device, place.stream);
  known_ = false;
}

void Readiness::wait(Stream stream) const {
  if (known_.load(std::memory_order_acquire)) return;
  const bool in_order = stream.handle == place_.stream.handle;
  if (cuda_backend::follow_event(event_, place_.device, stream, in_order)) {
    known_.store(true, std::memory_order_release);
  }
}

}  // namespace tessera
