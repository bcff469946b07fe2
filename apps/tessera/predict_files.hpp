// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "arguments.hpp"
#include "files.hpp"
#include "json.hpp"
#include "tessera/data/dataset.hpp"
#include "tessera/train/predict.hpp"
#include "useless.hpp"

/// What `predict` writes beside its own report.
namespace tessera::app {

struct PredictFiles {
  std::string output;  ///< empty: none
  bool brief = false;
  std::string embeddings;
  std::vector<std::string> reports;
};

void add_file_options(Arguments& app, PredictFiles& files);

/// Throws where the ending of a name does not say what to write.
void require_sense(const PredictFiles& files);

Useless useless_short(const PredictFiles& files);

std::vector<FileUse> uses_of(const PredictFiles& files);

/// All that were asked for.
std::vector<std::string> paths_of(const PredictFiles& files);
void add_paths(const PredictFiles& files, Json& json);

/// What tables do to names, where there are tables.
std::vector<std::string> notes_on_tables(const PredictFiles& files,
                                         const train::Prediction& prediction);

/// Nothing is written where a report is wanted and nothing can be said in it.
void write_files(const PredictFiles& files, const Dataset& dataset,
                 const train::Checkpoint& checkpoint, const train::Prediction& prediction);

}  // namespace tessera::app
