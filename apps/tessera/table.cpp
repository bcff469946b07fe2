// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "characters.hpp"
#include "tessera/core/printable.hpp"

namespace tessera::app {

void Table::add(std::vector<std::string> cells) {
  cells.resize(alignment_.size());
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(alignment_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], num_characters(row[c]));
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - num_characters(row[c]), ' ');
      line += alignment_[c] == 'r' ? "  " + padding + row[c] : "  " + row[c] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string wrapped(const std::string& text, std::size_t column, std::size_t line_width) {
  std::string lines;
  std::size_t width = column;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (width > column && width + 1 + num_characters(word) > line_width) {
      lines += '\n' + std::string(column, ' ');
      width = column;
    } else if (width > column) {
      lines += ' ';
      ++width;
    }
    lines += word;
    width += num_characters(word);
  }
  return lines;
}

}  // namespace tessera::app
