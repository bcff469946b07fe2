// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "tessera/core/random.hpp"

/// Reading texts in the slowest and plainest way, one character after the other, to compare readers
/// with; and writing the same table in ways that differ in everything that does not count.
namespace tessera::test {

using Rows = std::vector<std::vector<std::string>>;

/// The fields of every line that is no remark. A separator of ' ' is any run of blanks.
inline Rows slow_rows(const std::string& text, char separator) {
  Rows rows;
  std::istringstream lines(text.rfind("\xEF\xBB\xBF", 0) == 0 ? text.substr(3) : text);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> fields(1);
    bool quoted = false;
    bool was_quoted = false;
    std::vector<bool> keep_blanks(1, false);
    for (std::size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      const bool blank = c == ' ' || c == '\t' || c == '\r';
      if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
        fields.back() += '"';
        ++i;
      } else if (c == '"') {
        quoted = !quoted;
        was_quoted = true;
        keep_blanks.back() = true;
      } else if (quoted) {
        fields.back() += c;
      } else if (c == separator || (separator == ' ' && blank)) {
        if (separator == ' ' && fields.back().empty() && !was_quoted) continue;
        fields.emplace_back();
        keep_blanks.push_back(false);
        was_quoted = false;
      } else if (!(blank && (fields.back().empty() || keep_blanks.back()))) {
        fields.back() += c;
      }
    }
    for (std::size_t i = 0; i < fields.size(); ++i) {
      while (!keep_blanks[i] && !fields[i].empty() &&
             std::string(" \t\r").find(fields[i].back()) != std::string::npos) {
        fields[i].pop_back();
      }
    }
    if (separator == ' ' && fields.back().empty() && !was_quoted) fields.pop_back();
    const std::string first = fields.empty() ? "" : fields[0];
    const bool blank_line = fields.empty() || (fields.size() == 1 && first.empty());
    if (blank_line || first[0] == '#' || first[0] == '%' || first.rfind("//", 0) == 0) continue;
    rows.push_back(fields);
  }
  return rows;
}

/// Draws of one seed, one after the other.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}
  int below(int limit) {
    return static_cast<int>(random_.below(next_++, static_cast<std::uint64_t>(limit)));
  }
  bool often() { return below(3) > 0; }
  bool seldom() { return below(12) == 0; }

 private:
  Random random_;
  std::uint64_t next_ = 0;
};

/// Blanks that do not count.
inline std::string padding(Draws& draws, char separator) {
  std::string blanks;
  while (draws.seldom()) blanks += draws.often() || separator == '\t' ? ' ' : '\t';
  return blanks;
}

inline std::string quoted(const std::string& field) {
  std::string text = "\"";
  for (const char c : field) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

/// The rows as a text, with remarks, blank lines, quotes and padding as they fall.
inline std::string written(const Rows& rows, char separator, bool may_quote, Draws& draws) {
  std::string text = draws.seldom() ? "\xEF\xBB\xBF" : "";
  const std::string end = draws.below(2) == 0 ? "\n" : "\r\n";
  for (const auto& row : rows) {
    if (draws.seldom()) text += padding(draws, separator) + end;
    if (draws.seldom())
      text += std::vector<std::string>{"# no, edge", "% 1 2",
                                       "// 3,4"}[static_cast<std::size_t>(draws.below(3))] +
              end;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool needs_quotes = row[i].find_first_of("\",; |\t") != std::string::npos;
      text += padding(draws, separator);
      text += needs_quotes || (may_quote && draws.seldom()) ? quoted(row[i]) : row[i];
      text += padding(draws, separator);
      if (i + 1 < row.size()) text += separator;
    }
    text += end;
  }
  if (draws.below(2) == 0) text.erase(text.size() - end.size());
  return text;
}

}  // namespace tessera::test
