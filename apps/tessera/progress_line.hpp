// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace tessera::app {

/// What is being done, how far, for how long and how long still, on stderr. Any thread may call.
class ProgressLine {
 public:
  enum class Style {
    hidden,
    redrawn,  ///< one line of a terminal, ten times a second
    lines,    ///< a line per minute, for pipes and files
  };

  /// What suits stderr.
  static Style suitable();

  explicit ProgressLine(Style style);
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

  void show(Clock::time_point now);
  void draw(Clock::time_point now);
  void print_line(Clock::time_point now);
  std::string time_left(Clock::time_point now) const;

  const Style style_;
  const Clock::duration interval_;
  std::mutex mutex_;
  std::string stage_;
  std::int64_t done_ = 0;
  std::int64_t total_ = 0;
  std::int64_t frame_ = 0;
  bool drawn_ = false;
  Clock::time_point started_ = Clock::now();
  Clock::time_point last_shown_;
  /// Where the work of this total was first heard of, which tells its speed.
  Clock::time_point heard_at_ = started_;
  std::int64_t heard_done_ = 0;
};

}  // namespace tessera::app
