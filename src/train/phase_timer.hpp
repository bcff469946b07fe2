// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/measure.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::train {

/// Adds the time it lives to a phase.
class PhaseTimer {
 public:
  PhaseTimer(PhaseTimes& times, Phase phase) : seconds_(times[phase]) {}
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;
  ~PhaseTimer() { seconds_ += watch_.seconds(); }

 private:
  double& seconds_;
  Stopwatch watch_;
};

template <class Work>
decltype(auto) timed(PhaseTimes& times, Phase phase, Work&& work) {
  const PhaseTimer timer(times, phase);
  return work();
}

}  // namespace tessera::train
