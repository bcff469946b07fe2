// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "ops/bits/cuda/cost.hpp"
#include "ops/bits/cuda/kernels.hpp"

namespace tessera::ops {
namespace {

class CudaByteLists final : public CudaByteSums {
 public:
  using CudaByteSums::CudaByteSums;

 private:
  void sum(const BitInputs& inputs, const OwnCodes& codes, const AggregateResult& out,
           Stream stream, const WorkspaceView&) const override {
    sum_byte_lists({inputs.list_offsets.data, inputs.list_sources.data, inputs.block_starts.data,
                    codes.bytes, codes.stride, out},
                   stream);
  }
};

/// More than 8 bits.
class CudaAggregateWide final : public CudaBits {
 public:
  explicit CudaAggregateWide(const BitProblem& problem)
      : CudaBits(problem),
        rows_(cuda::device_rows(problem.graph, options_.place())),
        codes_(need_.add<std::uint16_t>(checked_area(options_.depth, width()))) {}

  void run(const BitInputs& inputs, const BitOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    std::uint16_t* const codes = codes_.in(workspace);
    spread_rows(rows_of(inputs.b), width(), codes, stream);
    const Sums sums = sums_in(outputs, workspace);
    aggregate_wide({rows_->offsets(), rows_->indices.data(), options_.rows, codes, options_.cols,
                    width(), sums.data, sums.stride},
                   stream);
    finish(inputs, outputs, stream, workspace, {nullptr, codes, width()});
  }

 private:
  std::int64_t width() const { return (options_.cols + 7) / 8 * 8; }

  std::shared_ptr<const cuda::DeviceRows> rows_;
  WorkspacePart<std::uint16_t> codes_;
};

std::string why_not_wide(const BitProblem& problem) {
  if (problem.options.b_bits <= 8) return "8 bits or fewer, which fit bytes";
  return why_not_on_gpu(problem);
}

}  // namespace

void append_cuda_byte_lists(std::vector<BitKernel>& table) {
  table.push_back(
      cuda_kernel<BitKernel, why_not_on_gpu, predict_bit_lists_us, prepared<CudaByteLists>>(
          cuda_info("bit_lists", "rows",
                    "codes as bytes, a few lanes add those of a row's sources and finish them")));
}

void append_cuda_wide_aggregate(std::vector<BitKernel>& table) {
  table.push_back(
      cuda_kernel<BitKernel, why_not_wide, predict_bit_wide_us, prepared<CudaAggregateWide>>(
          cuda_info("bit_aggregate", "wide",
                    "codes of more than 8 bits as two bytes each, a warp adds a row's sources")));
}

}  // namespace tessera::ops
