// SPDX-License-Identifier: Apache-2.0
#include "train/epoch_recordings.hpp"

namespace tessera::train {

const Recording* EpochRecordings::next_epoch(std::size_t slot) {
  constexpr std::int64_t whole_epochs = 16;
  const Recording& epoch = epochs_[slot];
  return !epoch.empty() && num_asked_++ % whole_epochs != 0 ? &epoch : nullptr;
}

std::string EpochRecordings::record(
    LateNumbers& numbers, bool with_steps,
    FunctionRef<std::string(Recording&, FunctionRef<void(Stream)>)> record,
    FunctionRef<void(double*, Stream)> queue_step,
    FunctionRef<void(ops::EvaluationNumbers*, Stream)> queue_evaluation) {
  std::string why_not =
      record(evaluation_, [&](Stream stream) { queue_evaluation(numbers.evaluation(), stream); });
  const std::size_t slots = with_steps ? epochs_.size() : 0;
  for (std::size_t slot = 0; why_not.empty() && slot < slots; ++slot) {
    DeviceNumbers* const arriving = numbers.arriving(slot);
    why_not = record(epochs_[slot], [&](Stream stream) {
      queue_step(&arriving->loss, stream);
      queue_evaluation(&arriving->evaluation, stream);
    });
  }
  return why_not;
}

}  // namespace tessera::train
