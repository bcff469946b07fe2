// SPDX-License-Identifier: Apache-2.0
#include "colour.hpp"

#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string_view>
#include <utility>

namespace tessera::app {
namespace {

std::string& mode() {
  static std::string word = "auto";
  return word;
}

constexpr std::pair<std::string_view, Paint> verdicts[] = {
    {"ok", Paint::green},   {"chosen", Paint::green}, {"missing", Paint::yellow},
    {"broken", Paint::red}, {"FAILED", Paint::red},
};

/// The line with the verdicts in it painted: words with two spaces or the edge on either side.
std::string painted_line(const std::string& line) {
  std::string result;
  for (std::size_t begin = 0; begin < line.size();) {
    std::size_t text = line.find_first_not_of(' ', begin);
    if (text == std::string::npos) text = line.size();
    const std::size_t end = std::min(line.find("  ", text), line.size());
    result += line.substr(begin, text - begin);
    std::string cell = line.substr(text, end - text);
    for (const auto& [word, colour] : verdicts) {
      if (cell == word) {
        cell = paint(cell, colour);
        break;
      }
    }
    result += cell;
    begin = end;
  }
  return result;
}

}  // namespace

void set_colour_mode(const std::string& word) { mode() = word; }

bool colour_on(int descriptor) {
  if (mode() != "auto") return mode() == "always";
  const char* const refused = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  const bool has_colours = terminal != nullptr && std::string_view(terminal) != "dumb";
  return isatty(descriptor) != 0 && has_colours && (refused == nullptr || *refused == '\0');
}

std::string paint(const std::string& text, Paint colour) {
  constexpr const char* codes[] = {"1", "1;31", "32", "33", "36"};
  return std::string("\x1b[") + codes[static_cast<int>(colour)] + 'm' + text + "\x1b[0m";
}

std::string painted_report(const std::string& report) {
  std::string result;
  std::istringstream lines(report);
  bool first = true;
  for (std::string line; std::getline(lines, line); first = false) {
    const bool headline = first && !line.empty() && line[0] != ' ';
    result += (headline ? paint(line, Paint::bold) : painted_line(line)) + '\n';
  }
  return result;
}

}  // namespace tessera::app
