// SPDX-License-Identifier: Apache-2.0
#include "graph_steps.hpp"

#include <fmt/format.h>

#include "numbers.hpp"
#include "options.hpp"
#include "tessera/core/error.hpp"
#include "tessera/data/change_edges.hpp"
#include "tessera/graph/transform.hpp"

namespace tessera::app {
namespace {

void require_data_still_fits(const GraphSteps& steps, const std::string& source,
                             const Dataset& dataset) {
  const bool has_data = dataset.num_features() > 0 || dataset.num_classes() > 0 ||
                        !dataset.graph_ids.empty() || !dataset.train.empty();
  if (steps.transpose && !dataset.graph.is_square() && has_data && !steps.graph_alone) {
    throw Error(ErrorCode::invalid_argument,
                "features and labels belong to the rows, which transposing makes columns", source,
                "give --graph-only to leave them out");
  }
}

/// "symmetrised: 5 edges became 8, without their weights"
std::string note_of(const std::string& step, const Graph& before, const Graph& after) {
  if (before == after) return step + ": the graph was so already";
  std::string note = before.num_edges() == after.num_edges()
                         ? fmt::format("{}: {} edges", step, grouped(after.num_edges()))
                         : fmt::format("{}: {} edges became {}", step, grouped(before.num_edges()),
                                       grouped(after.num_edges()));
  if (before.is_weighted() && !after.is_weighted()) note += ", without their weights";
  return note;
}

}  // namespace

void add_step_options(Arguments& app, GraphSteps& steps) {
  const std::string group = "Changes of the edges, in this order";
  app.add_flag("--transpose", steps.transpose, "first, reverse every edge")->group(group);
  app.add_flag("--symmetrise", steps.symmetrise,
               "then keep each edge in both directions once, without weights")
      ->group(group);
  app.add_option("--self-loops", steps.self_loops, "then add, remove or keep self loops")
      ->type_name("HOW")
      ->check(one_of({"add", "remove", "keep"}))
      ->capture_default_str()
      ->group(group);
}

std::vector<std::string> take_steps(Session& session, const GraphSteps& steps,
                                    const std::string& source, Dataset& dataset) {
  require_data_still_fits(steps, source, dataset);
  std::vector<std::string> done;
  const auto step = [&](const char* name, auto&& change) {
    session.stage(name);
    drop_edge_arrays(session, dataset);
    const Graph before = dataset.graph;
    const NewEdges added = change_edges(dataset, change);
    session.add_notes({note_of(name, before, dataset.graph)});
    if (added.reversed > 0) {
      session.add_notes({fmt::format("new edges with the features of their reverse: {}",
                                     grouped(added.reversed))});
    }
    if (added.zero > 0) {
      session.add_notes({"new edges with features of 0: " + grouped(added.zero)});
    }
    done.emplace_back(name);
  };
  if (steps.transpose) step("transposed", [](const Graph& g) { return transposed(g); });
  if (steps.symmetrise) step("symmetrised", [](const Graph& g) { return symmetrised(g); });
  if (steps.self_loops == "add") {
    step("self loops added", [](const Graph& g) { return with_self_loops(g); });
  } else if (steps.self_loops == "remove") {
    step("self loops removed", [](const Graph& g) { return without_self_loops(g); });
  }
  return done;
}

}  // namespace tessera::app
