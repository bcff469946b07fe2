// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "core/device_event.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/ops/evaluation.hpp"

namespace tessera::train {

/// What a device computes of an epoch.
struct DeviceNumbers {
  double loss = 0;
  ops::EvaluationNumbers evaluation;
};

/// The numbers of epochs that the device was given: each comes back by itself while the next epoch
/// runs. Epochs are ended and taken in the same order, at most `most_under_way` ahead. The work of
/// an epoch writes them where all epochs do, from where they are copied, or, where there is work of
/// its own for every slot, to where they arrive.
class LateNumbers {
 public:
  static constexpr std::size_t most_under_way = 2;
  /// One more than can be under way: the end of the one before is the beginning of the next.
  static constexpr std::size_t num_slots = most_under_way + 1;

  explicit LateNumbers(const Place& place);
  ~LateNumbers() { forget(); }
  LateNumbers(const LateNumbers&) = delete;
  LateNumbers& operator=(const LateNumbers&) = delete;

  /// Where the work of every epoch writes.
  double* loss() { return &device_.data()->loss; }
  ops::EvaluationNumbers* evaluation() { return &device_.data()->evaluation; }

  /// The slot of the epoch that is begun next or under way, and where its numbers arrive.
  std::size_t slot() const noexcept { return ended_ % num_slots; }
  DeviceNumbers* arriving(std::size_t slot) { return &arrived_[static_cast<std::int64_t>(slot)]; }

  /// The marks of an epoch, between which its work is queued.
  void begin(Stream stream);
  void end_of_steps(Stream stream);
  void end(Stream stream);
  /// Instead of the last two, for work that has written to where the numbers arrive.
  void end_of_whole(Stream stream);

  struct Arrived {
    DeviceNumbers numbers;
    /// Of all steps; of an epoch that ended as a whole, what the last one before it took.
    double step_seconds = 0;
    double seconds = 0;  ///< of the whole epoch
  };
  /// Waits for the earliest epoch that was not taken.
  Arrived take();

  /// Throws all away that was not taken, when it is there.
  void forget() noexcept;

  /// What was computed last. Waits for all that is queued.
  DeviceNumbers now(Stream stream) const;

 private:
  struct Slot {
    explicit Slot(Device device) : begun(device), steps_done(device), done(device) {}

    DeviceEvent begun, steps_done, done;
    bool follows = false;  ///< begins where the epoch before it ended
    bool in_parts = true;  ///< its steps have an end of their own
  };

  void end(bool in_parts, Stream stream);

  Place place_;
  Buffer<DeviceNumbers> device_;   ///< one
  Buffer<DeviceNumbers> arrived_;  ///< one for each slot
  std::array<Slot, num_slots> slots_;
  std::size_t ended_ = 0;
  std::size_t taken_ = 0;
  double last_step_seconds_ = 0;
};

}  // namespace tessera::train
