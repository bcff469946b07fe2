// SPDX-License-Identifier: Apache-2.0
#include "train/name_items.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/graph/fingerprint.hpp"
#include "tessera/train/metrics.hpp"
#include "tessera/train/true_classes.hpp"

#include "io/file.hpp"
#include "train/data_fingerprint.hpp"

namespace tessera::train {
namespace {

bool is_graph_of_training(const Checkpoint& checkpoint, const Dataset& dataset) {
  const Setting edges{std::string(fingerprint_prefix) + "edges",
                      fmt::format("{:016x}", fingerprint(dataset.graph))};
  const auto& settings = checkpoint.settings;
  return std::find(settings.begin(), settings.end(), edges) != settings.end();
}

std::int64_t num_items(const Checkpoint& checkpoint, const Dataset& dataset) {
  return checkpoint.graph_task ? dataset.num_graphs() : dataset.graph.num_rows();
}

void require_items(const std::vector<std::int64_t>& part, std::int64_t items) {
  for (const std::int64_t item : part) {
    if (item < items) continue;
    io::damaged("checkpoint", fmt::format("the split has item {} of {}", item, items));
  }
}

void mark(std::vector<SplitPart>& parts, std::span<const std::int64_t> items, SplitPart part) {
  for (const std::int64_t item : items) parts[static_cast<std::size_t>(item)] = part;
}

}  // namespace

std::vector<std::int64_t> test_items(const Checkpoint& checkpoint, const Dataset& dataset) {
  if (!is_graph_of_training(checkpoint, dataset)) return {};
  require_items(checkpoint.split.test, num_items(checkpoint, dataset));
  return checkpoint.split.test;
}

std::vector<SplitPart> item_parts(const Checkpoint& checkpoint, const Dataset& dataset) {
  const std::int64_t items = num_items(checkpoint, dataset);
  std::vector<SplitPart> parts(static_cast<std::size_t>(items), SplitPart::none);
  const Split& then = checkpoint.split;
  if (is_graph_of_training(checkpoint, dataset) && !then.train.empty()) {
    for (const auto* part : {&then.train, &then.validation, &then.test}) {
      require_items(*part, items);
    }
    mark(parts, then.train, SplitPart::train);
    mark(parts, then.validation, SplitPart::validation);
    mark(parts, then.test, SplitPart::test);
    return parts;
  }
  const std::int64_t in_split =
      dataset.train.size() + dataset.validation.size() + dataset.test.size();
  if (checkpoint.graph_task || in_split == 0) return {};
  mark(parts, dataset.train, SplitPart::train);
  mark(parts, dataset.validation, SplitPart::validation);
  mark(parts, dataset.test, SplitPart::test);
  return parts;
}

void name_items(const Checkpoint& checkpoint, const Dataset& dataset, Prediction& prediction) {
  prediction.graph_task = checkpoint.graph_task;
  prediction.multi_label = checkpoint.multi_label;
  prediction.class_names = checkpoint.class_names;
  if (!prediction.graph_task) prediction.item_names = dataset.vertex_names;
  prediction.parts = item_parts(checkpoint, dataset);
  if (checkpoint.numbers) {
    prediction.numbers = checkpoint.numbers;
    TrueNumbers known = true_numbers(*checkpoint.numbers, checkpoint.graph_task, dataset);
    prediction.true_numbers = std::move(known.matrix);
    prediction.notes.insert(prediction.notes.end(), known.notes.begin(), known.notes.end());
    return;
  }
  prediction.class_values = checkpoint.class_values;
  if (prediction.class_values.empty()) {
    prediction.class_values.resize(static_cast<std::size_t>(checkpoint.outputs));
    std::iota(prediction.class_values.begin(), prediction.class_values.end(), std::int64_t{0});
  }
  if (prediction.multi_label) {
    const auto* const labels = std::get_if<MultiLabels>(&dataset.labels);
    const bool fit = labels != nullptr && (*labels)->cols() == checkpoint.outputs;
    if (fit) prediction.true_labels = *labels;
    return;
  }
  std::vector<std::optional<std::int64_t>> known = true_classes(checkpoint, dataset).classes;
  const bool any = std::any_of(known.begin(), known.end(), [](const auto& k) { return !!k; });
  if (any && std::ssize(known) == prediction.logits.rows()) {
    prediction.true_classes = std::move(known);
  }
  for (std::int64_t row = 0; row < prediction.logits.rows(); ++row) {
    const std::int64_t k = predicted_class(prediction.logits, row);
    prediction.classes.push_back(k < 0 ? k : prediction.class_values[static_cast<std::size_t>(k)]);
  }
}

}  // namespace tessera::train
