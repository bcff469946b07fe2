// SPDX-License-Identifier: Apache-2.0
#include "describe_checkpoint.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "metric_text.hpp"
#include "numbers.hpp"
#include "table.hpp"
#include "tessera/core/printable.hpp"
#include "tessera/data/feature_columns.hpp"
#include "tessera/train/predict.hpp"

namespace tessera::app {
namespace {

/// The first of them, and how many there are beside them.
std::string in_short(const std::vector<std::string>& names) {
  constexpr std::size_t most = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return names.size() > most ? fmt::format("{} and {} more", text, names.size() - most) : text;
}

std::string task_of(const train::Checkpoint& checkpoint) {
  if (checkpoint.decoder) {
    return fmt::format("which pairs of vertices are linked: embeddings of {} numbers, decoder {}",
                       train::embedding_width(checkpoint), nn::to_string(*checkpoint.decoder));
  }
  if (checkpoint.numbers) {
    return fmt::format("{} for each {}", checkpoint.outputs == 1 ? "a number" : "numbers",
                       checkpoint.graph_task ? "graph" : "vertex");
  }
  const char* const what = checkpoint.multi_label  ? "several classes at once for each vertex"
                           : checkpoint.graph_task ? "a class for each graph"
                                                   : "a class for each vertex";
  return fmt::format("{}, {} classes", what, checkpoint.outputs);
}

const char* task_name(const train::Checkpoint& checkpoint) {
  if (checkpoint.decoder) return "links";
  if (checkpoint.numbers) return "numbers";
  return checkpoint.graph_task ? "graph" : "node";
}

std::int64_t num_epochs(const train::Checkpoint& checkpoint) {
  std::int64_t epochs = 0;
  for (const train::RunState& run : checkpoint.runs) epochs += std::ssize(run.curve);
  return epochs;
}

std::string columns_with(const std::vector<FeatureColumn>& columns, bool categories) {
  std::vector<std::string> names;
  for (const FeatureColumn& column : columns) {
    if (column.has_categories() != categories) continue;
    std::vector<std::string> shown;
    for (const std::string& category : column.categories) shown.push_back(printable(category));
    names.push_back(printable(column.name) +
                    (categories ? fmt::format(" ({})", in_short(shown)) : std::string()));
  }
  return in_short(names);
}

/// "price (mean 12.5, deviation 3.1), area"
void add_targets(const train::NumberOutputs& outputs, Table& table) {
  std::vector<std::string> targets;
  for (std::int64_t k = 0; k < outputs.count(); ++k) {
    const auto i = static_cast<std::size_t>(k);
    const bool is_raw = outputs.means[i] == 0 && outputs.deviations[i] == 1;
    targets.push_back(printable(outputs.name(k)) +
                      (is_raw ? std::string()
                              : fmt::format(" (mean {:.4g}, deviation {:.4g})", outputs.means[i],
                                            outputs.deviations[i])));
  }
  table.add({"targets", in_short(targets)});
}

Json targets_json(const train::NumberOutputs& outputs) {
  Json list = Json::array();
  for (std::int64_t k = 0; k < outputs.count(); ++k) {
    const auto i = static_cast<std::size_t>(k);
    list.push_back({{"name", outputs.name(k)},
                    {"mean", outputs.means[i]},
                    {"deviation", outputs.deviations[i]}});
  }
  return list;
}

const char* yes_or_no(bool yes) { return yes ? "yes" : "no"; }

const char* to_text(train::Normalise normalise) {
  switch (normalise) {
    case train::Normalise::rows: return "rows divided by their sums";
    case train::Normalise::standard: return "columns brought to mean 0 and deviation 1";
    default: return "as they are";
  }
}

void add_features(const char* what, std::int64_t count, const train::ModelInput& input,
                  const train::Normalisation& normalisation, Table& table) {
  table.add({what, fmt::format("{}, {}", grouped(count), to_text(normalisation.kind))});
  if (input.feature_names.empty()) {
    table.add({"names", "features have none: predictions take them by their position"});
    return;
  }
  const auto columns = feature_columns(input.feature_names, input.category_prefixes);
  const std::string numbers = columns_with(columns, false);
  const std::string categories = columns_with(columns, true);
  if (!numbers.empty()) table.add({"columns of numbers", numbers});
  if (!categories.empty()) table.add({"columns of categories", categories});
}

void add_input(const train::Checkpoint& checkpoint, Table& table) {
  const train::ModelInput& input = checkpoint.input;
  add_features("features", checkpoint.features, input, checkpoint.normalisation, table);
  if (nn::reads_edges(checkpoint.model)) {
    add_features("features of edges", checkpoint.model.edge_features, checkpoint.edge_input,
                 checkpoint.edge_normalisation, table);
  }
  if (!input.graph) return;
  table.add(
      {"graph",
       fmt::format("directed: {}, self loops: {}, weights: {}", yes_or_no(input.graph->directed),
                   yes_or_no(input.graph->self_loops), yes_or_no(input.graph->weighted))});
}

Json columns_json(const train::ModelInput& input) {
  Json list = Json::array();
  for (const FeatureColumn& column :
       feature_columns(input.feature_names, input.category_prefixes)) {
    Json one{{"name", column.name}, {"kind", column.has_categories() ? "categories" : "number"}};
    if (column.has_categories()) {
      one["categories"] = column.categories;
    } else {
      one["mean"] = input.means[static_cast<std::size_t>(column.first)];
    }
    list.push_back(std::move(one));
  }
  return list;
}

std::vector<std::string> class_names(const train::Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (std::int64_t k = 0; k < checkpoint.outputs; ++k) {
    const std::int64_t value =
        checkpoint.class_values.empty() ? k : checkpoint.class_values[static_cast<std::size_t>(k)];
    names.push_back(value >= 0 && value < checkpoint.class_names.size()
                        ? std::string(checkpoint.class_names[value])
                        : fmt::to_string(value));
  }
  return names;
}

}  // namespace

std::string checkpoint_text(const train::Checkpoint& checkpoint, const std::string& path) {
  Table table("ll");
  table.add({"model", nn::describe(checkpoint.model)});
  table.add({"task", task_of(checkpoint)});
  if (!checkpoint.class_names.empty()) {
    std::vector<std::string> names;
    for (const std::string& name : class_names(checkpoint)) names.push_back(printable(name));
    table.add({"classes", in_short(names)});
  }
  if (checkpoint.numbers) add_targets(*checkpoint.numbers, table);
  add_input(checkpoint, table);
  table.add({"training", fmt::format("{} {}, {} epochs", checkpoint.runs.size(),
                                     checkpoint.runs.size() == 1 ? "run" : "runs",
                                     grouped(num_epochs(checkpoint)))});
  const train::BestEpoch best = train::best_epoch(checkpoint);
  if (best.run >= 0) {
    table.add({"weights", fmt::format("of run {}, epoch {}", best.run + 1, best.epoch)});
    table.add({train::to_string(checkpoint.metric),
               fmt::format("{} validation, {}{}",
                           metric_text(checkpoint.metric, best.evaluation.validation),
                           checkpoint.split.test.empty()
                               ? "no test part"
                               : metric_text(checkpoint.metric, best.evaluation.test) + " test",
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
  Json json{
      {"verb", "info"},
      {"checkpoint", path},
      {"model", nn::to_string(checkpoint.model.kind)},
      {"features", checkpoint.features},
      {"outputs", checkpoint.outputs},
      {"task", task_name(checkpoint)},
      {"multi_label", checkpoint.multi_label},
      {"runs", checkpoint.runs.size()},
      {"epochs", num_epochs(checkpoint)},
      {"metric", train::to_string(checkpoint.metric)},
      {"full_weight_bytes", train::weight_bytes(checkpoint, {})},
      {"class_names",
       checkpoint.decoder || checkpoint.numbers ? Json::array() : Json(class_names(checkpoint))},
      {"feature_columns", columns_json(checkpoint.input)},
      {"normalise", train::to_string(checkpoint.normalisation.kind)}};
  if (nn::reads_edges(checkpoint.model)) {
    json["edge_features"] = checkpoint.model.edge_features;
    json["edge_feature_columns"] = columns_json(checkpoint.edge_input);
    json["edge_normalise"] = train::to_string(checkpoint.edge_normalisation.kind);
  }
  if (const auto& graph = checkpoint.input.graph) {
    json["graph"] = {{"directed", graph->directed},
                     {"self_loops", graph->self_loops},
                     {"weighted", graph->weighted}};
  }
  if (checkpoint.numbers) json["targets"] = targets_json(*checkpoint.numbers);
  if (checkpoint.decoder) json["decoder"] = nn::to_string(*checkpoint.decoder);
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
