// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "ops/plan/calibrate/calibrate.hpp"
#include "ops/plan/calibration.hpp"
#include "ops/plan/cost_formula.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/random.hpp"
#include "tessera/core/version.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/graph/generate.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/sddmm.hpp"
#include "tessera/ops/spmm.hpp"

namespace tessera::ops {
namespace {

constexpr VertexId window_rows = 16;
constexpr std::int64_t windows_of_a_turn = 64 / window_rows;

using PlanOf = Explanation (*)(const Graph& graph, const CalibrationOptions& options,
                               std::int64_t features, Precision precision);

template <class Options>
Options measured(const CalibrationOptions& options, std::int64_t features, Precision precision) {
  Options how;
  how.device = options.device;
  how.tune = Tune::measured;
  how.features = features;
  how.precision = precision;
  return how;
}

Explanation timed_spmm(const Graph& graph, const CalibrationOptions& options, std::int64_t features,
                       Precision precision) {
  auto how = measured<SpmmOptions>(options, features, precision);
  how.edge_values_at_run = false;
  return plan_spmm(graph, how).explain();
}

Explanation timed_sddmm(const Graph& graph, const CalibrationOptions& options,
                        std::int64_t features, Precision precision) {
  return plan_sddmm(graph, measured<SddmmOptions>(options, features, precision)).explain();
}

/// GAT, with heads of 8 features where they fit.
Explanation timed_attention(const Graph& graph, const CalibrationOptions& options,
                            std::int64_t features, Precision precision) {
  auto how = measured<AttentionOptions>(options, features, precision);
  how.heads = features % 8 == 0 ? std::min<std::int64_t>(8, features / 8) : 1;
  return plan_attention(graph, how).explain();
}

PlanOf plan_of(const std::string& op) {
  if (op == "spmm") return timed_spmm;
  if (op == "sddmm") return timed_sddmm;
  if (op == "attention") return timed_attention;
  throw Error(ErrorCode::invalid_argument, "no costs of '" + op + "' are calibrated", "ops",
              "use spmm, sddmm or attention");
}

/// What every kernel took that a plan timed.
TimedCase timed_case(const CostShape& shape, const Explanation& explanation) {
  TimedCase timed{shape, {}};
  for (const Candidate& candidate : explanation.candidates) {
    if (candidate.measured_us <= 0 || candidate.predicted_us <= 0) continue;
    timed.kernels.push_back({candidate.kernel, candidate.predicted_us, candidate.measured_us});
  }
  return timed;
}

std::vector<generate::BlockModel> unions_of_small_graphs(VertexId vertices, std::uint64_t seed) {
  std::vector<generate::BlockModel> unions;
  for (const double degree : {3, 12, 30, 60}) {
    generate::BlockModel model;
    model.vertices = vertices;
    model.communities = std::max<VertexId>(1, vertices / 80);
    model.mean_degree = std::min(degree, static_cast<double>(vertices) / 2);
    model.inside = 1;
    model.seed = seed;
    unions.push_back(model);
  }
  return unions;
}

/// Graphs of other kinds than what is fitted to: a choice that suits windows alone loses on them.
std::vector<std::function<Graph()>> unseen_graphs(VertexId vertices, std::uint64_t seed) {
  const auto edges_of = [vertices](EdgeOffset degree) {
    return std::min<EdgeOffset>(degree, vertices / 4) * vertices;
  };
  generate::Rmat skewed;
  skewed.scale = static_cast<int>(std::bit_width(static_cast<std::uint32_t>(vertices) - 1));
  skewed.edges = edges_of(8);
  skewed.seed = seed;
  generate::ChungLu hubs;
  hubs.vertices = vertices;
  hubs.edges = edges_of(24);
  hubs.exponent = 2.2;
  hubs.seed = seed;
  generate::BlockModel communities;
  communities.vertices = vertices;
  communities.communities = std::max<VertexId>(1, vertices / 400);
  communities.mean_degree = static_cast<double>(edges_of(40)) / vertices;
  communities.inside = communities.communities > 1 ? 0.7 : 1;
  communities.seed = seed;
  generate::Molecules molecules;
  molecules.graphs = std::max<std::int64_t>(1, vertices / 25);
  molecules.seed = seed;
  return {[skewed] { return generate::build(skewed); }, [hubs] { return generate::build(hubs); },
          [communities] { return generate::build(communities); },
          [molecules] { return generate::build(molecules).graph; }};
}

}  // namespace

Graph draw_windows(const WindowKind& kind, std::int64_t windows, std::uint64_t seed) {
  const auto vertices = static_cast<VertexId>(windows * window_rows);
  const VertexId columns = std::min(kind.columns, vertices);
  const std::int64_t extra = static_cast<std::int64_t>(columns) * (kind.entries_per_column - 1);
  std::vector<VertexId> sources, targets;
  sources.reserve(static_cast<std::size_t>(windows * (columns + extra)));
  targets.reserve(sources.capacity());
  const Random random(seed);
  std::uint64_t drawn = 0;
  std::vector<VertexId> chosen(static_cast<std::size_t>(columns));
  for (std::int64_t window = 0; window < windows; ++window) {
    const auto first_row = static_cast<VertexId>(window * window_rows);
    // Near: side by side around the window's own rows. Else one of each part of all vertices.
    const VertexId first =
        std::clamp(first_row + window_rows / 2 - columns / 2, 0, vertices - columns);
    const bool near = kind.mixed ? window / windows_of_a_turn % 2 == 0 : kind.near;
    for (VertexId i = 0; i < columns; ++i) {
      const auto part = static_cast<std::int64_t>(vertices) / columns;
      chosen[static_cast<std::size_t>(i)] =
          near ? first + i
               : static_cast<VertexId>(
                     i * part +
                     static_cast<std::int64_t>(random.below(
                         drawn++, static_cast<std::uint64_t>(std::max<std::int64_t>(part, 1)))));
    }
    const auto add = [&](VertexId column) {
      sources.push_back(column);
      targets.push_back(first_row + static_cast<VertexId>(random.below(drawn++, window_rows)));
    };
    for (const VertexId column : chosen) add(column);
    for (std::int64_t i = 0; i < extra; ++i) {
      add(chosen[random.below(drawn++, static_cast<std::uint64_t>(columns))]);
    }
  }
  BuildOptions first_of_equals;
  first_of_equals.duplicates = Duplicates::first;
  return from_edges(vertices, sources, targets, {}, first_of_equals);
}

std::vector<WindowKind> window_kinds(bool quick) {
  if (quick) {
    return {{4, 1, true},   {16, 2, true},   {32, 1, false}, {64, 5, true},       {64, 2, false},
            {120, 1, true}, {120, 3, false}, {32, 12, true}, {64, 8, false, true}};
  }
  std::vector<WindowKind> kinds;
  for (const VertexId columns : {2, 8, 16, 32, 64, 120}) {  // as in HyGNN's appendix
    for (const int entries : {1, 2, 3, 5}) {
      kinds.push_back({columns, entries, (columns + entries) % 2 == 0});
    }
  }
  for (const VertexId columns : {240, 480}) {  // wider
    for (const bool near : {false, true}) kinds.push_back({columns, 2, near});
  }
  for (const VertexId columns : {16, 64}) {  // denser
    for (const int entries : {8, 12}) kinds.push_back({columns, entries, true});
  }
  for (const VertexId columns : {32, 120}) {  // with something for every kind of core
    for (const int entries : {2, 8}) kinds.push_back({columns, entries, false, true});
  }
  return kinds;
}

Calibration calibrate(const CalibrationOptions& options) {
  require_available(options.device);
  if (options.features.empty() || options.precisions.empty() || options.ops.empty()) {
    throw Error(ErrorCode::invalid_argument, "no widths, precisions or ops to time kernels of",
                options.features.empty()     ? "features"
                : options.precisions.empty() ? "precisions"
                                             : "ops",
                "name one at least");
  }
  std::vector<PlanOf> plans;
  for (const std::string& op : options.ops) plans.push_back(plan_of(op));
  if (options.windows < 1 || options.windows > (1 << 24)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} windows", options.windows), "windows",
                "use 1 to 16777216");
  }
  const BuiltInCosts built_in_alone;
  std::vector<TimedCase> fitted, held_out;
  Calibration calibration;
  calibration.device = calibrated_device(options.device);
  calibration.date = options.date;
  calibration.commit = options.commit;
  calibration.version = version();
  calibration.windows = options.windows;
  const std::vector<WindowKind> kinds = window_kinds(options.quick);
  const auto vertices = static_cast<VertexId>(options.windows * window_rows);
  const auto unions = unions_of_small_graphs(vertices, options.seed);
  const auto unseen = unseen_graphs(vertices, options.seed);
  const std::size_t drawn = kinds.size() + unions.size();
  const auto total = static_cast<std::int64_t>(drawn + unseen.size());
  std::size_t number = 0;
  const auto take = [&](const Graph& graph) {
    report(options.progress, "timing kernels", static_cast<std::int64_t>(number), total);
    const bool is_held_out = number % 4 == 3 || number >= drawn;
    ++number;
    ++(is_held_out ? calibration.held_out : calibration.batches);
    for (const std::int64_t features : options.features) {
      for (const Precision precision : options.precisions) {
        const PassSizes sizes(graph, tiles::Side::forward, features, precision);
        for (const PlanOf plan : plans) {
          TimedCase timed =
              timed_case(sizes.cost_shape(), plan(graph, options, features, precision));
          if (timed.kernels.size() > 1) {
            (is_held_out ? held_out : fitted).push_back(std::move(timed));
          }
        }
      }
    }
  };
  for (const WindowKind& kind : kinds) {
    take(draw_windows(kind, options.windows, options.seed + number));
  }
  for (const generate::BlockModel& model : unions) take(generate::build(model));
  for (const auto& build : unseen) take(build());
  fit_corrections(fitted, held_out, calibration);
  return calibration;
}

}  // namespace tessera::ops
