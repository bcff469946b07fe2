// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/true_classes.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "tessera/core/grouped.hpp"
#include "tessera/data/classes.hpp"

#include "core/listing.hpp"

namespace tessera::train {
namespace {

std::string name_of(const Names& names, std::int64_t number) {
  return number >= 0 && number < names.size() ? std::string(names[number]) : fmt::to_string(number);
}

/// The numbers of the model's classes, by their names.
std::map<std::string, std::int64_t> classes_by_name(const Checkpoint& checkpoint) {
  std::map<std::string, std::int64_t> numbers;
  const std::vector<std::int64_t>& values = checkpoint.class_values;
  for (std::int64_t k = 0; k < checkpoint.outputs; ++k) {
    const std::int64_t value = values.empty() ? k : values[static_cast<std::size_t>(k)];
    numbers.emplace(name_of(checkpoint.class_names, value), value);
  }
  return numbers;
}

using MaybeClass = std::optional<std::int64_t>;

std::vector<MaybeClass> labels_of(const Checkpoint& checkpoint, const Dataset& dataset) {
  const auto* const of_vertices = std::get_if<ClassLabels>(&dataset.labels);
  std::vector<MaybeClass> classes;
  if (!checkpoint.graph_task && of_vertices == nullptr) return classes;
  const ClassLabels labels = checkpoint.graph_task ? dataset.graph_labels : *of_vertices;
  const std::vector<std::int64_t> values = class_values(labels.span());
  for (const std::int64_t label : labels) {
    classes.push_back(class_of(label, values) < 0 ? MaybeClass() : label);
  }
  return classes;
}

}  // namespace

TrueClasses true_classes(const Checkpoint& checkpoint, const Dataset& dataset) {
  TrueClasses result{labels_of(checkpoint, dataset), {}};
  const Names names = checkpoint.graph_task ? dataset.graph_class_names() : dataset.class_names;
  const std::map<std::string, std::int64_t> known = classes_by_name(checkpoint);
  std::map<std::int64_t, std::int64_t> counts;
  for (const MaybeClass& label : result.classes) {
    if (label) ++counts[*label];
  }
  const bool any_known = std::any_of(counts.begin(), counts.end(), [&](const auto& entry) {
    return known.contains(name_of(names, entry.first));
  });
  if (!any_known && names.empty() && !checkpoint.class_names.empty() && !counts.empty()) {
    result.notes.emplace_back(
        "the classes of the data have no names: they are compared with those of the model by "
        "number");
    return result;
  }
  std::map<std::int64_t, MaybeClass> numbers;
  std::vector<std::string> strangers;
  for (const auto& [label, count] : counts) {
    const auto found = known.find(name_of(names, label));
    if (found != known.end()) {
      numbers[label] = found->second;
    } else {
      strangers.push_back(fmt::format("{} ({})", in_quotes(name_of(names, label)), grouped(count)));
    }
  }
  for (MaybeClass& label : result.classes) {
    if (label) label = numbers[*label];
  }
  if (!strangers.empty()) {
    result.notes.push_back("items of classes that the model does not know are not judged: " +
                           listed(strangers));
  }
  return result;
}

}  // namespace tessera::train
