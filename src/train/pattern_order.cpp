// SPDX-License-Identifier: Apache-2.0
#include "train/pattern_order.hpp"

#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/detail/ops/predicted_spmm.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/train/options.hpp"
#include "tessera/train/pattern.hpp"

namespace tessera::train {
namespace {

using Kind = PatternChoice::Kind;

constexpr reorder::NmPattern automatic_pattern = {1, 2, 4};

/// What an order to 1:2:4 takes to find: about 8 million edges per second on one core.
constexpr double order_us_per_edge = 0.12;

/// What is multiplied with: GCN and SGC add loops, and a pattern of single rows that fits with them
/// fits without. Meta-blocks of several rows could not hold the diagonal.
Graph adjacency_of(const Graph& graph, bool with_loops) {
  const Graph plain = graph.with_scales({}, {}).with_values({});
  return with_loops ? with_self_loops(plain) : plain;
}

std::string describe(const reorder::NmOrder& found) {
  if (found.after.conforms()) {
    return fmt::format("vertices reordered for training: the graph fits {}",
                       to_string(found.pattern));
  }
  return fmt::format("vertices reordered for training: {} meta-blocks do not fit {}{}{}",
                     found.after.meta_blocks, to_string(found.pattern),
                     found.obstacle.empty() ? "" : ", which is impossible: ", found.obstacle);
}

std::string saving_note(double before_us, double after_us, const ExpectedProducts& products) {
  return fmt::format("{} products of {:.0f} us each, {:.0f} us in the order of {}", products.count,
                     before_us, after_us, to_string(automatic_pattern));
}

PatternOrder where_it_pays(const Graph& graph, const ExpectedProducts& products,
                           const reorder::NmOptions& options) {
  const double before_us = ops::predicted_spmm_us(graph, products.options);
  const double count = static_cast<double>(products.count);
  const double order_us = order_us_per_edge * static_cast<double>(graph.num_edges());
  if (before_us * count < order_us) {
    return {{},
            fmt::format("vertices stay: {} products of {:.0f} us take less than an order of {}",
                        products.count, before_us, to_string(automatic_pattern))};
  }
  reorder::NmOrder found = reorder::order_nm(graph, automatic_pattern, options);
  const double after_us = ops::predicted_spmm_us(permuted(graph, found.order), products.options);
  const bool pays = (before_us - after_us) * count > order_us;
  const std::string why = saving_note(before_us, after_us, products);
  if (!pays) return {{}, fmt::format("vertices stay: {}", why)};
  return {std::move(found.order), fmt::format("{}; {}", describe(found), why)};
}

}  // namespace

std::string to_string(const PatternChoice& choice) {
  switch (choice.kind) {
    case Kind::off: return "off";
    case Kind::given: return to_string(choice.pattern);
    case Kind::best: return "best";
    case Kind::automatic: return "auto";
  }
  return "unknown";
}

PatternChoice parse_pattern_choice(const std::string& text) {
  for (const Kind kind : {Kind::off, Kind::best, Kind::automatic}) {
    if (text == to_string(PatternChoice{kind, {}})) return {kind, {}};
  }
  return {Kind::given, reorder::NmPattern::parse(text)};
}

ExpectedProducts expected_products(const TrainOptions& options, std::int64_t width,
                                   std::int64_t count) {
  ExpectedProducts products;
  static_cast<ops::PlanOptions&>(products.options) = options.plans;
  products.options.device = options.placement.device();
  products.options.memory = options.placement.memory;
  products.options.stream = options.placement.stream;
  products.options.kernel.clear();
  products.options.precision = options.placement.precision;
  products.options.features = width;
  products.count = count;
  return products;
}

PatternOrder find_pattern_order(const Graph& graph, const PatternChoice& choice,
                                const ExpectedProducts& products, std::uint64_t seed,
                                const Progress& progress) {
  if (choice.kind == Kind::off || graph.num_rows() == 0) return {};
  reorder::NmOptions options;
  options.seed = seed;
  options.progress = progress;
  const bool is_best = choice.kind == Kind::best;
  const bool single_rows = choice.kind == Kind::automatic || (!is_best && choice.pattern.v == 1);
  options.ignore_loops = !single_rows;
  const Graph adjacency = adjacency_of(graph, single_rows);
  if (choice.kind == Kind::automatic) return where_it_pays(adjacency, products, options);
  reorder::NmOrder found = is_best ? search_nm(adjacency, reorder::NmSearch::time, options).best
                                   : order_nm(adjacency, choice.pattern, options);
  if (found.order.is_identity()) {
    return {{}, fmt::format("vertices stay: the graph fits {} already", to_string(found.pattern))};
  }
  std::string note = describe(found);
  return {std::move(found.order), std::move(note)};
}

}  // namespace tessera::train
