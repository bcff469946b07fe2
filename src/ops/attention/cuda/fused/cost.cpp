// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/fused/cost.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "graph/degrees.hpp"
#include "ops/tuning.hpp"

namespace tessera::ops {
namespace {

struct FusedCoefficients {
  double launch_us;
  double number_us;          ///< per edge and head
  double word_us;            ///< per edge and four bytes of its rows
  double row_word_us;        ///< per row and four bytes
  double last_edge_us;       ///< per edge of the longest row, and in addition
  double last_edge_word_us;  ///< per four bytes of a head

  FusedCoefficients scaled(DeviceRatio ratio) const {
    FusedCoefficients scaled = *this;
    scaled.number_us /= ratio.processors;
    scaled.word_us /= ratio.processors;
    scaled.row_word_us /= ratio.memory;
    return scaled;
  }
};

constexpr std::array<Fitted<FusedCoefficients>, 1> coefficients = {
    {{fitted_on_h200(
          "2026-11-15",
          "dot products on six graphs at 16 to 128 features in fp32 and bf16; the launch "
          "to GAT and dot products on cora and pubmed"),
      {.launch_us = 25,
       .number_us = 2e-5,
       .word_us = 1.75e-6,
       .row_word_us = 1.9e-5,
       .last_edge_us = 0.05,
       .last_edge_word_us = 0.0075}}}};

}  // namespace

int power_of_two(std::int64_t at_least) {
  const auto wanted = static_cast<std::uint64_t>(std::clamp<std::int64_t>(at_least, 1, 32));
  return static_cast<int>(std::bit_ceil(wanted));
}

EdgeOffset longest_uncut_row(std::int64_t heads) {
  constexpr EdgeOffset batches = 48;
  return std::min<EdgeOffset>(512, batches * 32 / power_of_two(heads));
}

/// Edges one after another, the longest row last: all others are done when it still runs.
double predict_fused_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const FusedCoefficients fit = coefficients_for(coefficients, traits);
  const AttentionOptions& options = problem.options;
  const Graph& graph = problem.graph;
  const EdgeOffset longest = row_degrees(graph)->longest();
  const auto heads = static_cast<double>(options.heads);
  const double words = static_cast<double>(options.features) *
                       static_cast<double>(bytes_per_element(options.precision)) / 4 /
                       (options.form == AttentionForm::gat ? 2 : 1);
  const auto last_edges = static_cast<double>(std::min(longest, longest_uncut_row(options.heads)));
  return fit.launch_us + static_cast<double>(graph.num_rows()) * words * fit.row_word_us +
         static_cast<double>(graph.num_edges()) * (heads * fit.number_us + words * fit.word_us) +
         last_edges * (fit.last_edge_us + words / heads * fit.last_edge_word_us);
}

}  // namespace tessera::ops
