// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/array.hpp"
#include "ops/bits/cuda/aggregate.hpp"
#include "ops/bits/cuda/kernels.hpp"
#include "ops/bits/finish_many.hpp"

namespace tessera::ops {
namespace {

/// A copy on the GPU; none of no numbers.
Buffer<float> copied(const BitOptions& options, std::span<const float> numbers) {
  return numbers.empty() ? Buffer<float>() : cuda::to_device(numbers, options.place());
}

/// Of codes of up to 8 bits.
bool all_correct_at_once(const BitOptions& options) {
  if (!options.requantise || options.requantise->bits > 8) return false;
  const auto last = static_cast<int>(options.requantise->max_code());
  const std::vector<float>& steps = options.requantise->scale;
  return std::all_of(steps.begin(), steps.end(),
                     [&](float step) { return corrects_at_once(step, last); });
}

/// Whether kernels of bit_aggregate make the result by themselves.
bool finishes_in_registers(const BitOptions& options) {
  if (options.output == BitOutput::columns) return false;
  return options.output != BitOutput::rows || options.requantise->bits <= 8;
}

/// Of bytes in one range from 0 on.
bool all_round_directly(const BitOptions& options) {
  if (options.output != BitOutput::bytes || options.requantise->lower.size() != 1 ||
      options.requantise->lower[0] != 0 ||
      options.requantise->rounding != quant::Rounding::nearest) {
    return false;
  }
  return rounds_directly(options.requantise->scale[0],
                         static_cast<int>(options.requantise->max_code()));
}

}  // namespace

std::string why_not_on_gpu(const BitProblem& problem) {
  if (problem.options.output == BitOutput::sums64) return "sums in 64 bits exist on the CPU only";
  if (problem.sum_bits() > 31) return "sums may take more than 31 bits";
  return {};
}

std::string why_not_bytes(const BitProblem& problem) {
  if (problem.options.b_bits > 8) return "more than 8 bits";
  return why_not_on_gpu(problem);
}

CudaBits::CudaBits(const BitProblem& problem, bool finishes)
    : options_(problem.options),
      quick_(all_correct_at_once(options_)),
      direct_(all_round_directly(options_)) {
  if (options_.requantise) {
    lower_ = copied(options_, options_.requantise->lower);
    step_ = copied(options_, options_.requantise->scale);
    inverse_ = copied(options_, inverses_of(options_.requantise->scale));
  }
  if (options_.output != BitOutput::sums32 && !finishes) {
    sums_ = need_.add<std::int32_t>(checked_area(options_.rows, options_.cols));
  }
}

CudaBits::Sums CudaBits::sums_in(const BitOutputs& outputs, const WorkspaceView& workspace) const {
  if (options_.output == BitOutput::sums32) return {outputs.sums32.data, outputs.sums32.stride};
  return {sums_.in(workspace), options_.cols};
}

BitResult CudaBits::result(const BitInputs& inputs, const BitOutputs& outputs,
                           const OwnCodes& own) const {
  BitResult result;
  result.finish = make_finish(options_, inputs.epilogue, lower_.data(), step_.data(), own);
  result.finish.inverse = inverse_.data();
  result.finish.quick = quick_;
  result.finish.direct = direct_;
  if (options_.requantise && result.finish.range_stride == 0) {
    set_one_range(options_.requantise->lower[0], options_.requantise->scale[0], result.finish);
  }
  const auto& codes = outputs.codes;
  result.codes = {codes.words, codes.bits, codes.padded_rows, codes.words_per_row};
  switch (options_.output) {
    case BitOutput::values:
      result.values = outputs.values.data;
      result.stride = outputs.values.stride;
      break;
    case BitOutput::bytes:
      result.kind = BitResultKind::bytes;
      result.bytes = outputs.bytes.data;
      result.stride = outputs.bytes.stride;
      break;
    case BitOutput::rows: result.kind = BitResultKind::rows; break;
    case BitOutput::columns: result.kind = BitResultKind::columns; break;
    default:
      result.kind = BitResultKind::sums;
      result.sums = outputs.sums32.data;
      result.stride = outputs.sums32.stride;
  }
  return result;
}

void CudaBits::finish(const BitInputs& inputs, const BitOutputs& outputs, Stream stream,
                      const WorkspaceView& workspace, const OwnCodes& own) const {
  if (options_.output == BitOutput::sums32) return;
  finish_in_pass(sums_.in(workspace), options_.rows, options_.cols, result(inputs, outputs, own),
                 stream);
}

CudaByteSums::CudaByteSums(const BitProblem& problem)
    : CudaBits(problem, finishes_in_registers(problem.options)),
      codes_(
          need_.add<std::uint8_t>(options_.b_bytes ? 0 : checked_area(options_.depth, width()))) {}

void CudaByteSums::run(const BitInputs& inputs, const BitOutputs& outputs, Stream stream,
                       const WorkspaceView& workspace) const {
  if (options_.cols == 0) return;
  OwnCodes codes{inputs.b_bytes.data, nullptr, inputs.b_bytes.stride};
  if (!options_.b_bytes) {
    codes = {codes_.in(workspace), nullptr, width()};
    spread_rows(rows_of(inputs.b), width(), codes_.in(workspace), stream);
  }
  AggregateResult out;
  out.rows = out.all_rows = options_.rows;
  out.cols = options_.cols;
  if (finishes_in_registers(options_)) {
    out.result = result(inputs, outputs, codes);
    if (options_.output == BitOutput::rows) out.all_rows = outputs.codes.padded_rows;
    return sum(inputs, codes, out, stream, workspace);
  }
  const Sums sums = sums_in(outputs, workspace);
  out.result.kind = BitResultKind::sums;
  out.result.sums = sums.data;
  out.result.stride = sums.stride;
  sum(inputs, codes, out, stream, workspace);
  finish(inputs, outputs, stream, workspace, codes);
}

}  // namespace tessera::ops
