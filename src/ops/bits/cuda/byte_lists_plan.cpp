// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "core/device_traits.hpp"
#include "ops/bits/cuda/byte_lists.hpp"
#include "ops/bits/cuda/cost.hpp"
#include "ops/bits/cuda/kernels.hpp"

namespace tessera::ops {
namespace {

class CudaByteLists final : public CudaBits {
 public:
  explicit CudaByteLists(const BitProblem& problem)
      : CudaBits(problem, finishes_in_registers(problem.options)),
        codes_(need_.add<std::uint8_t>(
            options_.b_bytes ? 0 : checked_area(options_.depth, padded_bytes(options_.cols)))) {}

  void run(const BitInputs& inputs, const BitOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    if (options_.cols == 0) return;
    ByteListsLaunch launch;
    launch.codes = inputs.b_bytes.data;
    launch.code_stride = inputs.b_bytes.stride;
    if (!options_.b_bytes) {
      const BitRows from{inputs.b.words, inputs.b.plane_words(), inputs.b.words_per_row,
                         inputs.b.rows, inputs.b.bits};
      launch.codes = codes_.in(workspace);
      launch.code_stride = padded_bytes(options_.cols);
      spread_rows(from, launch.code_stride, codes_.in(workspace), stream);
    }
    launch.offsets = inputs.list_offsets.data;
    launch.sources = inputs.list_sources.data;
    launch.starts = inputs.block_starts.data;
    launch.out.rows = launch.out.all_rows = options_.rows;
    launch.out.cols = options_.cols;
    if (finishes_in_registers(options_)) {
      launch.out.result = result(inputs, outputs);
      if (options_.output == BitOutput::rows) launch.out.all_rows = outputs.codes.padded_rows;
      return sum_byte_lists(launch, stream);
    }
    const Sums sums = sums_in(outputs, workspace);
    launch.out.result.kind = BitResultKind::sums;
    launch.out.result.sums = sums.data;
    launch.out.result.stride = sums.stride;
    sum_byte_lists(launch, stream);
    finish(inputs, outputs, stream, workspace);
  }

 private:
  WorkspacePart<std::uint8_t> codes_;
};

}  // namespace

void append_cuda_byte_lists(std::vector<BitKernel>& table) {
  table.push_back({{"bit_lists/cuda/rows",
                    "codes as bytes, a few lanes add those of a row's sources and finish them",
                    "bit_lists", DeviceKind::cuda, true},
                   why_not_on_gpu,
                   [](const BitProblem& problem) {
                     return predict_bit_lists_us(problem, device_traits(problem.options.device));
                   },
                   [](const BitProblem& problem) -> std::unique_ptr<const PreparedBits> {
                     return std::make_unique<CudaByteLists>(problem);
                   }});
}

}  // namespace tessera::ops
