// SPDX-License-Identifier: Apache-2.0
#include "describe_checkpoint.hpp"

#include <fmt/format.h>

#include "numbers.hpp"
#include "table.hpp"
#include "tessera/core/printable.hpp"
#include "tessera/train/predict.hpp"

namespace tessera::app {
namespace {

const char* task_of(const train::Checkpoint& checkpoint) {
  if (checkpoint.multi_label) return "several classes at once for each vertex";
  return checkpoint.graph_task ? "a class for each graph" : "a class for each vertex";
}

std::int64_t num_epochs(const train::Checkpoint& checkpoint) {
  std::int64_t epochs = 0;
  for (const train::RunState& run : checkpoint.runs) epochs += std::ssize(run.curve);
  return epochs;
}

}  // namespace

std::string checkpoint_text(const train::Checkpoint& checkpoint, const std::string& path) {
  Table table("ll");
  table.add({"model", nn::describe(checkpoint.model)});
  table.add({"task", fmt::format("{}, {} classes", task_of(checkpoint), checkpoint.outputs)});
  table.add({"features", grouped(checkpoint.features)});
  table.add({"training", fmt::format("{} {}, {} epochs", checkpoint.runs.size(),
                                     checkpoint.runs.size() == 1 ? "run" : "runs",
                                     grouped(num_epochs(checkpoint)))});
  const train::BestEpoch best = train::best_epoch(checkpoint);
  if (best.run >= 0) {
    table.add({"weights", fmt::format("of run {}, epoch {}", best.run + 1, best.epoch)});
    table.add({train::to_string(checkpoint.metric),
               fmt::format("{:.2f} % validation, {}{}", best.evaluation.validation * 100,
                           checkpoint.split.test.empty()
                               ? "no test part"
                               : fmt::format("{:.2f} % test", best.evaluation.test * 100),
                           train::quantised_after_training(checkpoint) ? ", with all bits" : "")});
  }
  const std::int64_t full = train::weight_bytes(checkpoint, {});
  table.add({"size", fmt::format("{} bytes of weights in fp32", grouped(full))});
  if (!checkpoint.model.bits.empty()) {
    const std::int64_t bytes = train::weight_bytes(checkpoint, checkpoint.model.bits);
    table.add({"bits", nn::bits_text(checkpoint.model.bits)});
    table.add({"size in bits",
               fmt::format("{} bytes, {:.0f} % of fp32", grouped(bytes),
                           100 * static_cast<double>(bytes) / static_cast<double>(full))});
    table.add({"ranges", checkpoint.ranges.empty()                     ? "found when predicting"
                         : train::quantised_after_training(checkpoint) ? "found after the training"
                                                                       : "of the training"});
    table.add({"lost", checkpoint.lost ? fmt::format("{:.2f} points of {} against all bits",
                                                     *checkpoint.lost * 100,
                                                     train::to_string(checkpoint.metric))
                                       : "unknown ('tessera train --baseline' compares)"});
  }
  return fmt::format("{}: a trained model\n{}", printable(path), table.text());
}

Json checkpoint_json(const train::Checkpoint& checkpoint, const std::string& path) {
  const train::BestEpoch best = train::best_epoch(checkpoint);
  Json json{{"verb", "info"},
            {"checkpoint", path},
            {"model", nn::to_string(checkpoint.model.kind)},
            {"features", checkpoint.features},
            {"outputs", checkpoint.outputs},
            {"task", checkpoint.graph_task ? "graph" : "node"},
            {"multi_label", checkpoint.multi_label},
            {"runs", checkpoint.runs.size()},
            {"epochs", num_epochs(checkpoint)},
            {"metric", train::to_string(checkpoint.metric)},
            {"full_weight_bytes", train::weight_bytes(checkpoint, {})}};
  if (best.run >= 0) {
    json["best"] = {{"run", best.run + 1},
                    {"epoch", best.epoch},
                    {"validation", best.evaluation.validation},
                    {"test", checkpoint.split.test.empty() ? Json() : Json(best.evaluation.test)}};
  }
  if (!checkpoint.model.bits.empty()) {
    json["bits"] = {{"layers", checkpoint.model.bits},
                    {"weight_bytes", train::weight_bytes(checkpoint, checkpoint.model.bits)},
                    {"has_ranges", !checkpoint.ranges.empty()},
                    {"after_training", train::quantised_after_training(checkpoint)}};
    if (checkpoint.lost) json["bits"]["lost"] = *checkpoint.lost;
  }
  return json;
}

}  // namespace tessera::app
