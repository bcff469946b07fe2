// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <vector>

#include "core/device_traits.hpp"
#include "cuda/array.hpp"
#include "cuda/rows.hpp"
#include "ops/bits/cuda/aggregate.hpp"
#include "ops/bits/cuda/aggregate_wide.hpp"
#include "ops/bits/cuda/cost.hpp"
#include "ops/bits/cuda/kernels.hpp"

namespace tessera::ops {
namespace {

class CudaAggregateRows final : public CudaBits {
 public:
  explicit CudaAggregateRows(const BitProblem& problem)
      : CudaBits(problem, finishes_in_registers(problem.options)),
        rows_(cuda::device_rows(problem.graph, options_.place())),
        codes_(
            need_.add<std::uint8_t>(options_.b_bytes ? 0 : checked_area(options_.depth, width()))) {
    cut(problem.graph.row_offsets().span());
  }

  void run(const BitInputs& inputs, const BitOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    OwnCodes codes{inputs.b_bytes.data, nullptr, inputs.b_bytes.stride};
    if (!options_.b_bytes) {
      const BitRows from{inputs.b.words, inputs.b.plane_words(), inputs.b.words_per_row,
                         inputs.b.rows, inputs.b.bits};
      codes = {codes_.in(workspace), nullptr, width()};
      spread_rows(from, width(), codes_.in(workspace), stream);
    }
    AggregateLaunch launch;
    launch.narrow_offsets = rows_->narrow_offsets.data();
    launch.wide_offsets = rows_->wide_offsets.data();
    launch.sources = rows_->indices.data();
    launch.rows = launch.all_rows = options_.rows;
    launch.pieces = pieces_.data();
    launch.num_pieces = pieces_.size();
    launch.slots = slots_.in(workspace);
    launch.counters = workspace.counters;
    launch.codes = codes.bytes;
    launch.code_stride = codes.stride;
    launch.cols = options_.cols;
    launch.width = width();
    if (finishes_in_registers(options_)) {
      launch.result = result(inputs, outputs);
      add_own(options_, codes, launch.result.finish);
      if (options_.output == BitOutput::rows) launch.all_rows = outputs.codes.padded_rows;
      return aggregate_rows(launch, stream);
    }
    const Sums sums = sums_in(outputs, workspace);
    launch.result.kind = BitResultKind::sums;
    launch.result.sums = sums.data;
    launch.result.stride = sums.stride;
    aggregate_rows(launch, stream);
    finish(inputs, outputs, stream, workspace, codes);
  }

 private:
  std::int64_t width() const { return padded_bytes(options_.cols); }

  void cut(std::span<const EdgeOffset> offsets) {
    std::vector<RowPiece> pieces;
    std::int32_t slots = 0;
    std::int32_t counters = 0;
    for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
      const EdgeOffset degree = offsets[row + 1] - offsets[row];
      if (degree <= longest_short_row) continue;
      RowPiece piece{offsets[row], static_cast<std::int32_t>(degree), static_cast<VertexId>(row)};
      if (degree <= longest_piece) {
        pieces.push_back(piece);
        continue;
      }
      piece.num_slots = static_cast<std::int32_t>((degree + longest_piece - 1) / longest_piece);
      piece.first_slot = slots;
      piece.counter = counters++;
      for (EdgeOffset begin = 0; begin < degree; begin += longest_piece) {
        piece.begin = offsets[row] + begin;
        piece.count = static_cast<std::int32_t>(std::min(longest_piece, degree - begin));
        piece.slot = slots++;
        pieces.push_back(piece);
      }
    }
    pieces_ = cuda::to_device(std::span<const RowPiece>(pieces), options_.place());
    slots_ = need_.add<std::int32_t>(checked_area(slots, width()));
    need_.add_counters(checked_area(counters, (width() + 511) / 512));
  }

  std::shared_ptr<const cuda::DeviceRows> rows_;
  WorkspacePart<std::uint8_t> codes_;
  Buffer<RowPiece> pieces_;
  WorkspacePart<std::int32_t> slots_;
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

std::string why_not_rows(const BitProblem& problem) {
  if (problem.options.b_bits > 8) return "more than 8 bits";
  return why_not_on_gpu(problem);
}

}  // namespace

void append_cuda_bit_aggregate_kernels(std::vector<BitKernel>& table) {
  table.push_back({{"bit_aggregate/cuda/rows",
                    "codes as bytes, a few lanes add a row's sources and finish the sums",
                    "bit_aggregate", DeviceKind::cuda, true},
                   why_not_rows,
                   [](const BitProblem& problem) {
                     return predict_bit_rows_us(problem, device_traits(problem.options.device));
                   },
                   [](const BitProblem& problem) -> std::unique_ptr<const PreparedBits> {
                     return std::make_unique<CudaAggregateRows>(problem);
                   }});
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
