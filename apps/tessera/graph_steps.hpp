// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "arguments.hpp"
#include "session.hpp"
#include "tessera/data/dataset.hpp"

namespace tessera::app {

/// What is done to the edges once they are read, in this order whatever that of the options.
struct GraphSteps {
  bool transpose = false;
  bool symmetrise = false;
  std::string self_loops = "keep";
  /// The graph is all that is wanted of the data: what no longer fits it does no harm.
  bool graph_alone = false;
};

void add_step_options(Arguments& app, GraphSteps& steps);

/// Returns what was done, and hands the session a note on each step. `source` is for errors.
std::vector<std::string> take_steps(Session& session, const GraphSteps& steps,
                                    const std::string& source, Dataset& dataset);

}  // namespace tessera::app
