// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/check_run.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "ops/bits/kernel.hpp"

namespace tessera::ops {
namespace {

/// Parts that are there.
void check_given(const Checker& check, std::initializer_list<Named> parts,
                 const Expected& expected) {
  for (const auto& [part, name] : parts) {
    if (part.data != nullptr) check.matrix(part, name, expected);
  }
}

void check_terms(const Checker& check, const MatrixView<const float>& terms, const char* name,
                 std::int64_t rows, std::int64_t cols) {
  check_given(check, {{terms, name}}, {ElementType::fp32, rows, cols});
  if (terms.data != nullptr || rows == 0 || cols == 0) return;
  check.fail(fmt::format("{} is absent", name), "give it, or plan with fewer terms");
}

void check_device(const Checker& check, Device own, const char* name, Device device) {
  if (own == device) return;
  check.fail(fmt::format("{} lies on {}", name, to_string(own)),
             fmt::format("the plan is for {}", to_string(device)));
}

template <class T>
void check_view(const Checker& check, const MatrixView<T>& view, const char* name, Device device,
                std::int64_t rows, std::int64_t cols) {
  check_device(check, view.device, name, device);
  if (view.rows != rows || view.cols != cols) {
    check.fail(
        fmt::format("{} is {} x {}, expected {} x {}", name, view.rows, view.cols, rows, cols));
  }
  if (view.data == nullptr && rows > 0 && cols > 0) {
    check.fail(fmt::format("{} has no memory", name));
  }
}

template <class T>
void check_sums(const Checker& check, const MatrixView<T>& sums, const char* name,
                const BitOptions& options) {
  check_view(check, sums, name, options.device, options.rows, options.cols);
  if (sums.rows > 1 && sums.stride < sums.cols) {
    check.fail(fmt::format("the rows of {} overlap", name));
  }
}

}  // namespace

void check_tensor(const Checker& check, const quant::BitTensorView<const std::uint32_t>& tensor,
                  const char* name, Device device, int bits, std::int64_t rows, std::int64_t depth,
                  std::int64_t words) {
  check_device(check, tensor.device, name, device);
  if (tensor.bits != bits || tensor.rows != rows || tensor.depth != depth) {
    check.fail(fmt::format("{} has {} bits and {} x {} codes, expected {} bits and {} x {}", name,
                           tensor.bits, tensor.rows, tensor.depth, bits, rows, depth));
  }
  quant::BitTensor expected = quant::bit_tensor_shape(bits, rows, depth);
  if (words > 0) expected.words_per_row = words;
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

void check_bytes(const Checker& check, const MatrixView<const std::uint8_t>& bytes,
                 const char* name, Device device, std::int64_t rows, std::int64_t cols) {
  check_view(check, bytes, name, device, rows, cols);
  if (bytes.stride % 16 != 0 || bytes.stride < cols ||
      reinterpret_cast<std::uintptr_t>(bytes.data) % 16 != 0) {
    check.fail(fmt::format("rows of {} do not begin at multiples of 16 bytes", name));
  }
}

void check_epilogue(const Checker& check, const BitOptions& options, const BitEpilogue& parts) {
  check_given(check, {{parts.row_scale, "row_scale"}, {parts.result_scale, "result_scale"}},
              {ElementType::fp32, options.rows, 1});
  check_given(check,
              {{parts.col_scale, "col_scale"},
               {parts.bias, "bias"},
               {parts.norm_scale, "norm_scale"},
               {parts.norm_shift, "norm_shift"}},
              {ElementType::fp32, 1, options.cols});
  if (options.terms_of_a) {
    check.that(parts.row_terms.data == nullptr, "row_terms come with the run, but A gives them",
               "leave them out");
  } else {
    check_terms(check, parts.row_terms, "row_terms", options.rows, options.terms);
  }
  check_terms(check, parts.col_terms, "col_terms", options.terms, options.cols);
}

/// A column of numbers without gaps: kernels read them one after another.
void check_column(const Checker& check, const MatrixView<const std::int32_t>& numbers,
                  const char* name, std::int64_t count) {
  check.matrix(numbers, name, {ElementType::int32, count, 1});
  if (count > 1 && numbers.stride != 1) {
    check.fail(fmt::format("{} has a stride of {}", name, numbers.stride),
               "give numbers that lie side by side");
  }
}

void check_starts(const Checker& check, const MatrixView<const std::int32_t>& starts,
                  const BitOptions& options) {
  const std::int64_t count = (options.rows + rows_of_start - 1) / rows_of_start;
  check_column(check, starts, "block_starts", count);
  if (starts.device.kind != DeviceKind::cpu) return;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t start = starts(i, 0);
    if (start >= 0 && start < options.depth && start % quant::depth_padding == 0) continue;
    check.fail(fmt::format("block_starts has {}", start),
               fmt::format("give multiples of {} below {}", quant::depth_padding, options.depth));
  }
}

void check_lists(const Checker& check, const BitInputs& inputs, const BitOptions& options) {
  const auto& offsets = inputs.list_offsets;
  const auto& sources = inputs.list_sources;
  check_column(check, offsets, "list_offsets", options.rows + 1);
  check_device(check, sources.device, "list_sources", options.device);
  if (options.device.kind != DeviceKind::cpu) return;
  std::int64_t before = 0;
  for (std::int64_t row = 0; row <= options.rows; ++row) {
    const std::int64_t offset = offsets(row, 0);
    if (offset < before || offset > sources.cols || (row == 0 && offset != 0)) {
      check.fail(
          fmt::format("list_offsets has {} behind {} of {} sources", offset, before, sources.cols),
          "give numbers from 0 on that never fall");
    }
    for (; row > 0 && before < offset; ++before) {
      const std::int32_t start = inputs.block_starts((row - 1) / rows_of_start, 0);
      if (sources.data[before] < options.block &&
          start + std::int64_t{sources.data[before]} < options.depth) {
        continue;
      }
      check.fail(fmt::format("list_sources has {} in a block of {} columns", sources.data[before],
                             options.block),
                 "count sources from the start of the block");
    }
  }
}

void check_outputs(const Checker& check, const BitOptions& options, const BitOutputs& outputs) {
  const Device device = options.device;
  switch (options.output) {
    case BitOutput::sums32: return check_sums(check, outputs.sums32, "sums32", options);
    case BitOutput::sums64: return check_sums(check, outputs.sums64, "sums64", options);
    case BitOutput::values: return check_sums(check, outputs.values, "values", options);
    case BitOutput::rows:
      return check_tensor(check, outputs.codes, "codes", device, options.requantise->bits,
                          options.rows, options.cols, options.codes_words);
    case BitOutput::columns:
      return check_tensor(check, outputs.codes, "codes", device, options.requantise->bits,
                          options.cols, options.rows);
    case BitOutput::bytes:
      return check_bytes(check, outputs.bytes, "bytes", device, options.rows, options.cols);
  }
}

bool chain_fits(const BitChainProblem& problem, std::int64_t most_width) {
  if (problem.steps.empty() || problem.steps.back().requantise) return false;
  if (problem.vertices % chain_part_rows != 0) return false;
  if (!problem.lists && problem.block > chain_part_rows) return false;
  return std::all_of(problem.steps.begin(), problem.steps.end(), [&](const BitChainStep& step) {
    // Terms of a sum are one column.
    return step.in <= most_width && step.out <= most_width && step.bits <= 8 &&
           (step.aggregates || step.weights.bits <= 8) && step.terms <= (step.aggregates ? 1 : 2);
  });
}

ChainCheck::ChainCheck(const BitChainProblem& problem)
    : lists_(problem.lists),
      first_sums_(problem.steps.front().aggregates),
      in_(problem.steps.front().in),
      out_(problem.steps.back().out),
      bits_(problem.steps.front().bits) {
  options_.device = problem.options.device;
  options_.rows = options_.depth = problem.vertices;
  options_.block = problem.block;
}

void ChainCheck::operator()(const BitChainInputs& inputs, const MatrixView<float>& values) const {
  const Device device = options_.device;
  const std::int64_t vertices = options_.rows;
  const Checker check("bit_chain", device);
  const bool by_columns = first_sums_ && !lists_;
  check_tensor(check, inputs.features, "features", device, bits_, by_columns ? in_ : vertices,
               by_columns ? vertices : in_, first_sums_ ? 0 : (in_ + 31) / 32);
  if (lists_) {
    BitInputs edges;
    edges.block_starts = inputs.block_starts;
    edges.list_offsets = inputs.list_offsets;
    edges.list_sources = inputs.list_sources;
    check_starts(check, edges.block_starts, options_);
    check_lists(check, edges, options_);
  } else {
    check_tensor(check, inputs.adjacency, "adjacency", device, 1, vertices, options_.block);
  }
  check.matrix(values, "values", {ElementType::fp32, vertices, out_});
}

}  // namespace tessera::ops
