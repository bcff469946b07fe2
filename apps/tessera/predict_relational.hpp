// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "arguments.hpp"
#include "exit_code.hpp"
#include "options.hpp"
#include "predict_files.hpp"
#include "session.hpp"

/// `predict` with a model of a folder of kinds of vertices.
namespace tessera::app {

struct RelationalQuestion {
  const DataOptions& data;
  const std::string& checkpoint;
  const PredictFiles& files;
  const std::string& device;
};

ExitCode predict_relational(Session& session, const Arguments& app,
                            const RelationalQuestion& question);

}  // namespace tessera::app
