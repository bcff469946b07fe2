// SPDX-License-Identifier: Apache-2.0
#include "progress_line.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "tessera/core/printable.hpp"

namespace tessera::app {
namespace {

constexpr auto redraw_interval = std::chrono::milliseconds(100);
constexpr std::int64_t bar_width = 24;
constexpr const char* erase_line = "\r\x1b[K";

std::size_t terminal_width() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

std::string bar(std::int64_t done, std::int64_t total) {
  const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(share * bar_width);
  return fmt::format("[{}{}] {:3.0f} %", std::string(filled, '#'),
                     std::string(bar_width - filled, '.'), share * 100);
}

}  // namespace

void ProgressLine::update(std::string_view stage, std::int64_t done, std::int64_t total) {
  if (!visible_) return;
  const std::lock_guard lock(mutex_);
  const bool new_stage = stage != stage_;
  if (new_stage) stage_ = printable(stage);
  done_ = done;
  total_ = total;
  const auto now = Clock::now();
  if (!drawn_ || now - last_drawn_ >= redraw_interval) draw(now);
}

void ProgressLine::tick() {
  if (!visible_) return;
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (drawn_ && now - last_drawn_ >= redraw_interval) draw(now);
}

void ProgressLine::clear() {
  if (!visible_) return;
  const std::lock_guard lock(mutex_);
  if (drawn_) std::fputs(erase_line, stderr);
  std::fflush(stderr);
  drawn_ = false;
}

void ProgressLine::draw(Clock::time_point now) {
  constexpr std::string_view spinner = "|/-\\";
  const double elapsed = std::chrono::duration<double>(now - started_).count();
  const std::string position =
      total_ > 0 ? bar(done_, total_)
                 : std::string(1, spinner[static_cast<std::size_t>(frame_++) % spinner.size()]);
  std::string line = fmt::format("{:<24} {}  {:.1f} s", stage_, position, elapsed);
  line.resize(std::min(line.size(), terminal_width() - 1));
  std::fputs((erase_line + line).c_str(), stderr);
  std::fflush(stderr);
  drawn_ = true;
  last_drawn_ = now;
}

bool stderr_can_redraw() {
  if (isatty(STDERR_FILENO) == 0) return false;
  const char* const terminal = std::getenv("TERM");
  return terminal == nullptr || std::string_view(terminal) != "dumb";
}

}  // namespace tessera::app
