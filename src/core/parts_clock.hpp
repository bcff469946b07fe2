// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

/// Where the time of this process goes in work that many functions do together.
namespace tessera {

/// While one lives, every `TimedPart` of its thread counts for it.
class PartsClock {
 public:
  using Clock = std::chrono::steady_clock;

  PartsClock() noexcept : former_(std::exchange(current(), this)) {}
  ~PartsClock() { current() = former_; }
  PartsClock(const PartsClock&) = delete;
  PartsClock& operator=(const PartsClock&) = delete;

  struct Part {
    std::string_view name;
    double microseconds = 0;
  };
  /// In the order in which they first began. What a part spends in another is the other's alone.
  const std::vector<Part>& parts() const noexcept { return parts_; }

  static PartsClock*& current() noexcept {
    static thread_local PartsClock* clock = nullptr;
    return clock;
  }

 private:
  friend class TimedPart;

  std::size_t number_of(std::string_view name) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].name == name) return i;
    }
    parts_.push_back({name, 0});
    return parts_.size() - 1;
  }
  /// Ends what runs now and goes on with a part.
  void turn_to(std::size_t part, bool runs) noexcept {
    const Clock::time_point now = Clock::now();
    if (running_) {
      parts_[part_].microseconds += std::chrono::duration<double, std::micro>(now - since_).count();
    }
    part_ = part;
    running_ = runs;
    since_ = now;
  }

  PartsClock* former_;
  std::vector<Part> parts_;
  std::size_t part_ = 0;
  bool running_ = false;
  Clock::time_point since_;
};

/// A part of the work, from here to the end of its scope. Costs nothing where no clock runs.
class TimedPart {
 public:
  explicit TimedPart(std::string_view name) : clock_(PartsClock::current()) {
    if (clock_ == nullptr) return;
    outer_ = clock_->part_;
    outer_runs_ = clock_->running_;
    clock_->turn_to(clock_->number_of(name), true);
  }
  ~TimedPart() {
    if (clock_ != nullptr) clock_->turn_to(outer_, outer_runs_);
  }
  TimedPart(const TimedPart&) = delete;
  TimedPart& operator=(const TimedPart&) = delete;

 private:
  PartsClock* clock_;
  std::size_t outer_ = 0;
  bool outer_runs_ = false;
};

}  // namespace tessera
