// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "arguments.hpp"
#include "exit_code.hpp"
#include "predict_links.hpp"
#include "session.hpp"

/// `predict` with a model of triples.
namespace tessera::app {

/// Answers the questions of `--for`, in the order of the file.
ExitCode predict_triples(Session& session, const Arguments& app, const std::string& source,
                         const std::string& checkpoint, const PredictLinks& links,
                         const std::string& output);

}  // namespace tessera::app
