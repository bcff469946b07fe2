// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "ops/bits/kernel.hpp"

namespace tessera::ops {

/// What a measuring plan needs of bit products: see spmm/trial.hpp. Operands are all zeros, which
/// takes as long as anything else; outputs are the sums.
class BitTrial {
 public:
  BitTrial(const BitProblem& problem, const Place& place)
      : b_shape_(problem.aggregates
                     ? quant::bit_tensor_shape(problem.options.b_bits, problem.options.depth,
                                               problem.options.cols)
                     : quant::bit_tensor_shape(problem.options.b_bits, problem.options.cols,
                                               problem.options.depth)),
        a_shape_(quant::bit_tensor_shape(problem.options.a_bits,
                                         problem.a || problem.aggregates ? 0 : problem.options.rows,
                                         depth_of_a(problem.options))),
        device_(place.device),
        a_(words_of(a_shape_), place),
        b_(words_of(b_shape_), place),
        bytes_(problem.options.b_bytes
                   ? checked_area(problem.options.depth, padded_bytes(problem.options.cols))
                   : 0,
               place),
        result_(checked_area(problem.options.rows, problem.options.cols) * 2 +
                    (problem.options.cols + 128) * (problem.options.rows + 128) / 2,
                place),
        workspace_(place) {
    if (problem.options.block > 0) {
      const std::int64_t count = (problem.options.rows + rows_of_start - 1) / rows_of_start;
      starts_ = Buffer<std::int32_t>(count, place);
      fill_zero(starts_.data(), static_cast<std::size_t>(count) * 4, device_, place.stream);
      inputs_.block_starts = {starts_.data(), count, 1, device_};
    }
    if (problem.has_lists()) {
      offsets_ = Buffer<std::int32_t>(problem.options.rows + 1, place);
      fill_zero(offsets_.data(), static_cast<std::size_t>(offsets_.size()) * 4, device_,
                place.stream);
      inputs_.list_offsets = {offsets_.data(), offsets_.size(), 1, device_};
    }
    fill_zero(a_.data(), static_cast<std::size_t>(a_.size()) * 4, device_, place.stream);
    fill_zero(b_.data(), static_cast<std::size_t>(b_.size()) * 4, device_, place.stream);
    const BitOptions& options = problem.options;
    switch (options.output) {
      case BitOutput::sums64:
        outputs_.sums64 = {reinterpret_cast<std::int64_t*>(result_.data()), options.rows,
                           options.cols, device_};
        break;
      case BitOutput::values:
        outputs_.values = {reinterpret_cast<float*>(result_.data()), options.rows, options.cols,
                           device_};
        break;
      case BitOutput::rows:
      case BitOutput::columns: {
        const bool by_rows = options.output == BitOutput::rows;
        const quant::BitTensor shape =
            quant::bit_tensor_shape(options.requantise->bits, by_rows ? options.rows : options.cols,
                                    by_rows ? options.cols : options.rows);
        outputs_.codes = view_of(shape, result_.data());
        break;
      }
      case BitOutput::bytes:
        outputs_.bytes = {reinterpret_cast<std::uint8_t*>(result_.data()), options.rows,
                          options.cols, padded_bytes(options.cols), device_};
        break;
      case BitOutput::sums32:
        outputs_.sums32 = {reinterpret_cast<std::int32_t*>(result_.data()), options.rows,
                           options.cols, device_};
        break;
    }
    if (problem.options.b_bytes) {
      fill_zero(bytes_.data(), static_cast<std::size_t>(bytes_.size()), device_, place.stream);
      inputs_.b_bytes = {bytes_.data(), options.depth, options.cols, padded_bytes(options.cols),
                         device_};
    }
    inputs_.a = view_of(a_shape_, a_.data());
    inputs_.b = view_of(b_shape_, b_.data());
  }

  void prepare(const PreparedBits& prepared) { workspace_.prepare(prepared.workspace()); }
  void run(const PreparedBits& prepared, Stream stream) {
    prepared.run(inputs_, outputs_, stream, workspace_.view());
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
  static std::int64_t words_of(const quant::BitTensor& shape) {
    return shape.bits * checked_area(shape.padded_rows, shape.words_per_row);
  }
  quant::BitTensorView<std::uint32_t> view_of(const quant::BitTensor& shape,
                                              std::uint32_t* words) const {
    return {words,  shape.bits, shape.rows, shape.depth, shape.padded_rows, shape.words_per_row,
            device_};
  }

  quant::BitTensor b_shape_, a_shape_;
  Device device_;
  Buffer<std::uint32_t> a_, b_;
  Buffer<std::uint8_t> bytes_;
  Buffer<std::uint32_t> result_;
  Buffer<std::int32_t> starts_;
  Buffer<std::int32_t> offsets_;  ///< of lists without sources
  TrialWorkspace workspace_;
  BitInputs inputs_;
  BitOutputs outputs_;
};

}  // namespace tessera::ops
