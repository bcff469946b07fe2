// SPDX-License-Identifier: Apache-2.0
#include "progress_line.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "characters.hpp"
#include "colour.hpp"
#include "numbers.hpp"
#include "tessera/core/printable.hpp"

namespace tessera::app {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double redraw_seconds = 0.1;
constexpr double line_seconds = 60;
constexpr std::size_t stage_width = 24;
constexpr std::size_t widest_bar = 24;
constexpr std::size_t narrowest_bar = 4;
constexpr const char* erase_line = "\r\x1b[K";

std::size_t terminal_width() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

/// TESSERA_PROGRESS_SECONDS says how often a line is printed where stderr is no terminal.
double seconds_between_lines() {
  const char* const given = std::getenv("TESSERA_PROGRESS_SECONDS");
  const double seconds = given == nullptr ? 0 : std::strtod(given, nullptr);
  return seconds > 0 && seconds < 1e6 ? seconds : line_seconds;
}

double share_of(std::int64_t done, std::int64_t total) {
  return std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
}

}  // namespace

ProgressLine::Style ProgressLine::suitable() {
  if (isatty(STDERR_FILENO) == 0) return Style::lines;
  const char* const terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return dumb ? Style::hidden : Style::redrawn;
}

ProgressLine::ProgressLine(Style style)
    : style_(style),
      interval_(std::chrono::duration_cast<Clock::duration>(
          Seconds(style == Style::lines ? seconds_between_lines() : redraw_seconds))),
      last_shown_(style == Style::lines ? started_ : Clock::time_point{}) {}

void ProgressLine::update(std::string_view stage, std::int64_t done, std::int64_t total) {
  if (style_ == Style::hidden) return;
  const std::lock_guard lock(mutex_);
  if (stage != stage_) stage_ = printable(stage);
  const auto now = Clock::now();
  if (total != total_ || done < done_) {
    heard_at_ = now;
    heard_done_ = done;
  }
  done_ = done;
  total_ = total;
  show(now);
}

void ProgressLine::tick() {
  if (style_ == Style::hidden) return;
  const std::lock_guard lock(mutex_);
  if (!stage_.empty()) show(Clock::now());
}

void ProgressLine::clear() {
  if (style_ == Style::hidden) return;
  const std::lock_guard lock(mutex_);
  if (drawn_) std::fputs(erase_line, stderr);
  std::fflush(stderr);
  drawn_ = false;
  stage_.clear();
}

void ProgressLine::show(Clock::time_point now) {
  if (now - last_shown_ < interval_) return;
  last_shown_ = now;
  style_ == Style::redrawn ? draw(now) : print_line(now);
}

/// Empty before two seconds of work have told how fast it goes.
std::string ProgressLine::time_left(Clock::time_point now) const {
  const double elapsed = Seconds(now - heard_at_).count();
  if (total_ <= 0 || done_ <= heard_done_ || elapsed < 2) return {};
  const double left =
      elapsed * static_cast<double>(total_ - done_) / static_cast<double>(done_ - heard_done_);
  return fmt::format("about {} left", human_duration(std::max(0.0, left)));
}

void ProgressLine::draw(Clock::time_point now) {
  constexpr std::string_view spinner = "|/-\\";
  const bool coloured = colour_on(STDERR_FILENO);
  const double elapsed = Seconds(now - started_).count();
  const std::size_t width = terminal_width() - 1;
  std::string after, bar;
  if (total_ > 0) after = fmt::format(" {:3.0f} %", share_of(done_, total_) * 100);
  const std::string left = time_left(now);
  after += fmt::format("  {:.1f} s{}{}", elapsed, left.empty() ? "" : ", ", left);
  after = first_characters(after, width);
  // The time that is left matters most, then the words, then the bar.
  const std::size_t room = width - num_characters(after);
  if (total_ > 0) {
    const std::size_t wanted = std::max(num_characters(stage_), stage_width) + 3;
    const std::size_t length =
        std::clamp(room > wanted ? room - wanted : 0, narrowest_bar, widest_bar);
    const auto filled =
        static_cast<std::size_t>(share_of(done_, total_) * static_cast<double>(length));
    bar = fmt::format("[{}{}]", std::string(filled, '#'), std::string(length - filled, '.'));
  } else {
    bar = std::string(1, spinner[static_cast<std::size_t>(frame_++) % spinner.size()]);
  }
  bar = first_characters(bar, room);
  const std::size_t free = room - num_characters(bar);
  std::string before;
  if (free > 0) {
    before = first_characters(stage_, free - 1);
    before.append(std::max(std::min(stage_width, free - 1), num_characters(before)) -
                      num_characters(before) + 1,
                  ' ');
  }
  if (coloured) bar = paint(bar, Paint::cyan);
  std::fputs((erase_line + before + bar + after).c_str(), stderr);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressLine::print_line(Clock::time_point now) {
  std::string line = "tessera: " + stage_;
  if (total_ > 0) line += fmt::format(", {:.0f} %", share_of(done_, total_) * 100);
  line += fmt::format(", {} so far", human_duration(Seconds(now - started_).count()));
  if (const std::string left = time_left(now); !left.empty()) line += ", " + left;
  std::fputs((line + '\n').c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace tessera::app
