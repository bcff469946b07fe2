// SPDX-License-Identifier: Apache-2.0
#include "tune_search.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/random.hpp"

namespace tessera::app {
namespace {

[[noreturn]] void reject(const std::string& problem, const std::string& fix) {
  throw Error(ErrorCode::invalid_argument, problem, "--search", fix);
}

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = problem == std::errc() && end == text.data() + text.size();
  return is_number && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

bool is_whole(const std::string& text) {
  return text.find_first_not_of("0123456789") == std::string::npos;
}

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  if (text.empty() || text.back() == separator) parts.emplace_back();
  return parts;
}

SearchedOption parse_option(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    reject(fmt::format("'{}' says not what to try", text),
           "give options of train and values, such as lr=0.001..0.1,hidden=16|64");
  }
  SearchedOption option;
  option.name = text.substr(0, equals);
  const std::string values = text.substr(equals + 1);
  const std::size_t dots = values.find("..");
  if (dots == std::string::npos) {
    option.choices = parts_of(values, '|');
    if (std::find(option.choices.begin(), option.choices.end(), "") != option.choices.end()) {
      reject(fmt::format("'{}' has an empty choice", text), "put a value on both sides of each |");
    }
    return option;
  }
  const std::string begin = values.substr(0, dots), end = values.substr(dots + 2);
  const std::optional<double> lowest = number_in(begin), highest = number_in(end);
  if (!lowest || !highest || *lowest > *highest) {
    reject(fmt::format("'{}' is no range", text),
           "give two numbers, the lower one first, such as lr=0.001..0.1");
  }
  option.lowest = *lowest;
  option.highest = *highest;
  option.is_whole = is_whole(begin) && is_whole(end);
  return option;
}

}  // namespace

std::string SearchedOption::draw(double unit) const {
  if (!choices.empty()) {
    return choices[static_cast<std::size_t>(unit * static_cast<double>(choices.size()))];
  }
  const bool by_logarithm = lowest > 0 && highest >= 10 * lowest;
  // Every whole number gets as much of the range.
  const double end = is_whole ? highest + 1 : highest;
  double value =
      by_logarithm ? lowest * std::pow(end / lowest, unit) : lowest + unit * (end - lowest);
  if (is_whole) return fmt::format("{:.0f}", std::min(std::floor(value), highest));
  return fmt::format("{:.3g}", value);
}

std::vector<std::string> SearchedOption::outermost() const {
  if (!choices.empty()) return choices;
  if (is_whole) return {draw(0), draw(1)};
  return {draw(0), draw(1), draw(0.382)};
}

std::vector<SearchedOption> parse_search(const std::string& text) {
  std::vector<SearchedOption> search;
  for (const std::string& part : parts_of(text, ',')) {
    search.push_back(parse_option(part));
    for (std::size_t i = 0; i + 1 < search.size(); ++i) {
      if (search[i].name != search.back().name) continue;
      reject(fmt::format("'{}' is named twice", search[i].name), "name each option once");
    }
  }
  return search;
}

const char* usual_search(const std::string& model) {
  if (model == "sgc") return "lr=0.01..1,weight-decay=1e-6..1e-3,hops=1..4";
  if (model == "gat" || model == "gatv2") {
    return "lr=0.001..0.1,weight-decay=1e-5..1e-2,dropout=0..0.8,hidden=4|8|16|32";
  }
  return "lr=0.001..0.1,weight-decay=1e-5..1e-2,dropout=0..0.8,hidden=16|32|64|128";
}

std::vector<TrialSettings> drawn_settings(const std::vector<SearchedOption>& search,
                                          std::int64_t trials, std::uint64_t seed) {
  std::vector<TrialSettings> drawn(1);
  for (std::int64_t trial = 1; trial < trials; ++trial) {
    const Random random(seed, 0x74756e65, static_cast<std::uint32_t>(trial));
    TrialSettings& settings = drawn.emplace_back();
    for (std::size_t i = 0; i < search.size(); ++i) {
      settings.emplace_back(search[i].name, search[i].draw(random.uniform(i)));
    }
  }
  return drawn;
}

std::vector<HalvingStage> halving_stages(std::int64_t trials) {
  std::vector<HalvingStage> stages = {{trials, 1}};
  while (stages.size() < 3 && stages.back().trials > 2) {
    for (HalvingStage& stage : stages) stage.divisor *= 3;
    stages.push_back({(stages.back().trials + 2) / 3, 1});
  }
  return stages;
}

}  // namespace tessera::app
