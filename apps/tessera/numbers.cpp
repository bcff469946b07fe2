// SPDX-License-Identifier: Apache-2.0
#include "numbers.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace tessera::app {

std::string human_bytes(std::int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  constexpr std::array units{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double amount = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (amount >= 1024 && unit + 1 < units.size()) {
    amount /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", amount, amount < 10 ? 2 : 1, units.at(unit));
}

std::string human_seconds(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1000);
  return fmt::format("{:.2f} s", seconds);
}

std::string human_duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::min(seconds, 1e12)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 3600) return fmt::format("{} min", whole / 60);
  return fmt::format("{} h {} min", grouped(whole / 3600), whole % 3600 / 60);
}

std::string human_microseconds(double microseconds) { return human_seconds(microseconds * 1e-6); }

std::string human_real(double number) {
  if (std::isfinite(number) && std::abs(number) >= 1000 && std::abs(number) < 1e15) {
    return grouped(static_cast<std::int64_t>(std::llround(number)));
  }
  return fmt::format("{:.2f}", number);
}

std::string human_share(double share) { return fmt::format("{:.3g} %", share * 100); }

}  // namespace tessera::app
