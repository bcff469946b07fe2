// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

namespace tessera::app {

/// Thrown out of long work after Ctrl-C. Not a std::exception, so that nothing on the way takes it
/// for an error and wraps it.
struct Interrupted {
  std::string kept;  ///< what is kept of the work, and how to go on
};

/// Until there is an `InterruptWatch`, and there is nothing to clean up, SIGINT, SIGTERM and SIGHUP
/// end the process with the exit code of an interrupted one.
void end_on_signals();

/// Turns SIGINT, SIGTERM and SIGHUP into a request to stop that work checks for when it can. Work
/// that does not answer within a second, unless it has results to keep, or a second Ctrl-C, ends
/// the process at once, without leaving half a file behind. Once a result has got into its place,
/// requests come too late: the work is finished instead. One at a time.
class InterruptWatch {
 public:
  /// `on_tick` runs on the watching thread ten times a second; `before_exit` just before the
  /// process is ended by force. `kept` says what is kept of the work.
  InterruptWatch(std::function<void()> on_tick, std::function<void()> before_exit,
                 std::function<std::string()> kept);
  /// Signals are ignored from then on: what is left to do is to say how it went.
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  /// Throws Interrupted once a signal has come, unless that is too late.
  void check() const;

  /// Files written before `set_results_complete` are the state of work that can go on from them,
  /// not its results.
  void set_files_are_progress() noexcept { files_are_progress_ = true; }
  /// What the work has found so far is worth more than an end within a second.
  void set_has_results_to_keep() noexcept { has_results_to_keep_ = true; }
  void set_results_complete() noexcept { results_complete_ = true; }

 private:
  void watch();
  bool too_late() const noexcept;
  void end_process(int signals);

  std::function<void()> on_tick_;
  std::function<void()> before_exit_;
  std::function<std::string()> kept_;
  std::atomic<bool> interrupted_{false};
  std::atomic<bool> files_are_progress_{false};
  std::atomic<bool> has_results_to_keep_{false};
  std::atomic<bool> results_complete_{false};
  std::int64_t files_before_ = 0;
  int read_end_ = -1;
  int write_end_ = -1;
  std::thread thread_;
};

}  // namespace tessera::app
