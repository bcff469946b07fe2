// SPDX-License-Identifier: Apache-2.0
#include "core/stream_uses.hpp"

#include "core/cuda_backend.hpp"

namespace tessera {

StreamUses::~StreamUses() {
  for (const Mark& mark : marks_) {
    cuda_backend::wait_for_event(mark.event, place_.device, place_.stream);
    cuda_backend::destroy_event(mark.event);
  }
}

void* StreamUses::event_of(Stream stream) {
  for (const Mark& mark : marks_) {
    if (mark.stream == stream.handle) return mark.event;
  }
  marks_.reserve(marks_.size() + 1);
  marks_.push_back({stream.handle, cuda_backend::make_event(place_.device)});
  return marks_.back().event;
}

void StreamUses::mark(Stream stream) noexcept {
  if (place_.device.kind == DeviceKind::cpu || stream.handle == place_.stream.handle) return;
  const std::scoped_lock lock(mutex_);
  try {
    cuda_backend::record_event(event_of(stream), place_.device, stream);
  } catch (...) {
    try {
      synchronise(place_.device, stream);
    } catch (...) {
      // The GPU is lost: the next call says so.
    }
  }
}

MadeMark::MadeMark(const Place& place) : place_(place) {
  if (place_.device.kind == DeviceKind::cpu) return;
  event_ = cuda_backend::make_event(place_.device);
  try {
    cuda_backend::record_event(event_, place_.device, place_.stream);
  } catch (...) {
    cuda_backend::destroy_event(event_);
    throw;
  }
}

MadeMark::~MadeMark() {
  if (event_ != nullptr) cuda_backend::destroy_event(event_);
}

void MadeMark::wait(Stream stream) const {
  if (event_ == nullptr || stream.handle == place_.stream.handle) return;
  cuda_backend::wait_for_event(event_, place_.device, stream);
}

}  // namespace tessera
