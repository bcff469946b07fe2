// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace tessera::reorder::detail {

/// What a search may spend: steps, which are the same on every machine, and time, which is not.
/// Asks the clock and the caller only once in a while.
class Budget {
 public:
  using Clock = std::chrono::steady_clock;

  Budget(std::int64_t steps, Clock::time_point deadline, std::function<bool()> stop)
      : steps_(steps), deadline_(deadline), stop_(std::move(stop)) {}

  /// Takes `steps` of what is left; false once nothing is.
  bool take(std::int64_t steps) {
    steps_ -= steps;
    until_clock_ -= steps;
    if (until_clock_ <= 0) {
      until_clock_ = steps_between_looks;
      out_of_time_ = out_of_time_ || Clock::now() >= deadline_ || (stop_ && stop_());
    }
    return !is_spent();
  }
  /// For who knows that the time is over, or was asked to stop.
  void end() { out_of_time_ = true; }
  bool is_spent() const { return steps_ <= 0 || out_of_time_; }
  /// Gives up all but this part of the steps that are left.
  void keep(double part) { steps_ = static_cast<std::int64_t>(part * static_cast<double>(steps_)); }
  bool out_of_time() const { return out_of_time_; }
  Clock::time_point deadline() const { return deadline_; }
  const std::function<bool()>& stop() const { return stop_; }
  std::int64_t steps_left() const { return steps_; }

 private:
  static constexpr std::int64_t steps_between_looks = 1 << 16;

  std::int64_t steps_;
  std::int64_t until_clock_ = 0;
  Clock::time_point deadline_;
  std::function<bool()> stop_;
  bool out_of_time_ = false;
};

}  // namespace tessera::reorder::detail
