// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/ops/bits.hpp"

#include "ops/bits/kernel.hpp"
#include "ops/bits/trial.hpp"
#include "ops/check.hpp"
#include "ops/check_options.hpp"
#include "ops/plan_only.hpp"
#include "ops/plan_record.hpp"
#include "ops/planning_scope.hpp"

namespace tessera::ops {
namespace {

struct BitRecord final : PlanRecord {
  std::int64_t workspace_bytes() const noexcept override { return workspace->bytes(); }

  BitOptions options;
  bool aggregates = false;
  bool has_a = false;
  std::unique_ptr<const PreparedBits> prepared;
  std::optional<PlanWorkspace> workspace;  ///< the last member: see there
};

[[noreturn]] void refuse(const std::string& problem, const char* where, const char* fix) {
  throw Error(ErrorCode::invalid_argument, problem, where, fix);
}

void check_requantisation(const BitOptions& options) {
  const bool packs = options.output == BitOutput::rows || options.output == BitOutput::columns;
  if (packs != options.requantise.has_value()) {
    refuse(packs ? "codes as output, but no ranges for them" : "ranges for an output without codes",
           "requantise", "give ranges exactly where the output is packed");
  }
  if (!packs) return;
  options.requantise->validate();
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
  check_enum("output", options.output, BitOutput::columns);
  check_enum("activation", options.activation, BitActivation::tanh);
  if (options.rows < 0 || options.cols < 0 || options.depth < 0) {
    refuse(fmt::format("a product of {} x {} x {}", options.rows, options.cols, options.depth),
           "shape", "give sizes that are not negative");
  }
  if (options.terms < 0 || options.terms > 2) {
    refuse(fmt::format("{} terms", options.terms), "terms", "use 0 to 2");
  }
  if (options.backward) refuse("a backward pass", "backward", "sums of codes have no gradient");
  check_requantisation(options);
}

void check_overflow(const BitProblem& problem) {
  const int bits = problem.sum_bits();
  if (bits <= 31 || problem.options.output != BitOutput::sums32) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("sums may take {} bits, more than int32 holds", bits), "output",
              "ask for sums64, for values or for codes, or use fewer bits");
}

BitPlan make_plan(BitProblem problem, std::span<const BitKernel> kernels) {
  check_options(problem.options);
  check_overflow(problem);
  auto record = std::make_shared<BitRecord>();
  record->graph = problem.graph;
  record->options = problem.options;
  record->aggregates = problem.aggregates;
  record->has_a = problem.a != nullptr;
  const PlanningScope planning(problem.graph, problem.options, false);
  auto choice = make_choice<BitTrial>(kernels, problem, problem.options);
  record->kernel = &choice.kernel->info;
  record->decision = std::move(choice.decision);
  record->prepared = std::move(choice.prepared);
  record->workspace.emplace(record->prepared->workspace(), problem.options.place(),
                            problem.options.own_workspace);
  return PlanAccess::make(std::shared_ptr<const BitRecord>(std::move(record)));
}

/// Texts are made only where something is wrong: a run of a small product takes a few microseconds.
void check_tensor(const Checker& check, const quant::BitTensorView<const std::uint32_t>& tensor,
                  const char* name, Device device, int bits, std::int64_t rows,
                  std::int64_t depth) {
  if (tensor.device != device) {
    check.fail(fmt::format("{} lies on {}", name, to_string(tensor.device)),
               fmt::format("the plan is for {}", to_string(device)));
  }
  if (tensor.bits != bits || tensor.rows != rows || tensor.depth != depth) {
    check.fail(fmt::format("{} has {} bits and {} x {} codes, expected {} bits and {} x {}", name,
                           tensor.bits, tensor.rows, tensor.depth, bits, rows, depth));
  }
  const quant::BitTensor expected = quant::bit_tensor_shape(bits, rows, depth);
  if (tensor.padded_rows != expected.padded_rows ||
      tensor.words_per_row != expected.words_per_row) {
    check.fail(fmt::format("{} is filled up to {} rows of {} words, expected {} of {}", name,
                           tensor.padded_rows, tensor.words_per_row, expected.padded_rows,
                           expected.words_per_row));
  }
  if (tensor.words == nullptr && expected.padded_rows > 0 && expected.words_per_row > 0) {
    check.fail(fmt::format("{} has no memory", name));
  }
  if (reinterpret_cast<std::uintptr_t>(tensor.words) % 16 != 0) {
    check.fail(fmt::format("{} does not begin at a multiple of 16 bytes", name));
  }
}

void check_part(const Checker& check, const MatrixView<const float>& part, const char* name,
                std::int64_t rows, std::int64_t cols, bool required) {
  if (part.data == nullptr) {
    if (required && rows > 0 && cols > 0) {
      check.fail(fmt::format("{} is absent", name), "give it, or plan with fewer terms");
    }
    return;
  }
  check.matrix(part, name, {ElementType::fp32, rows, cols});
}

void check_epilogue(const Checker& check, const BitOptions& options, const BitEpilogue& parts) {
  check_part(check, parts.row_scale, "row_scale", options.rows, 1, false);
  check_part(check, parts.col_scale, "col_scale", 1, options.cols, false);
  check_part(check, parts.row_terms, "row_terms", options.rows, options.terms, options.terms > 0);
  check_part(check, parts.col_terms, "col_terms", options.terms, options.cols, options.terms > 0);
  check_part(check, parts.bias, "bias", 1, options.cols, false);
  check_part(check, parts.norm_scale, "norm_scale", 1, options.cols, false);
  check_part(check, parts.norm_shift, "norm_shift", 1, options.cols, false);
}

template <class T>
void check_sums(const Checker& check, const MatrixView<T>& sums, const char* name, Device device,
                const BitOptions& options) {
  if (sums.device != device) {
    check.fail(fmt::format("{} lies on {}", name, to_string(sums.device)),
               fmt::format("the plan is for {}", to_string(device)));
  }
  if (sums.rows != options.rows || sums.cols != options.cols) {
    check.fail(fmt::format("{} is {} x {}, expected {} x {}", name, sums.rows, sums.cols,
                           options.rows, options.cols));
  }
  if (sums.rows > 1 && sums.stride < sums.cols) {
    check.fail(fmt::format("the rows of {} overlap", name));
  }
  if (sums.data == nullptr && sums.rows > 0 && sums.cols > 0) {
    check.fail(fmt::format("{} has no memory", name));
  }
}

void check_outputs(const Checker& check, const BitOptions& options, const BitOutputs& outputs) {
  const Device device = options.device;
  switch (options.output) {
    case BitOutput::sums32: return check_sums(check, outputs.sums32, "sums32", device, options);
    case BitOutput::sums64: return check_sums(check, outputs.sums64, "sums64", device, options);
    case BitOutput::values: return check_sums(check, outputs.values, "values", device, options);
    case BitOutput::rows:
      return check_tensor(check, outputs.codes, "codes", device, options.requantise->bits,
                          options.rows, options.cols);
    case BitOutput::columns:
      return check_tensor(check, outputs.codes, "codes", device, options.requantise->bits,
                          options.cols, options.rows);
  }
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
  }
  return "?";
}

int BitProblem::sum_bits() const {
  std::int64_t summands = options.depth;
  if (aggregates) {
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
  BitProblem problem{graph, options, nullptr, true};
  problem.options.rows = graph.num_rows();
  problem.options.depth = graph.num_cols();
  problem.options.a_bits = 1;
  return make_plan(std::move(problem), bit_aggregate_kernels());
}

void run(const BitPlan& plan, const BitInputs& inputs, const BitOutputs& outputs, Stream stream,
         Workspace workspace) {
  const auto& record = PlanAccess::record<BitRecord>(plan);
  const BitOptions& options = record.options;
  const Checker check(record.aggregates ? "bit_aggregate" : "bit_gemm", options.device);
  if (!record.aggregates && !record.has_a) {
    check_tensor(check, inputs.a, "a", options.device, options.a_bits, options.rows, options.depth);
  } else {
    check.that(inputs.a.words == nullptr, "a comes with the run, but the plan has one",
               "leave it out");
  }
  check_tensor(check, inputs.b, "b", options.device, options.b_bits,
               record.aggregates ? options.depth : options.cols,
               record.aggregates ? options.cols : options.depth);
  check_epilogue(check, options, inputs.epilogue);
  check_outputs(check, options, outputs);
  if (plans_only()) return;
  const OnDevice current(options.device);
  const WorkspaceUse use(*record.workspace, workspace, stream);
  record.prepared->run(inputs, outputs, stream, use.view());
}

void bit_row_sums(quant::BitTensorView<const std::uint32_t> tensor, MatrixView<std::int64_t> sums) {
  const Checker check("bit_row_sums", {});
  check_tensor(check, tensor, "tensor", {}, tensor.bits, tensor.rows, tensor.depth);
  check.that(sums.rows == tensor.rows && sums.cols == 1, "sums are not one column of its rows");
  parallel_for(tensor.rows, 256, [&](std::int64_t row) {
    std::int64_t total = 0;
    for (int p = 0; p < tensor.bits; ++p) {
      std::int64_t count = 0;
      for (std::int64_t w = 0; w < tensor.words_per_row; ++w) {
        count += std::popcount(tensor.row(p, row)[w]);
      }
      total += count << p;
    }
    sums(row, 0) = total;
  });
}

}  // namespace tessera::ops
