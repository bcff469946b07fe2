// SPDX-License-Identifier: Apache-2.0
#include "curve.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

namespace tessera::app {
namespace {

constexpr std::array<const char*, 9> eighths = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<const char*, 9> plain = {" ", ".", ".", ".", ":", ":", ":", "#", "#"};

/// One number per column: the mean of the values that fall into it.
std::vector<double> columns_of(const std::vector<double>& values, std::size_t width) {
  if (values.size() <= width) return values;
  std::vector<double> columns;
  for (std::size_t column = 0; column < width; ++column) {
    const std::size_t begin = column * values.size() / width;
    const std::size_t end = (column + 1) * values.size() / width;
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += values[i];
    columns.push_back(sum / static_cast<double>(end - begin));
  }
  return columns;
}

/// How many eighths of a cell are filled in this row, counted from below.
std::size_t filled(double share, std::size_t row, std::size_t height) {
  const double eighths_high = share * static_cast<double>(8 * height);
  const double in_row = std::round(eighths_high) - static_cast<double>(8 * row);
  return static_cast<std::size_t>(std::clamp(in_row, 0.0, 8.0));
}

}  // namespace

bool utf8_output() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view text(value);
    return text.find("UTF-8") != std::string_view::npos ||
           text.find("utf8") != std::string_view::npos;
  }
  return false;
}

std::string draw(const Chart& chart, std::size_t width, std::size_t height) {
  if (chart.values.empty()) return {};
  const std::vector<double> columns = columns_of(chart.values, width);
  const auto [lowest, highest] = std::minmax_element(columns.begin(), columns.end());
  const double range = *highest > *lowest ? *highest - *lowest : 1;
  const bool utf8 = utf8_output();
  const auto& cells = utf8 ? eighths : plain;
  std::string text = fmt::format("  {}\n", chart.title);
  for (std::size_t row = height; row-- > 0;) {
    const std::string label = row + 1 == height ? chart.label(*highest)
                              : row == 0        ? chart.label(*lowest)
                                                : "";
    text += fmt::format("  {:>8} {}", label, utf8 ? "┤" : "|");
    for (const double value : columns) {
      // The lowest column still shows, so that it can be told from no column.
      const double share = 0.02 + 0.98 * (value - *lowest) / range;
      text += cells[filled(share, row, height)];
    }
    text += '\n';
  }
  const std::size_t space = columns.size() > chart.first.size() + chart.last.size()
                                ? columns.size() - chart.first.size() - chart.last.size()
                                : 1;
  text += fmt::format("  {:>8}  {}{}{}\n", "", chart.first, std::string(space, ' '), chart.last);
  return text;
}

}  // namespace tessera::app
