// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/ops/bits.hpp"

#include "graph/requirements.hpp"
#include "ops/bits/check_run.hpp"
#include "ops/bits/kernel.hpp"
#include "ops/bits/trial.hpp"
#include "ops/plan/check.hpp"
#include "ops/plan/expected.hpp"
#include "ops/plan/plan_record.hpp"
#include "ops/plan/planning_scope.hpp"
#include "tessera/detail/ops/plan_only.hpp"
#include "tessera/ops/expected.hpp"

namespace tessera::ops {
namespace {

struct BitRecord final : KernelRecord<BitOptions, PreparedBits> {
  bool aggregates = false;
  bool has_lists = false;
  bool has_a = false;
};

void check_requantisation(const BitOptions& options) {
  const bool packs = gives_codes(options.output);
  if (packs != options.requantise.has_value()) {
    refuse(packs ? "codes as output, but no ranges for them" : "ranges for an output without codes",
           "requantise", "give ranges exactly where the output is packed");
  }
  if (!packs) return;
  options.requantise->validate();
  if (options.output == BitOutput::bytes && options.requantise->bits > 8) {
    refuse(fmt::format("codes of {} bits as bytes", options.requantise->bits), "requantise",
           "use 8 bits or fewer, or codes packed along rows");
  }
  if (options.requantise->granularity == quant::Granularity::classes) {
    refuse("ranges for classes of rows", "requantise", "use one range, or one for each column");
  }
  if (options.requantise->granularity == quant::Granularity::columns &&
      static_cast<std::int64_t>(options.requantise->scale.size()) != options.cols) {
    refuse(
        fmt::format("ranges of {} columns for {}", options.requantise->scale.size(), options.cols),
        "requantise", "give one for each column");
  }
}

void check_options(const BitOptions& options) {
  check_plan_options(options, Precision::fp32);
  quant::check_bits(options.a_bits, "a_bits");
  quant::check_bits(options.b_bits, "b_bits");
  check_enum("output", options.output, BitOutput::bytes);
  check_enum("activation", options.activation, BitActivation::tanh);
  if (options.rows < 0 || options.cols < 0 || options.depth < 0) {
    refuse(fmt::format("a product of {} x {} x {}", options.rows, options.cols, options.depth),
           "shape", "give sizes that are not negative");
  }
  if (options.terms < 0 || options.terms > 2) {
    refuse(fmt::format("{} terms", options.terms), "terms", "use 0 to 2");
  }
  if (!std::isfinite(options.own)) {
    refuse(fmt::format("codes of the target itself times {}", options.own), "own",
           "give a finite number");
  }
  if (options.backward) refuse("a backward pass", "backward", "sums of codes have no gradient");
  check_requantisation(options);
}

/// Where the codes of the target itself are added: after the sums, so that there must be more than
/// these.
void check_own(const BitProblem& problem) {
  const BitOptions& options = problem.options;
  if (options.own == 0) return;
  if (!problem.aggregates) {
    refuse("codes of the target itself in a product of two matrices", "own",
           "put them on the diagonal of A");
  }
  if (gives_sums(options.output)) {
    refuse("sums with codes of the target itself", "own", "ask for values or for codes");
  }
  if (options.rows != options.depth) {
    refuse(fmt::format("{} targets with codes of their own among {} sources", options.rows,
                       options.depth),
           "own", "use a square graph");
  }
}

void check_blocks(const BitProblem& problem) {
  const BitOptions& options = problem.options;
  if (options.block == 0) return;
  if (problem.a != nullptr) {
    refuse("blocks of a matrix that stays", "block", "give the matrix with every run");
  }
  if (options.block < 0 || options.block > options.depth) {
    refuse(fmt::format("blocks of {} columns in {}", options.block, options.depth), "block",
           "give 0 to the depth");
  }
}

void check_operands(const BitProblem& problem) {
  const BitOptions& options = problem.options;
  const auto check_words = [](const char* name, std::int64_t words, std::int64_t codes,
                              bool are_taken) {
    if (words == 0 || (are_taken && words >= (codes + 31) / 32)) return;
    if (!are_taken) refuse("words of rows that no run brings or gives", name, "give 0");
    refuse(fmt::format("rows of {} words for {} codes", words, codes), name,
           "give as many as the codes of a row fill, or 0");
  };
  const bool brings_a = !problem.aggregates && problem.a == nullptr;
  check_words("a_words", options.a_words, options.depth, brings_a && options.block == 0);
  check_words("codes_words", options.codes_words, options.cols, options.output == BitOutput::rows);
  check_words("b_words", options.b_words, options.cols, problem.aggregates && !options.b_bytes);
  if (options.b_bytes && (!problem.aggregates || options.b_bits > 8)) {
    refuse("bytes in a product of two matrices, or of more than 8 bits", "b_bytes",
           "give planes of bits");
  }
  if (!options.terms_of_a) return;
  if (problem.aggregates || gives_sums(options.output) || options.terms == 0) {
    refuse("terms of an A that is a graph, or of sums, or none", "terms_of_a",
           "ask for values or codes of a product with 1 or 2 terms");
  }
}

void check_overflow(const BitProblem& problem) {
  const int bits = problem.sum_bits();
  if (bits <= 31) return;
  if (problem.options.output == BitOutput::sums32) {
    refuse(fmt::format("sums may take {} bits, more than int32 holds", bits), "output",
           "ask for sums64, for values or for codes, or use fewer bits");
  }
  if (problem.options.device.kind != DeviceKind::cpu) {
    throw Error(ErrorCode::unsupported,
                fmt::format("sums may take {} bits, and a GPU sums in 31", bits), "bits",
                "use fewer bits, or the CPU");
  }
}

void check_problem(const BitProblem& problem) {
  check_options(problem.options);
  check_own(problem);
  check_blocks(problem);
  check_operands(problem);
  check_overflow(problem);
}

BitProblem checked_aggregation(const Graph& graph, const BitOptions& options) {
  detail::require_whole(graph);
  if (graph.has_values()) {
    throw Error(ErrorCode::unsupported, "edges with values of their own in a product of bits",
                "bit_aggregate",
                "use a pattern; factors of rows belong into the epilogue, those of columns into "
                "the numbers before they are quantised");
  }
  if (graph.has_repeated_edges()) {
    throw Error(ErrorCode::unsupported, "repeated edges in a product of bits", "bit_aggregate",
                "build the graph with duplicates 'first'");
  }
  if (options.block != 0) {
    refuse("blocks of a graph", "block", "give 0, or lists with every run (plan_bit_lists)");
  }
  BitProblem problem{graph, options, nullptr, true};
  problem.options.rows = graph.num_rows();
  problem.options.depth = graph.num_cols();
  problem.options.a_bits = 1;
  return problem;
}

Explanation expected_of(BitProblem problem, std::span<const BitKernel> kernels,
                        const DeviceProfile& gpu) {
  const ExpectedOn there(gpu);
  problem.options = on_a_gpu(problem.options);
  check_problem(problem);
  const PlanningScope planning(problem.graph, problem.options, false);
  return there.choice(kernels, problem, problem.options);
}

BitPlan make_plan(BitProblem problem, std::span<const BitKernel> kernels) {
  check_problem(problem);
  auto record = std::make_shared<BitRecord>();
  record->graph = problem.graph;
  record->options = problem.options;
  record->aggregates = problem.aggregates;
  record->has_lists = problem.has_lists();
  record->has_a = problem.a != nullptr;
  const PlanningScope planning(problem.graph, problem.options, false);
  record->forward = record->take(make_choice<BitTrial>(kernels, problem, problem.options));
  const WorkspaceNeed need = record->forward->workspace();
  return PlanAccess::finish(std::move(record), need);
}

}  // namespace

const char* to_string(BitActivation activation) noexcept {
  switch (activation) {
    case BitActivation::none: return "none";
    case BitActivation::relu: return "relu";
    case BitActivation::tanh: return "tanh";
  }
  return "?";
}

const char* to_string(BitOutput output) noexcept {
  switch (output) {
    case BitOutput::sums32: return "sums32";
    case BitOutput::sums64: return "sums64";
    case BitOutput::values: return "values";
    case BitOutput::rows: return "rows";
    case BitOutput::columns: return "columns";
    case BitOutput::bytes: return "bytes";
  }
  return "?";
}

int BitProblem::sum_bits() const {
  std::int64_t summands = depth_of_a(options);
  if (aggregates && !has_lists()) {
    summands = 0;
    const auto& offsets = graph.row_offsets();
    for (VertexId row = 0; row < graph.num_rows(); ++row) {
      summands = std::max<std::int64_t>(summands, offsets[row + 1] - offsets[row]);
    }
  }
  const int log_2 =
      summands <= 1 ? 0
                    : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(summands) - 1));
  // A factor of one bit is 0 or 1, so that it adds no bits to a product.
  const int product_bits = options.a_bits == 1   ? options.b_bits
                           : options.b_bits == 1 ? options.a_bits
                                                 : options.a_bits + options.b_bits;
  return product_bits + log_2;
}

Explanation expected_bit_gemm(const BitOptions& options, const DeviceProfile& gpu) {
  return expected_of({Graph(), options, nullptr, false}, bit_gemm_kernels(), gpu);
}

Explanation expected_bit_aggregate(const Graph& graph, const BitOptions& options,
                                   const DeviceProfile& gpu) {
  return expected_of(checked_aggregation(graph, options), bit_aggregate_kernels(), gpu);
}

BitPlan plan_bit_gemm(const BitOptions& options) {
  return make_plan({Graph(), options, nullptr, false}, bit_gemm_kernels());
}

BitPlan plan_bit_gemm(const quant::BitTensor& a, const BitOptions& options) {
  a.validate();
  BitProblem problem{Graph(), options, std::make_shared<const quant::BitTensor>(a), false};
  problem.options.rows = a.rows;
  problem.options.depth = a.depth;
  problem.options.a_bits = a.bits;
  return make_plan(std::move(problem), bit_gemm_kernels());
}

BitPlan plan_bit_aggregate(const Graph& graph, const BitOptions& options) {
  return make_plan(checked_aggregation(graph, options), bit_aggregate_kernels());
}

BitPlan plan_bit_lists(const BitOptions& options) {
  constexpr std::int64_t most = 1 << 16;
  if (options.block < 1 || options.block > most) {
    refuse(fmt::format("lists of sources in blocks of {} columns", options.block), "block",
           "give 1 to 65536, at most the depth");
  }
  if (options.b_bits > 8) {
    refuse(fmt::format("sums of {} bits over lists", options.b_bits), "b_bits",
           "use 8 bits or fewer, or blocks of bits (plan_bit_gemm)");
  }
  if (options.own != 0) {
    refuse("lists with codes of the target itself", "own", "put the target into its list");
  }
  BitProblem problem{Graph(), options, nullptr, true};
  problem.options.a_bits = 1;
  return make_plan(std::move(problem), bit_lists_kernels());
}

void run(const BitPlan& plan, const BitInputs& inputs, const BitOutputs& outputs, Stream stream,
         Workspace workspace) {
  const auto& record = PlanAccess::record<BitRecord>(plan);
  const BitOptions& options = record.options;
  const Checker check(record.has_lists    ? "bit_lists"
                      : record.aggregates ? "bit_aggregate"
                                          : "bit_gemm",
                      options.device);
  if (!record.aggregates && !record.has_a) {
    check_tensor(check, inputs.a, "a", options.device, options.a_bits, options.rows,
                 depth_of_a(options), options.a_words);
    if (options.block > 0) check_starts(check, inputs.block_starts, options);
  } else {
    check.that(inputs.a.words == nullptr, "a comes with the run, but the plan has one",
               "leave it out");
  }
  if (record.has_lists) {
    check_starts(check, inputs.block_starts, options);
    check_lists(check, inputs, options);
  }
  if (options.b_bytes) {
    check_bytes(check, inputs.b_bytes, "b_bytes", options.device, options.depth, options.cols);
  } else {
    check_tensor(check, inputs.b, "b", options.device, options.b_bits,
                 record.aggregates ? options.depth : options.cols,
                 record.aggregates ? options.cols : options.depth, options.b_words);
  }
  check_epilogue(check, options, inputs.epilogue);
  check_outputs(check, options, outputs);
  if (plans_only()) return;
  const OnDevice current(options.device);
  const WorkspaceUse use(*record.workspace, workspace, stream);
  record.forward->run(inputs, outputs, stream, use.view());
}

}  // namespace tessera::ops
