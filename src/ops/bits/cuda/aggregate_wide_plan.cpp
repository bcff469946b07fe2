// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <vector>

#include "core/device_traits.hpp"
#include "cuda/array.hpp"
#include "cuda/rows.hpp"
#include "ops/bits/cuda/aggregate_wide.hpp"
#include "ops/bits/cuda/cost.hpp"
#include "ops/bits/cuda/kernels.hpp"

namespace tessera::ops {
namespace {

/// More than 8 bits.
class CudaAggregateWide final : public CudaBits {
 public:
  explicit CudaAggregateWide(const BitProblem& problem)
      : CudaBits(problem),
        rows_(cuda::device_rows(problem.graph, options_.place())),
        codes_(need_.add<std::uint16_t>(checked_area(options_.depth, width()))) {}

  void run(const BitInputs& inputs, const BitOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    const BitRows from{inputs.b.words, inputs.b.plane_words(), inputs.b.words_per_row,
                       inputs.b.rows, inputs.b.bits};
    std::uint16_t* const codes = codes_.in(workspace);
    spread_wide(from, width(), codes, stream);
    const Sums sums = sums_in(outputs, workspace);
    WideLaunch launch;
    launch.narrow_offsets = rows_->narrow_offsets.data();
    launch.wide_offsets = rows_->wide_offsets.data();
    launch.sources = rows_->indices.data();
    launch.rows = options_.rows;
    launch.codes = codes;
    launch.cols = options_.cols;
    launch.width = width();
    launch.sums = sums.data;
    launch.stride = sums.stride;
    aggregate_wide(launch, stream);
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

void append_cuda_wide_aggregate(std::vector<BitKernel>& table) {
  table.push_back({{"bit_aggregate/cuda/wide",
                    "codes of more than 8 bits as two bytes each, a warp adds a row's sources",
                    "bit_aggregate", DeviceKind::cuda, true},
                   why_not_wide,
                   [](const BitProblem& problem) {
                     return predict_bit_wide_us(problem, device_traits(problem.options.device));
                   },
                   [](const BitProblem& problem) -> std::unique_ptr<const PreparedBits> {
                     return std::make_unique<CudaAggregateWide>(problem);
                   }});
}

}  // namespace tessera::ops
