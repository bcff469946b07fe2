// SPDX-License-Identifier: Apache-2.0
#include "core/device_event.hpp"

#include "core/cuda_backend.hpp"

namespace tessera {

DeviceEvent::DeviceEvent(Device device) : device_(device) {
  if (device.kind != DeviceKind::cpu) event_ = cuda_backend::make_timed_event(device);
}

DeviceEvent::~DeviceEvent() {
  if (event_ != nullptr) cuda_backend::destroy_event(event_);
}

void DeviceEvent::mark(Stream stream) {
  since_the_mark_.restart();
  if (event_ != nullptr) cuda_backend::record_event(event_, device_, stream);
}

void DeviceEvent::wait() const {
  if (event_ != nullptr) cuda_backend::synchronise_event(event_, device_);
}

double DeviceEvent::seconds_since(const DeviceEvent& earlier) const {
  if (event_ != nullptr) return cuda_backend::seconds_between(earlier.event_, event_);
  return earlier.since_the_mark_.seconds() - since_the_mark_.seconds();
}

}  // namespace tessera
