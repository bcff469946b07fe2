// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "arguments.hpp"
#include "exit_code.hpp"
#include "session.hpp"
#include "train_options.hpp"

/// `train --task triples`.
namespace tessera::app {

struct TripleArguments {
  std::optional<std::int64_t> blocks, bases;
  std::optional<double> edge_dropout, penalty;
};

void add_triple_options(Arguments& app, TripleArguments& arguments);
/// Throws where one of them was given to learn something else.
void reject_triple_options(const Arguments& app);

ExitCode train_triples(Session& session, const Arguments& app, const TrainArguments& arguments,
                       const TripleArguments& triples);

}  // namespace tessera::app
