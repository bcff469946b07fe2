// SPDX-License-Identifier: Apache-2.0
#include "train/late_numbers.hpp"

#include <algorithm>

#include "tessera/core/error.hpp"

#include "core/transfer_memory.hpp"

namespace tessera::train {

LateNumbers::LateNumbers(const Place& place)
    : place_(place),
      device_(1, place),
      arrived_(static_cast<std::int64_t>(num_slots), transfer_memory(place.device)),
      slots_{Slot(place.device), Slot(place.device), Slot(place.device)} {}

void LateNumbers::forget() noexcept {
  try {
    while (taken_ < ended_) take();
  } catch (...) {
    // The GPU is lost: the next call says so.
  }
}

void LateNumbers::begin(Stream stream) {
  if (ended_ - taken_ >= most_under_way) {
    throw Error(ErrorCode::internal, "too many epochs are under way", "training");
  }
  Slot& slot = slots_[this->slot()];
  slot.follows = ended_ > taken_;
  if (!slot.follows) slot.begun.mark(stream);
}

void LateNumbers::end_of_steps(Stream stream) { slots_[slot()].steps_done.mark(stream); }

void LateNumbers::end(Stream stream) {
  copy_bytes(arriving(slot()), device_.data(), sizeof(DeviceNumbers), place_.device, stream);
  end(true, stream);
}

void LateNumbers::end_of_whole(Stream stream) { end(false, stream); }

void LateNumbers::end(bool in_parts, Stream stream) {
  Slot& slot = slots_[this->slot()];
  slot.in_parts = in_parts;
  slot.done.mark(stream);
  ++ended_;
}

LateNumbers::Arrived LateNumbers::take() {
  const std::size_t place = taken_ % num_slots;
  const Slot& slot = slots_[place];
  slot.done.wait();
  const DeviceEvent& begun =
      slot.follows ? slots_[(place + num_slots - 1) % num_slots].done : slot.begun;
  ++taken_;
  const double seconds = slot.done.seconds_since(begun);
  if (slot.in_parts) last_step_seconds_ = slot.steps_done.seconds_since(begun);
  return {*arriving(place), std::min(last_step_seconds_, seconds), seconds};
}

DeviceNumbers LateNumbers::now(Stream stream) const {
  DeviceNumbers numbers;
  copy_bytes(&numbers, device_.data(), sizeof(numbers), place_.device, stream);
  synchronise(place_.device, stream);
  return numbers;
}

}  // namespace tessera::train
