// SPDX-License-Identifier: Apache-2.0
// Everything that is derived from a graph and kept with it can be asked for by any thread at any
// time: in tasks of parallel loops, while something else is derived, on every kind of graph.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/access.hpp"
#include "graph/degrees.hpp"
#include "graph/symmetry.hpp"
#include "graph/weight_sizes.hpp"
#include "support/random_coo.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/graph/fingerprint.hpp"
#include "tessera/graph/normalise.hpp"
#include "tessera/graph/stats.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/reorder/layout.hpp"
#include "tessera/reorder/orders.hpp"
#include "tessera/tiles/statistics.hpp"
#include "tessera/tiles/tiled_graph.hpp"
#include "tiles/hub_windows.hpp"
#include "tiles/sample.hpp"

namespace tessera {
namespace {

using detail::GraphAccess;
using testing::ThreadScope;
using tiles::Side;

struct Derivation {
  std::string name;
  std::function<void(const Graph&)> ask;
  bool square_only = false;
};

/// The layout of an undirected version of the graph, kept with the graph, as plans keep it: a
/// derivation whose loops ask for further ones.
void keep_layout(const Graph& graph) {
  GraphAccess::derived(graph, "layout", [&]() -> std::shared_ptr<const void> {
    return std::make_shared<const reorder::Layout>(reorder::best_layout(graph));
  });
}

std::vector<Derivation> derivations() {
  return {
      {"columns by source", [](const Graph& graph) { graph.csc(); }},
      {"column offsets", [](const Graph& graph) { GraphAccess::col_offsets(graph); }},
      {"degrees of rows", [](const Graph& graph) { row_degrees(graph); }},
      {"degrees of columns", [](const Graph& graph) { column_degrees(graph); }},
      {"fingerprint", [](const Graph& graph) { fingerprint(graph); }},
      {"sampled windows",
       [](const Graph& graph) { tiles::sample_windows(graph, 16, Side::forward); }},
      {"sampled transposed windows",
       [](const Graph& graph) { tiles::sample_windows(graph, 64, Side::transposed, 2); }},
      {"sampled columns",
       [](const Graph& graph) { tiles::sampled_columns(graph, Side::transposed); }},
      {"windows of hubs", [](const Graph& graph) { tiles::sampled_hub_windows(graph); }, true},
      {"tiles", [](const Graph& graph) { tiles::translate(graph, 16, Side::transposed); }},
      {"window statistics", [](const Graph& graph) { tiles::window_stats(graph, 16); }},
      {"transposed", [](const Graph& graph) { transposed(graph).csc(); }},
      {"statistics", [](const Graph& graph) { compute_stats(graph); }},
      {"symmetry", [](const Graph& graph) { detail::symmetry_of(graph); }, true},
      {"symmetrised", [](const Graph& graph) { symmetrised(graph).csc(); }, true},
      {"normalised", [](const Graph& graph) { gcn_normalised(graph).csc(); }, true},
      {"components", [](const Graph& graph) { connected_components(graph); }, true},
      {"rcm", [](const Graph& graph) { reorder::rcm(graph); }, true},
      {"layout", keep_layout, true},
  };
}

struct Kind {
  const char* name;
  VertexId rows, cols;
  bool undirected = false;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class Derivations : public ::testing::TestWithParam<Kind> {
 protected:
  /// A new graph of which nothing is derived yet.
  Graph graph() const {
    const Kind kind = GetParam();
    const Graph drawn = testing::random_graph(kind.rows, kind.cols, 6 * kind.rows, 1, false);
    return kind.undirected ? symmetrised(drawn) : drawn;
  }
  std::vector<Derivation> all() const {
    std::vector<Derivation> asked = derivations();
    const bool square = GetParam().rows == GetParam().cols;
    std::erase_if(asked, [&](const Derivation& each) { return each.square_only && !square; });
    return asked;
  }
};

TEST_P(Derivations, AreAskedForByAllTasksOfALoop) {
  for (const int threads : {1, 2, 16}) {
    const ThreadScope scope(threads);
    for (const Derivation& derivation : all()) {
      SCOPED_TRACE(derivation.name + ", " + std::to_string(threads) + " threads");
      const Graph asked = graph();
      parallel_tasks(2 * threads, [&](std::int64_t) { derivation.ask(asked); });
    }
  }
}

TEST_P(Derivations, AreAskedForInLoopsOfEachOther) {
  const std::vector<Derivation> asked = all();
  const auto count = static_cast<std::int64_t>(asked.size());
  for (const int threads : {1, 2, 16}) {
    const ThreadScope scope(threads);
    const Graph one = graph(), other = graph();
    // Each task begins with another one, asks both graphs, and has a loop of its own.
    parallel_tasks(count, [&](std::int64_t task) {
      parallel_tasks(count, [&](std::int64_t inner) {
        const Derivation& derivation = asked[static_cast<std::size_t>((task + inner) % count)];
        derivation.ask(inner % 2 == 0 ? one : other);
        derivation.ask(inner % 2 == 0 ? other : one);
      });
    });
    EXPECT_EQ(fingerprint(one), fingerprint(other));
    EXPECT_EQ(one.csc().row_indices, other.csc().row_indices);
  }
}

TEST_P(Derivations, AreAskedForInALoopOfSomethingThatIsBeingDerived) {
  const std::vector<Derivation> asked = all();
  for (const int threads : {1, 2, 16}) {
    const ThreadScope scope(threads);
    const Graph of = graph();
    GraphAccess::derived(of, "all of them", [&]() -> std::shared_ptr<const void> {
      parallel_tasks(static_cast<std::int64_t>(3 * asked.size()), [&](std::int64_t task) {
        asked[static_cast<std::size_t>(task) % asked.size()].ask(of);
      });
      return std::make_shared<const int>(0);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(AllKinds, Derivations,
                         ::testing::Values(Kind{"directed", 300, 300},
                                           Kind{"undirected", 300, 300, true},
                                           Kind{"wide", 200, 330}, Kind{"tall", 330, 200},
                                           Kind{"one_vertex", 1, 1}),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace tessera
