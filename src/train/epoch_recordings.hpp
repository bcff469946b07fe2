// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "tessera/core/recording.hpp"
#include "train/late_numbers.hpp"

namespace tessera::train {

/// What was recorded of epochs whose steps see the whole graph: an evaluation by itself, and a step
/// and its evaluation with nothing between them, once for each place that the numbers of an epoch
/// may arrive at.
class EpochRecordings {
 public:
  bool has_evaluation() const noexcept { return !evaluation_.empty(); }
  void replay_evaluation(Stream stream) const { evaluation_.replay(stream); }

  /// The whole epoch for a slot, or none where its two parts are to run apart: the first and then
  /// one in so many do, which tells how long a step takes.
  const Recording* next_epoch(std::size_t slot);

  /// Keeps what `queue_evaluation` queues and, `with_steps`, whole epochs; `record` keeps what some
  /// work queues. Returns why that could not be, or nothing.
  std::string record(LateNumbers& numbers, bool with_steps,
                     FunctionRef<std::string(Recording&, FunctionRef<void(Stream)>)> record,
                     FunctionRef<void(double* loss, Stream)> queue_step,
                     FunctionRef<void(ops::EvaluationNumbers* counts, Stream)> queue_evaluation);

 private:
  Recording evaluation_;
  std::array<Recording, LateNumbers::num_slots> epochs_;
  std::int64_t num_asked_ = 0;
};

}  // namespace tessera::train
