// SPDX-License-Identifier: Apache-2.0
#include "judge.hpp"

#include <numeric>

#include "tessera/train/class_report.hpp"
#include "tessera/train/metrics.hpp"

namespace tessera::app {
namespace {

std::vector<std::int64_t> all_items(const train::Prediction& prediction) {
  std::vector<std::int64_t> items(static_cast<std::size_t>(prediction.logits.rows()));
  std::iota(items.begin(), items.end(), std::int64_t{0});
  return items;
}

}  // namespace

JudgedItems items_to_judge(const Dataset& dataset, const train::Checkpoint& checkpoint,
                           const train::Prediction& prediction) {
  JudgedItems judged{"the test part of the training's split",
                     train::test_items(checkpoint, dataset)};
  if (judged.items.empty() && !prediction.graph_task) {
    judged.items.assign(dataset.test.begin(), dataset.test.end());
    judged.what = "the test part of this data";
  }
  if (judged.items.empty()) {
    judged.items = all_items(prediction);
    judged.what = prediction.numbers ? "all items with a number" : "all labelled items";
  }
  if (!prediction.numbers) {
    judged.items = train::judged_items(prediction, judged.items);
  } else if (prediction.true_numbers == nullptr) {
    judged.items.clear();
  }
  return judged;
}

std::optional<Quality> assess(const Dataset& dataset, const train::Checkpoint& checkpoint,
                              const train::Prediction& prediction) {
  const JudgedItems judged = items_to_judge(dataset, checkpoint, prediction);
  if (judged.items.empty() || prediction.numbers) return {};
  Quality quality{judged.what, 0, std::ssize(judged.items)};
  if (prediction.multi_label) {
    quality.metric = train::micro_f1(prediction.logits, *prediction.true_labels, judged.items);
    return quality;
  }
  for (const std::int64_t item : judged.items) {
    const auto i = static_cast<std::size_t>(item);
    quality.metric += *prediction.true_classes[i] == prediction.classes[i] ? 1 : 0;
  }
  quality.metric /= static_cast<double>(quality.count);
  return quality;
}

}  // namespace tessera::app
