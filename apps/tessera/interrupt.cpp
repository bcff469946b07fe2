// SPDX-License-Identifier: Apache-2.0
#include "interrupt.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "exit_code.hpp"
#include "tessera/io/writing.hpp"

namespace tessera::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array watched_signals{SIGINT, SIGTERM, SIGHUP};
constexpr int tick_ms = 100;
constexpr auto grace = std::chrono::seconds(1);
// `timeout` signals a process and then its group, which reach it one after the other.
constexpr auto same_wish = std::chrono::milliseconds(300);
// So many signals end the process even where a result is in its place already.
constexpr int insistent = 2;

// Bytes of the pipe: a signal came, or the watch is over.
constexpr char signal_came = 's';
constexpr char watch_over = 'q';

// A handler can reach nothing but globals.
volatile sig_atomic_t handler_pipe = -1;

void on_signal(int) {
  const int saved_errno = errno;
  [[maybe_unused]] const ssize_t written = write(handler_pipe, &signal_came, 1);
  errno = saved_errno;
}

void on_signal_at_once(int) { _exit(static_cast<int>(ExitCode::interrupted)); }

// What the parent chose to ignore (nohup, a background job) stays ignored.
void handle(void (*handler)(int)) {
  for (const int signal : watched_signals) {
    struct sigaction old {};
    sigaction(signal, nullptr, &old);
    if (old.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace

void end_on_signals() { handle(on_signal_at_once); }

InterruptWatch::InterruptWatch(std::function<void()> on_tick, std::function<void()> before_exit,
                               std::function<std::string()> kept)
    : on_tick_(std::move(on_tick)),
      before_exit_(std::move(before_exit)),
      kept_(std::move(kept)),
      files_before_(io::files_written()) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ErrorCode::io, std::strerror(errno), "pipe for signals");
  }
  read_end_ = ends[0];
  write_end_ = ends[1];
  handler_pipe = write_end_;
  thread_ = std::thread([this] { watch(); });
  handle(on_signal);
}

InterruptWatch::~InterruptWatch() {
  handle(SIG_IGN);
  [[maybe_unused]] const ssize_t written = write(write_end_, &watch_over, 1);
  thread_.join();
  handler_pipe = -1;
  close(read_end_);
  close(write_end_);
}

bool InterruptWatch::too_late() const noexcept {
  return results_complete_ || (!files_are_progress_ && io::files_written() > files_before_);
}

void InterruptWatch::check() const {
  if (interrupted_ && !too_late()) throw Interrupted{kept_()};
}

void InterruptWatch::watch() {
  Clock::time_point deadline{};
  int signals = 0;
  while (true) {
    pollfd descriptor{read_end_, POLLIN, 0};
    const int ready = poll(&descriptor, 1, tick_ms);
    char message = 0;
    if (ready > 0 && read(read_end_, &message, 1) == 1) {
      if (message == watch_over) return;
      const bool again = signals > 0 && Clock::now() < deadline - grace + same_wish;
      if (again) continue;
      deadline = Clock::now() + grace;
      if (++signals > 1) end_process(signals);
      interrupted_ = true;
    } else {
      try {
        on_tick_();
      } catch (const std::bad_alloc&) {
        // Work goes on without a line of progress.
      }
    }
    const bool waits = !interrupted_ || has_results_to_keep_;
    if (!waits && Clock::now() > deadline) end_process(signals);
  }
}

void InterruptWatch::end_process(int signals) {
  const std::int64_t before = files_are_progress_ ? io::files_written() : files_before_;
  const bool abandoned = !results_complete_ && io::abandon_files(before);
  if (!abandoned && signals < insistent) return;
  before_exit_();
  _exit(static_cast<int>(ExitCode::interrupted));
}

}  // namespace tessera::app
