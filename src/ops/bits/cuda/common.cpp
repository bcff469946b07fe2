// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/array.hpp"
#include "ops/bits/cuda/aggregate.hpp"
#include "ops/bits/cuda/kernels.hpp"
#include "ops/bits/finish_many.hpp"

namespace tessera::ops {
namespace {

Buffer<float> ranges_on(const BitOptions& options, std::vector<float> quant::Affine::*part) {
  if (!options.requantise) return {};
  return cuda::to_device(std::span<const float>((*options.requantise).*part), options.place());
}

/// Empty where a step has none.
Buffer<float> inverses_on(const BitOptions& options) {
  if (!options.requantise) return {};
  std::vector<float> inverses;
  for (const float step : options.requantise->scale) {
    inverses.push_back(inverse_of(step));
    if (inverses.back() == 0) return {};
  }
  return cuda::to_device(std::span<const float>(inverses), options.place());
}

/// Of codes of up to 8 bits.
bool all_correct_at_once(const BitOptions& options) {
  if (!options.requantise || options.requantise->bits > 8) return false;
  const auto last = static_cast<int>(options.requantise->max_code());
  const std::vector<float>& steps = options.requantise->scale;
  return std::all_of(steps.begin(), steps.end(),
                     [&](float step) { return corrects_at_once(step, last); });
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

bool finishes_in_registers(const BitOptions& options) {
  if (options.output == BitOutput::columns) return false;
  return options.output != BitOutput::rows || options.requantise->bits <= 8;
}

CudaBits::CudaBits(const BitProblem& problem, bool finishes)
    : options_(problem.options),
      lower_(ranges_on(options_, &quant::Affine::lower)),
      step_(ranges_on(options_, &quant::Affine::scale)),
      inverse_(inverses_on(options_)),
      quick_(all_correct_at_once(options_)),
      direct_(all_round_directly(options_)) {
  if (options_.output != BitOutput::sums32 && !finishes) {
    sums_ = need_.add<std::int32_t>(checked_area(options_.rows, options_.cols));
  }
}

CudaBits::Sums CudaBits::sums_in(const BitOutputs& outputs, const WorkspaceView& workspace) const {
  if (options_.output == BitOutput::sums32) return {outputs.sums32.data, outputs.sums32.stride};
  return {sums_.in(workspace), options_.cols};
}

OwnCodes CudaBits::bytes_of_b(const BitInputs& inputs, const WorkspacePart<std::uint8_t>& spread,
                              Stream stream, const WorkspaceView& workspace) const {
  if (options_.b_bytes) return {inputs.b_bytes.data, nullptr, inputs.b_bytes.stride};
  const BitRows planes{inputs.b.words, inputs.b.plane_words(), inputs.b.words_per_row,
                       inputs.b.rows, inputs.b.bits};
  const std::int64_t width = padded_bytes(options_.cols);
  spread_rows(planes, width, spread.in(workspace), stream);
  return {spread.in(workspace), nullptr, width};
}

BitResult CudaBits::result(const BitInputs& inputs, const BitOutputs& outputs) const {
  BitResult result;
  result.finish = make_finish(options_, inputs.epilogue, lower_.data(), step_.data());
  result.finish.inverse = inverse_.data();
  result.finish.quick = quick_;
  result.finish.direct = direct_;
  if (options_.requantise && result.finish.range_stride == 0) {
    set_one_range(options_.requantise->lower[0], options_.requantise->scale[0], options_.own != 0,
                  result.finish);
  }
  if (options_.output == BitOutput::values) {
    result.values = outputs.values.data;
    result.stride = outputs.values.stride;
    return result;
  }
  if (options_.output == BitOutput::bytes) {
    result.kind = BitResultKind::bytes;
    result.bytes = outputs.bytes.data;
    result.stride = outputs.bytes.stride;
    return result;
  }
  if (options_.output == BitOutput::sums32) {
    result.kind = BitResultKind::sums;
    result.sums = outputs.sums32.data;
    result.stride = outputs.sums32.stride;
    return result;
  }
  result.kind = options_.output == BitOutput::rows ? BitResultKind::rows : BitResultKind::columns;
  const auto& codes = outputs.codes;
  result.codes = {codes.words, codes.bits, codes.padded_rows, codes.words_per_row};
  return result;
}

void CudaBits::finish(const BitInputs& inputs, const BitOutputs& outputs, Stream stream,
                      const WorkspaceView& workspace, const OwnCodes& own) const {
  if (options_.output == BitOutput::sums32) return;
  FinishLaunch launch{sums_.in(workspace), options_.rows, options_.cols,
                      make_finish(options_, inputs.epilogue, lower_.data(), step_.data())};
  add_own(options_, own, launch.finish);
  if (options_.output == BitOutput::values) {
    return finish_values(launch, outputs.values.data, outputs.values.stride, stream);
  }
  if (options_.output == BitOutput::bytes) {
    return finish_bytes(launch, outputs.bytes.data, outputs.bytes.stride, stream);
  }
  const auto& codes = outputs.codes;
  finish_codes(launch, {codes.words, codes.bits, codes.padded_rows, codes.words_per_row},
               options_.output == BitOutput::rows, stream);
}

}  // namespace tessera::ops
