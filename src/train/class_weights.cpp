// SPDX-License-Identifier: Apache-2.0
#include "train/class_weights.hpp"

#include <charconv>
#include <cmath>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/data/names.hpp"

namespace tessera::train {
namespace {

[[noreturn]] void reject(const std::string& problem, const std::string& fix) {
  throw Error(ErrorCode::invalid_argument, problem, "class_weights", fix);
}

/// "spam" of "spam=5", and the 5.
std::pair<std::string, double> parse_weight(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  double weight = -1;
  if (equals != std::string::npos) {
    const char* const end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data() + equals + 1, end, weight);
    if (problem != std::errc() || stop != end) weight = -1;
  }
  if (equals == 0 || !std::isfinite(weight) || weight < 0) {
    reject(fmt::format("'{}' is no weight of a class", text),
           "give balanced, none, or weights such as spam=5,ham=1");
  }
  return {text.substr(0, equals), weight};
}

std::string name_of_class(const Problem& problem, std::int64_t k) {
  const auto place = static_cast<std::size_t>(k);
  const std::int64_t value = problem.class_values.empty() ? k : problem.class_values[place];
  const bool has_name = value >= 0 && value < problem.class_names.size();
  return has_name ? std::string(problem.class_names[value]) : fmt::format("{}", value);
}

std::vector<float> given_weights(const Problem& problem, const ClassWeights& weights) {
  std::vector<float> result(static_cast<std::size_t>(problem.outputs), 1.0f);
  for (const auto& [name, weight] : weights.given) {
    std::int64_t k = 0;
    while (k < problem.outputs && name_of_class(problem, k) != name) ++k;
    if (k == problem.outputs) {
      reject(fmt::format("there is no class '{}'", name),
             fmt::format("use names of classes as the data has them, such as {}",
                         name_of_class(problem, 0)));
    }
    result[static_cast<std::size_t>(k)] = static_cast<float>(weight);
  }
  return result;
}

/// Without any there is nothing to learn from, and the mean over what items count is none.
void require_some_weight(const Problem& problem, const Split& split,
                         const std::vector<float>& weights) {
  for (const std::int64_t item : split.train) {
    const std::int64_t k = problem.labels[static_cast<std::size_t>(item)];
    if (weights[static_cast<std::size_t>(k)] > 0) return;
  }
  reject("no item to train on has a weight above 0", "give one of their classes a weight above 0");
}

/// As scikit-learn's: items / (classes * items of the class), so that their mean over items is 1.
std::vector<float> balanced_weights(const Problem& problem, const Split& split) {
  std::vector<std::int64_t> items(static_cast<std::size_t>(problem.outputs), 0);
  for (const std::int64_t item : split.train) {
    ++items[static_cast<std::size_t>(problem.labels[static_cast<std::size_t>(item)])];
  }
  double present = 0;
  for (const std::int64_t count : items) present += count > 0 ? 1 : 0;
  std::vector<float> result;
  for (const std::int64_t count : items) {
    const double of_all = static_cast<double>(split.train.size()) / present;
    result.push_back(count > 0 ? static_cast<float>(of_all / static_cast<double>(count)) : 1.0f);
  }
  return result;
}

}  // namespace

ClassWeights parse_class_weights(const std::string& text) {
  if (text == "none") return {};
  if (text == "balanced") return {true, {}};
  ClassWeights weights;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    weights.given.push_back(parse_weight(part));
    for (std::size_t i = 0; i + 1 < weights.given.size(); ++i) {
      if (weights.given[i].first != weights.given.back().first) continue;
      reject(fmt::format("class '{}' has two weights", weights.given[i].first), "give one");
    }
  }
  if (weights.none()) parse_weight(text);
  return weights;
}

std::string to_string(const ClassWeights& weights) {
  if (weights.balanced) return "balanced";
  std::string text;
  for (const auto& [name, weight] : weights.given) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, weight);
  }
  return text.empty() ? "none" : text;
}

TrainLoss train_loss(const Problem& problem, const Split& split, const TrainOptions& options) {
  const ClassWeights& weights = options.class_weights;
  if (problem.number_task()) {
    const NumberOptions& how = options.numbers;
    return {{}, 0, NumberLearning{number_outputs(problem, split, how), how}};
  }
  if (weights.none()) return {{}, options.label_smoothing, {}};
  if (problem.multi_label()) {
    reject("items with several labels have no class that could weigh more", "leave them out");
  }
  if (weights.balanced) return {balanced_weights(problem, split), options.label_smoothing, {}};
  std::vector<float> given = given_weights(problem, weights);
  require_some_weight(problem, split, given);
  return {std::move(given), options.label_smoothing, {}};
}

}  // namespace tessera::train
