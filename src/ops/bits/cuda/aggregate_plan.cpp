// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <vector>

#include "core/device_traits.hpp"
#include "cuda/array.hpp"
#include "cuda/rows.hpp"
#include "ops/bits/cuda/aggregate.hpp"
#include "ops/bits/cuda/cost.hpp"
#include "ops/bits/cuda/kernels.hpp"

namespace tessera::ops {
namespace {

/// Longer rows are cut; the sums of integers are the same in every order.
constexpr EdgeOffset longest_piece = 2048;

class CudaAggregateRows final : public CudaBits {
 public:
  explicit CudaAggregateRows(const BitProblem& problem)
      : CudaBits(problem),
        rows_(cuda::device_rows(problem.graph, options_.place())),
        width_((options_.cols + 15) / 16 * 16),
        codes_(need_.add<std::uint8_t>(checked_area(options_.depth, width_))) {
    cut(problem.graph.row_offsets().span());
  }

  void run(const BitInputs& inputs, const BitOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    const BitRows from{inputs.b.words, inputs.b.plane_words(), inputs.b.words_per_row,
                       inputs.b.rows, inputs.b.bits};
    spread_rows(from, width_, codes_.in(workspace), stream);
    const Sums sums = sums_in(outputs, workspace);
    AggregateLaunch launch;
    launch.pieces = pieces_.data();
    launch.num_pieces = pieces_.size();
    launch.num_whole = num_whole_;
    launch.shared_rows = shared_rows_.data();
    launch.num_shared_rows = shared_rows_.size();
    launch.sources = rows_->indices.data();
    launch.codes = codes_.in(workspace);
    launch.width = width_;
    launch.cols = options_.cols;
    launch.sums = sums.data;
    launch.stride = sums.stride;
    aggregate_rows(launch, stream);
    finish(inputs, outputs, stream, workspace, {codes_.in(workspace), nullptr, width_});
  }

 private:
  void cut(std::span<const EdgeOffset> offsets) {
    std::vector<RowPiece> whole, parts;
    std::vector<VertexId> shared;
    for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
      const auto id = static_cast<VertexId>(row);
      const EdgeOffset degree = offsets[row + 1] - offsets[row];
      if (degree <= longest_piece) {
        whole.push_back({offsets[row], static_cast<std::int32_t>(degree), id});
        continue;
      }
      shared.push_back(id);
      for (EdgeOffset begin = 0; begin < degree; begin += longest_piece) {
        const auto count = static_cast<std::int32_t>(std::min(longest_piece, degree - begin));
        parts.push_back({offsets[row] + begin, count, id});
      }
    }
    num_whole_ = static_cast<std::int64_t>(whole.size());
    whole.insert(whole.end(), parts.begin(), parts.end());
    const Place place = options_.place();
    pieces_ = cuda::to_device(std::span<const RowPiece>(whole), place);
    shared_rows_ = cuda::to_device(std::span<const VertexId>(shared), place);
  }

  std::shared_ptr<const cuda::DeviceRows> rows_;
  std::int64_t width_;
  WorkspacePart<std::uint8_t> codes_;
  std::int64_t num_whole_ = 0;
  Buffer<RowPiece> pieces_;
  Buffer<VertexId> shared_rows_;
};

std::string why_not_rows(const BitProblem& problem) {
  if (problem.options.b_bits > 8) return "more than 8 bits";
  return why_not_on_gpu(problem);
}

}  // namespace

void append_cuda_bit_aggregate_kernels(std::vector<BitKernel>& table) {
  table.push_back(
      {{"bit_aggregate/cuda/rows", "codes are spread to bytes once, a warp adds a row's sources",
        "bit_aggregate", DeviceKind::cuda, true},
       why_not_rows,
       [](const BitProblem& problem) {
         return predict_bit_rows_us(problem, device_traits(problem.options.device));
       },
       [](const BitProblem& problem) -> std::unique_ptr<const PreparedBits> {
         return std::make_unique<CudaAggregateRows>(problem);
       }});
}

}  // namespace tessera::ops
