// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace tessera::app {

/// Thrown out of long work after Ctrl-C. Not a std::exception, so that nothing on the way takes it
/// for an error and wraps it.
struct Interrupted {};

/// Turns SIGINT, SIGTERM and SIGHUP into a request to stop that work checks for when it can, so
/// that half-written files are removed on the way out. Work that does not answer within two
/// seconds, or a second Ctrl-C, ends the process at once. One at a time.
class InterruptWatch {
 public:
  /// `on_tick` runs on the watching thread ten times a second; `before_exit` just before the
  /// process is ended by force.
  InterruptWatch(std::function<void()> on_tick, std::function<void()> before_exit);
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  /// Throws Interrupted once a signal has come.
  void check() const {
    if (interrupted_.load(std::memory_order_relaxed)) throw Interrupted{};
  }

 private:
  void watch();
  [[noreturn]] void end_process();

  std::function<void()> on_tick_;
  std::function<void()> before_exit_;
  std::atomic<bool> interrupted_{false};
  int read_end_ = -1;
  int write_end_ = -1;
  std::thread thread_;
};

}  // namespace tessera::app
