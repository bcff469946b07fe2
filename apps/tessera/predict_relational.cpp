// SPDX-License-Identifier: Apache-2.0
#include "predict_relational.hpp"

#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "class_report.hpp"
#include "describe_relational.hpp"
#include "judge.hpp"
#include "numbers.hpp"
#include "table.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/core/printable.hpp"
#include "tessera/train/class_report.hpp"
#include "tessera/train/relational.hpp"
#include "tessera/train/true_classes.hpp"
#include "train_options.hpp"
#include "useless.hpp"

namespace tessera::app {
namespace {

std::map<std::string, std::int64_t> class_counts(const train::Prediction& prediction) {
  std::map<std::string, std::int64_t> counts;
  for (const std::int64_t number : prediction.classes) {
    ++counts[printable(train::class_name(prediction, number))];
  }
  return counts;
}

/// What predictions are judged by: the data of the kind that was learned.
struct Judged {
  const Dataset& vertices;
  train::Checkpoint checkpoint;
  const train::Prediction& prediction;
};

void write_files(const PredictFiles& files, const std::string& model, const Judged& judged) {
  std::optional<TitledReport> report;
  if (!files.reports.empty()) {
    const JudgedItems items = items_to_judge(judged.vertices, judged.checkpoint, judged.prediction);
    if (items.items.empty()) {
      throw Error(ErrorCode::invalid_argument,
                  "of " + items.what + " none has a label that the model knows", "--report",
                  "leave it out, or predict data with labels");
    }
    report = TitledReport{judged.vertices.name, model, items.what,
                          train::report_on(judged.prediction, items.items)};
  }
  if (!files.output.empty()) {
    train::save(judged.prediction, files.output,
                files.brief ? train::PredictionForm::brief : train::PredictionForm::full);
  }
  if (report) write_class_reports(*report, files.reports);
}

void deliver(Session& session, const RelationalQuestion& question, const RelationalData& data,
             const train::RelationalCheckpoint& checkpoint, const Judged& judged) {
  const std::int64_t items = judged.prediction.logits.rows();
  Table table("ll");
  Json json{{"verb", "predict"}, {"source", question.data.source}};
  json.update(brief_json(data));
  json["task"] = "node";
  json["checkpoint"] = question.checkpoint;
  json["model"] = nn::to_string(checkpoint.model.kind);
  json["predicted_kind"] = judged.vertices.name;
  json["items"] = items;
  table.add({"model", train::describe(checkpoint.model)});
  table.add({"weights",
             fmt::format("of run {}, epoch {}", checkpoint.best.run + 1, checkpoint.best.epoch)});
  table.add({"vertices", fmt::format("{} of {}", grouped(items), printable(judged.vertices.name))});
  std::string classes;
  json["predicted"] = Json::object();
  for (const auto& [name, count] : class_counts(judged.prediction)) {
    classes += fmt::format("{}{}: {}", classes.empty() ? "" : ", ", name, grouped(count));
    json["predicted"][name] = count;
  }
  if (!classes.empty()) table.add({"classes", classes});
  if (const auto quality = assess(judged.vertices, judged.checkpoint, judged.prediction)) {
    const char* metric = checkpoint.multi_label ? "micro_f1" : "accuracy";
    table.add({metric, fmt::format("{:.2f} % of {} ({})", quality->metric * 100, quality->items,
                                   grouped(quality->count))});
    json["test"] = {{"metric", metric}, {"value", quality->metric}, {"items", quality->count}};
  }
  for (const std::string& path : paths_of(question.files)) table.add({"written", path});
  add_paths(question.files, json);
  session.deliver(headline(data) + "\n" + table.text(), json);
}

}  // namespace

ExitCode predict_relational(Session& session, const Arguments& app,
                            const RelationalQuestion& question) {
  std::vector<const char*> allowed{"--checkpoint", "--output", "--short", "--report", "--device"};
  allowed.insert(allowed.end(), relational_reading.begin(), relational_reading.end());
  allow_options(app, allowed, "for a model of kinds of vertices");
  require_sense(question.files);
  reject_useless(app, {useless_short(question.files)});
  step::Placement placement;
  placement.memory = &default_memory(checked_device(question.device));
  const train::RelationalCheckpoint checkpoint =
      train::load_relational_checkpoint(question.checkpoint);
  if (!question.files.output.empty()) {
    train::require_prediction_ending(question.files.output, checkpoint.multi_label);
  }
  const RelationalData data = load_relational(session, question.data);
  session.stage("predicting");
  const train::Prediction prediction = train::predict(checkpoint, data, placement);
  const Judged judged{data.kinds[static_cast<std::size_t>(checkpoint.labelled)],
                      train::judged_by(checkpoint, data), prediction};
  session.add_notes(prediction.notes);
  session.add_notes(train::true_classes(judged.checkpoint, judged.vertices).notes);
  session.add_notes(notes_on_tables(question.files, prediction));
  write_files(question.files, train::describe(checkpoint.model), judged);
  deliver(session, question, data, checkpoint, judged);
  return ExitCode::ok;
}

}  // namespace tessera::app
