// SPDX-License-Identifier: Apache-2.0
#include "train/late_numbers.hpp"

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
  Slot& slot = slots_[ended_ % num_slots];
  slot.follows = ended_ > taken_;
  if (!slot.follows) slot.begun.mark(stream);
}

void LateNumbers::end_of_steps(Stream stream) {
  slots_[ended_ % num_slots].steps_done.mark(stream);
}

void LateNumbers::end(Stream stream) {
  const std::size_t place = ended_ % num_slots;
  copy_bytes(&arrived_[static_cast<std::int64_t>(place)], device_.data(), sizeof(DeviceNumbers),
             place_.device, stream);
  slots_[place].done.mark(stream);
  ++ended_;
}

LateNumbers::Arrived LateNumbers::take() {
  const std::size_t place = taken_ % num_slots;
  const Slot& slot = slots_[place];
  slot.done.wait();
  const DeviceEvent& begun =
      slot.follows ? slots_[(place + num_slots - 1) % num_slots].done : slot.begun;
  ++taken_;
  return {arrived_[static_cast<std::int64_t>(place)], slot.steps_done.seconds_since(begun),
          slot.done.seconds_since(begun)};
}

DeviceNumbers LateNumbers::now(Stream stream) const {
  DeviceNumbers numbers;
  copy_bytes(&numbers, device_.data(), sizeof(numbers), place_.device, stream);
  synchronise(place_.device, stream);
  return numbers;
}

}  // namespace tessera::train
