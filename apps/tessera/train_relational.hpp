// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "arguments.hpp"
#include "exit_code.hpp"
#include "session.hpp"
#include "train_options.hpp"
#include "train_triples.hpp"

/// `train` of a folder of kinds of vertices.
namespace tessera::app {

ExitCode train_relational(Session& session, const Arguments& app, const TrainArguments& arguments,
                          const TripleArguments& weights,
                          const std::function<void(const train::EpochRecord&)>& on_epoch);

}  // namespace tessera::app
