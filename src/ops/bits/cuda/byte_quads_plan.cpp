// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "core/device_traits.hpp"
#include "cuda/array.hpp"
#include "ops/bits/cuda/aggregate.hpp"
#include "ops/bits/cuda/byte_quads.hpp"
#include "ops/bits/cuda/cost.hpp"
#include "ops/bits/cuda/kernels.hpp"
#include "ops/spmm/cuda/tile_side.hpp"
#include "tiles/cuda/device_quads.hpp"

namespace tessera::ops {
namespace {

constexpr int window_rows = 16;
constexpr std::int32_t most_piece_steps = 128;
/// An upper bound until it is measured: short windows share fewer columns than tall ones, and sums
/// take a pass of their own.
constexpr double share_of_windows = 1.5;

std::vector<QuadPiece> pieces_of(const tiles::QuadTiles& tiles) {
  std::vector<QuadPiece> pieces;
  for (std::int64_t w = 0; w < tiles.num_windows(); ++w) {
    const EdgeOffset steps = tiles.step_offsets[w + 1] - tiles.step_offsets[w];
    EdgeOffset first = 0;
    do {
      QuadPiece piece;
      piece.first_row = static_cast<std::int32_t>(w * window_rows);
      piece.first_tile = static_cast<std::int32_t>(tiles.tile_offsets[w] + first / 2);
      piece.first_step = static_cast<std::int32_t>(tiles.step_offsets[w] + first);
      piece.num_steps =
          static_cast<std::int32_t>(std::min<EdgeOffset>(most_piece_steps, steps - first));
      piece.is_part = steps > most_piece_steps ? 1 : 0;
      pieces.push_back(piece);
      first += most_piece_steps;
    } while (first < steps);
  }
  return pieces;
}

class CudaByteQuads final : public CudaBits {
 public:
  explicit CudaByteQuads(const BitProblem& problem)
      : CudaBits(problem),
        tiles_(tiles::device_quads(problem.graph, {window_rows, tile_side(SpmmPass::forward)},
                                   options_.place())),
        codes_(
            need_.add<std::uint8_t>(options_.b_bytes ? 0 : checked_area(options_.depth, width()))) {
    const std::vector<QuadPiece> pieces = pieces_of(tiles_->host);
    has_parts_ = std::any_of(pieces.begin(), pieces.end(),
                             [](const QuadPiece& piece) { return piece.is_part != 0; });
    pieces_ = cuda::to_device(std::span<const QuadPiece>(pieces), options_.place());
  }

  void run(const BitInputs& inputs, const BitOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    if (options_.cols == 0) return;
    const OwnCodes codes = bytes_of_b(inputs, codes_, stream, workspace);
    const Sums sums = sums_in(outputs, workspace);
    ByteQuadsLaunch launch;
    launch.pieces = pieces_.data();
    launch.num_pieces = pieces_.size();
    launch.has_parts = has_parts_;
    launch.columns = tiles_->columns.data();
    launch.words = tiles_->words.data();
    launch.codes = codes.bytes;
    launch.code_stride = codes.stride;
    launch.width = width();
    launch.sums = sums.data;
    launch.stride = sums.stride;
    launch.rows = options_.rows;
    launch.cols = options_.cols;
    sum_byte_quads(launch, stream);
    finish(inputs, outputs, stream, workspace, codes);
  }

 private:
  std::int64_t width() const { return padded_bytes(options_.cols); }

  std::shared_ptr<const tiles::DeviceQuads> tiles_;
  WorkspacePart<std::uint8_t> codes_;
  Buffer<QuadPiece> pieces_;
  bool has_parts_ = false;
};

std::string why_not(const BitProblem& problem) {
  if (problem.options.b_bits > 8) return "more than 8 bits";
  if (problem.options.rows == 0) return "no rows";
  return why_not_on_gpu(problem);
}

}  // namespace

void append_cuda_byte_quads(std::vector<BitKernel>& table) {
  table.push_back({{"bit_aggregate/cuda/nm_16",
                    "windows of 16 rows, columns in an order in which every row is 2:4, products "
                    "of bytes on sparse tensor cores",
                    "bit_aggregate", DeviceKind::cuda, true},
                   why_not,
                   [](const BitProblem& problem) {
                     return share_of_windows *
                            predict_bit_windows_us(problem, device_traits(problem.options.device));
                   },
                   [](const BitProblem& problem) -> std::unique_ptr<const PreparedBits> {
                     return std::make_unique<CudaByteQuads>(problem);
                   }});
}

}  // namespace tessera::ops
