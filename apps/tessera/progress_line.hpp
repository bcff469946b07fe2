// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace tessera::app {

/// One line on a terminal's stderr, redrawn in place: what is being done, how far, for how long.
/// Invisible ones do nothing. Any thread may call.
class ProgressLine {
 public:
  explicit ProgressLine(bool visible) : visible_(visible) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// `total` of 0 means that the length is unknown: a spinner turns instead of a bar.
  void update(std::string_view stage, std::int64_t done, std::int64_t total);
  /// Keeps the clock and the spinner moving while nothing is reported.
  void tick();
  /// Takes the line away, so that what follows starts at the left edge.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  void draw(Clock::time_point now);

  const bool visible_;
  std::mutex mutex_;
  std::string stage_;
  std::int64_t done_ = 0;
  std::int64_t total_ = 0;
  std::int64_t frame_ = 0;
  bool drawn_ = false;
  Clock::time_point started_ = Clock::now();
  Clock::time_point last_drawn_{};
};

/// True when stderr is a terminal that can redraw a line.
bool stderr_can_redraw();

}  // namespace tessera::app
