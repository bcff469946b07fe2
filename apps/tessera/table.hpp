// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tessera::app {

/// Rows of text with aligned columns, two spaces apart and indented by two.
class Table {
 public:
  /// One letter per column: 'l' for left, 'r' for right.
  explicit Table(std::string alignment) : alignment_(std::move(alignment)) {}

  /// Missing cells are empty. Whatever a name in a cell holds, the row stays one printable line.
  void add(std::vector<std::string> cells);
  std::string text() const;

 private:
  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;
};

/// Breaks text between words at `line_width` columns; lines after the first start at `column`.
std::string wrapped(const std::string& text, std::size_t column, std::size_t line_width = 96);

}  // namespace tessera::app
