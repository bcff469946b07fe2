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

namespace {

/// Edges one after another, the longest row last: all others are done when it still runs. `words`
/// counts what an edge reads, four bytes each.
double sweep_us(const AttentionProblem& problem, const FusedCoefficients& fit, double words) {
  const AttentionOptions& options = problem.options;
  const Graph& graph = problem.graph;
  const EdgeOffset longest = row_degrees(graph)->longest();
  const auto heads = static_cast<double>(options.heads);
  const auto last_edges = static_cast<double>(std::min(longest, longest_uncut_row(options.heads)));
  return fit.launch_us + static_cast<double>(graph.num_rows()) * words * fit.row_word_us +
         static_cast<double>(graph.num_edges()) * (heads * fit.number_us + words * fit.word_us) +
         last_edges * (fit.last_edge_us + words / heads * fit.last_edge_word_us);
}

/// Four bytes of features, or one feature where heads begin on no boundary of 16 bytes: then each
/// is loaded alone, and a load costs the same.
double words_of_row(const AttentionOptions& options) {
  constexpr std::int64_t vector_bytes = 16;
  const auto bytes = static_cast<std::int64_t>(bytes_per_element(options.precision));
  const bool aligned = options.features / options.heads * bytes % vector_bytes == 0;
  constexpr double loads_per_word = vector_bytes / 4;
  return aligned ? static_cast<double>(options.features * bytes) / 4
                 : static_cast<double>(options.features) * loads_per_word;
}

}  // namespace

double predict_fused_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  const FusedCoefficients fit = coefficients_for(coefficients, traits);
  const AttentionOptions& options = problem.options;
  const double words = words_of_row(options);
  const double forward =
      sweep_us(problem, fit, options.form == AttentionForm::gat ? words / 2 : words);
  if (!options.backward) return forward;
  // By rows and by columns; each multiplies features of both ends, whatever the form.
  return forward + 2 * sweep_us(problem, fit, words);
}

}  // namespace tessera::ops
