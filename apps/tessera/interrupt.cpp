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
#include <utility>

#include "exit_code.hpp"

namespace tessera::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array watched_signals{SIGINT, SIGTERM, SIGHUP};
constexpr int tick_ms = 100;
constexpr auto grace = std::chrono::seconds(2);

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

// What the parent chose to ignore (nohup, a background job) stays ignored.
void handle(int signal) {
  struct sigaction old {};
  sigaction(signal, nullptr, &old);
  if (old.sa_handler == SIG_IGN) return;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

void restore_default(int signal) {
  struct sigaction old {};
  sigaction(signal, nullptr, &old);
  if (old.sa_handler == on_signal) ::signal(signal, SIG_DFL);
}

}  // namespace

InterruptWatch::InterruptWatch(std::function<void()> on_tick, std::function<void()> before_exit)
    : on_tick_(std::move(on_tick)), before_exit_(std::move(before_exit)) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ErrorCode::io, std::strerror(errno), "pipe for signals");
  }
  read_end_ = ends[0];
  write_end_ = ends[1];
  handler_pipe = write_end_;
  for (const int signal : watched_signals) handle(signal);
  thread_ = std::thread([this] { watch(); });
}

InterruptWatch::~InterruptWatch() {
  for (const int signal : watched_signals) restore_default(signal);
  [[maybe_unused]] const ssize_t written = write(write_end_, &watch_over, 1);
  thread_.join();
  handler_pipe = -1;
  close(read_end_);
  close(write_end_);
}

void InterruptWatch::watch() {
  Clock::time_point deadline{};
  while (true) {
    pollfd descriptor{read_end_, POLLIN, 0};
    const int ready = poll(&descriptor, 1, tick_ms);
    char message = 0;
    if (ready > 0 && read(read_end_, &message, 1) == 1) {
      if (message == watch_over) return;
      if (interrupted_.exchange(true)) end_process();
      deadline = Clock::now() + grace;
    } else {
      on_tick_();
    }
    if (interrupted_ && Clock::now() > deadline) end_process();
  }
}

void InterruptWatch::end_process() {
  before_exit_();
  _exit(static_cast<int>(ExitCode::interrupted));
}

}  // namespace tessera::app
