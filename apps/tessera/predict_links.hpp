// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "exit_code.hpp"
#include "files.hpp"
#include "options.hpp"
#include "session.hpp"
#include "tessera/train/checkpoint.hpp"
#include "tessera/train/predict.hpp"

/// `predict` with a model of links.
namespace tessera::app {

struct PredictLinks {
  std::string pairs;                ///< a file; empty: none
  std::optional<std::int64_t> top;  ///< the length of lists
  std::string vertices;             ///< that get lists; empty: all
  bool keeps_known = false;

  bool asked() const { return !pairs.empty() || top.has_value(); }
};

void add_link_options(Arguments& app, PredictLinks& links);
std::vector<FileUse> uses_of(const PredictLinks& links);

/// What is asked of which model.
struct LinkQuestion {
  const DataOptions& data;
  const PredictLinks& links;
  const std::string& checkpoint;
  std::string output, embeddings;
};

/// Throws where options do not fit each other or the checkpoint, before the data is read.
void require_sense(const Arguments& app, const LinkQuestion& question,
                   const train::Checkpoint& checkpoint);

ExitCode predict_links(Session& session, const LinkQuestion& question, const Dataset& dataset,
                       const train::Checkpoint& checkpoint, const train::PredictOptions& options);

}  // namespace tessera::app
