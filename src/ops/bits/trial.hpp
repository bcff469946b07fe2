// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "ops/bits/kernel.hpp"
#include "ops/plan/trial_operands.hpp"

namespace tessera::ops {

/// What a measuring plan needs of bit products: see spmm/trial.hpp. Operands are all zeros, which
/// takes as long as anything else; outputs are the sums.
class BitTrial : public TrialOperands {
 public:
  BitTrial(const BitProblem& problem, const Place& place) : TrialOperands(place) {
    const BitOptions& options = problem.options;
    const std::int64_t rows = options.rows, cols = options.cols;
    const bool has_a = problem.a == nullptr && !problem.aggregates;
    inputs_.a = codes(options.a_bits, has_a ? rows : 0, depth_of_a(options));
    inputs_.b = problem.aggregates ? codes(options.b_bits, options.depth, cols)
                                   : codes(options.b_bits, cols, options.depth);
    if (options.b_bytes) {
      const std::int64_t stride = padded_bytes(cols);
      inputs_.b_bytes = {zeros<std::uint8_t>(checked_area(options.depth, stride)), options.depth,
                         cols, stride, device()};
    }
    if (options.block > 0) {
      const std::int64_t starts = (rows + rows_of_start - 1) / rows_of_start;
      inputs_.block_starts = {zeros<std::int32_t>(starts), starts, 1, device()};
    }
    if (problem.has_lists()) {
      inputs_.list_offsets = {zeros<std::int32_t>(rows + 1), rows + 1, 1, device()};
    }
    auto* const result =
        zeros<std::uint32_t>(checked_area(rows, cols) * 2 + (cols + 128) * (rows + 128) / 2);
    const auto as_matrix = [&]<class T>(MatrixView<T>& to) {
      to = {reinterpret_cast<T*>(result), rows, cols, device()};
    };
    switch (options.output) {
      case BitOutput::sums32: as_matrix(outputs_.sums32); break;
      case BitOutput::sums64: as_matrix(outputs_.sums64); break;
      case BitOutput::values: as_matrix(outputs_.values); break;
      case BitOutput::rows:
        outputs_.codes =
            quant::bit_tensor_shape(options.requantise->bits, rows, cols).over(result, device());
        break;
      case BitOutput::columns:
        outputs_.codes =
            quant::bit_tensor_shape(options.requantise->bits, cols, rows).over(result, device());
        break;
      case BitOutput::bytes:
        as_matrix(outputs_.bytes);
        outputs_.bytes.stride = padded_bytes(cols);
        break;
    }
  }

  void run(const PreparedBits& prepared, Stream stream) {
    prepared.run(inputs_, outputs_, stream, workspace());
  }

  static std::string op(const BitProblem& problem) {
    return problem.has_lists() ? "bit_lists" : problem.aggregates ? "bit_aggregate" : "bit_gemm";
  }
  static std::string details(const BitProblem& problem) {
    const BitOptions& options = problem.options;
    return fmt::format("{} x {} x {}, {} by {} bits{}, {}{}{}", options.rows, options.cols,
                       options.depth, options.a_bits, options.b_bits,
                       options.b_bytes ? " as bytes" : "", to_string(options.output),
                       problem.a ? ", A stays" : "",
                       options.block > 0 ? fmt::format(", blocks of {}", options.block) : "");
  }

 private:
  quant::BitTensorView<const std::uint32_t> codes(int bits, std::int64_t rows, std::int64_t depth) {
    const quant::BitTensor shape = quant::bit_tensor_shape(bits, rows, depth);
    return shape.over(zeros<std::uint32_t>(shape.num_words()), device());
  }

  BitInputs inputs_;
  BitOutputs outputs_;
};

}  // namespace tessera::ops
