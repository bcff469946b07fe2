// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tessera::app {

/// A chart of numbers as text: columns of blocks over an axis from the first to the last. Longer
/// series are drawn as means over neighbours.
struct Chart {
  std::string title;
  std::vector<double> values;
  /// How the lowest and highest value are written beside the axis.
  std::function<std::string(double value)> label;
  std::string first;  ///< under the axis, left and right
  std::string last;
};

/// With eighths of blocks where the locale can show them, else with plain characters.
std::string draw(const Chart& chart, std::size_t width = 64, std::size_t height = 6);

/// True if the environment says that output is UTF-8.
bool utf8_output();

}  // namespace tessera::app
