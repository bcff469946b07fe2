// SPDX-License-Identifier: Apache-2.0
#include "predict_files.hpp"

#include <optional>

#include <fmt/format.h>

#include "class_report.hpp"
#include "judge.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/grouped.hpp"

namespace tessera::app {
namespace {

std::optional<TitledReport> report_of(const PredictFiles& files, const Dataset& dataset,
                                      const train::Checkpoint& checkpoint,
                                      const train::Prediction& prediction) {
  if (files.reports.empty()) return {};
  const JudgedItems judged = items_to_judge(dataset, checkpoint, prediction);
  if (judged.items.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "of " + judged.what + " none has a label that the model knows", "--report",
                "leave it out, or predict data with labels");
  }
  return TitledReport{dataset.name, nn::describe(checkpoint.model), judged.what,
                      train::report_on(prediction, judged.items)};
}

}  // namespace

void add_file_options(Arguments& app, PredictFiles& files) {
  app.add_option("-o,--output", files.output,
                 "what was predicted, under the names of the data: .csv, .json, .npz, or .txt for "
                 "one class per line")
      ->type_name("FILE");
  app.add_flag("--short", files.brief,
               "in .csv and .json: what was predicted alone, without the probabilities of all "
               "classes, the true labels and the parts of the split");
  app.add_option("--embeddings", files.embeddings,
                 "write the inputs of the last layer: .csv or .npz")
      ->type_name("FILE");
  add_report_option(app, files.reports);
}

void require_sense(const PredictFiles& files) {
  if (!files.output.empty()) train::require_prediction_ending(files.output, false);
  if (!files.embeddings.empty()) train::require_embeddings_ending(files.embeddings);
  require_report_endings(files.reports);
}

Useless useless_short(const PredictFiles& files) {
  const bool has_forms = files.output.ends_with(".csv") || files.output.ends_with(".json");
  return {"--short", !has_forms, "without a table or JSON", "give -o FILE.csv"};
}

std::vector<FileUse> uses_of(const PredictFiles& files) {
  std::vector<FileUse> uses = report_files(files.reports);
  uses.push_back({"-o", files.output, FileRole::output});
  uses.push_back({"--embeddings", files.embeddings, FileRole::output});
  return uses;
}

std::vector<std::string> paths_of(const PredictFiles& files) {
  std::vector<std::string> paths{files.output, files.embeddings};
  paths.insert(paths.end(), files.reports.begin(), files.reports.end());
  std::erase(paths, std::string());
  return paths;
}

void add_paths(const PredictFiles& files, Json& json) {
  if (!files.output.empty()) json["output"] = files.output;
  if (!files.embeddings.empty()) json["embeddings"] = files.embeddings;
  if (!files.reports.empty()) json["reports"] = files.reports;
}

std::vector<std::string> notes_on_tables(const PredictFiles& files,
                                         const train::Prediction& prediction) {
  const bool has_tables = files.output.ends_with(".csv") || files.embeddings.ends_with(".csv");
  const std::int64_t changed = has_tables ? train::num_formula_names(prediction) : 0;
  if (changed == 0) return {};
  return {
      fmt::format("{} of {} ids begin as a formula does (=, +, -, @) and have an apostrophe before "
                  "them in tables; .json and .npz have them as they are",
                  grouped(changed), grouped(prediction.logits.rows()))};
}

void write_files(const PredictFiles& files, const Dataset& dataset,
                 const train::Checkpoint& checkpoint, const train::Prediction& prediction) {
  const auto report = report_of(files, dataset, checkpoint, prediction);
  if (!files.output.empty()) {
    train::save(prediction, files.output,
                files.brief ? train::PredictionForm::brief : train::PredictionForm::full);
  }
  if (!files.embeddings.empty()) train::save_embeddings(prediction, files.embeddings);
  if (report) write_class_reports(*report, files.reports);
}

}  // namespace tessera::app
