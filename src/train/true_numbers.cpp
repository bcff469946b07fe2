// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "tessera/core/error.hpp"

#include "core/listing.hpp"
#include "train/number_targets.hpp"

namespace tessera::train {
namespace {

/// Where the data has each of a model's targets; -1: it has not.
std::vector<std::int64_t> places_of(const NumberOutputs& outputs, const Targets& known) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(outputs.count()), -1);
  const bool by_position = outputs.names.empty() || known.names.empty();
  for (std::int64_t k = 0; k < outputs.count(); ++k) {
    auto& place = places[static_cast<std::size_t>(k)];
    if (by_position && known.count() == outputs.count()) place = k;
    for (std::int64_t j = 0; !by_position && j < known.count(); ++j) {
      if (known.names[j] == outputs.names[k]) place = j;
    }
  }
  return places;
}

/// Labels that are no numbers say nothing of them.
Targets known_numbers(const Dataset& dataset, bool graph_task) {
  try {
    return numbers_of(dataset, graph_task);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

TrueNumbers true_numbers(const NumberOutputs& outputs, bool graph_task, const Dataset& dataset) {
  const Targets known = known_numbers(dataset, graph_task);
  if (known.empty()) return {};
  const std::vector<std::int64_t> places = places_of(outputs, known);
  auto matrix = std::make_shared<Matrix<float>>(known.matrix->rows(), outputs.count(),
                                                std::numeric_limits<float>::quiet_NaN());
  std::vector<std::string> absent;
  for (std::int64_t k = 0; k < outputs.count(); ++k) {
    const std::int64_t place = places[static_cast<std::size_t>(k)];
    if (place < 0) absent.push_back(in_quotes(outputs.name(k)));
    for (std::int64_t i = 0; place >= 0 && i < matrix->rows(); ++i) {
      (*matrix)(i, k) = (*known.matrix)(i, place);
    }
  }
  TrueNumbers result;
  if (!absent.empty()) {
    result.notes.push_back("the data does not say what is predicted of " + listed(absent));
  }
  if (std::ssize(absent) < outputs.count()) result.matrix = std::move(matrix);
  return result;
}

}  // namespace tessera::train
