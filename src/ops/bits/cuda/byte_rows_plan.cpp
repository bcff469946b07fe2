// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "core/device_traits.hpp"
#include "cuda/rows.hpp"
#include "ops/bits/cuda/byte_rows.hpp"
#include "ops/bits/cuda/cost.hpp"
#include "ops/bits/cuda/kernels.hpp"
#include "ops/spmm/cuda/rows/cost.hpp"
#include "ops/spmm/cuda/rows/scheduled_rows.hpp"
#include "tessera/core/error.hpp"

namespace tessera::ops {
namespace {

constexpr VertexId most_listed_rows = 1 << 24;

/// The narrowest that takes all columns at once, else the widest.
const ByteRowsFunction& function_for(std::span<const ByteRowsFunction> functions,
                                     std::int64_t cols) {
  const auto found = std::find_if(functions.begin(), functions.end() - 1,
                                  [&](const auto& function) { return cols <= function.columns(); });
  return *found;
}

RowsPolicy policy_of(const ByteRowsFunction& function, const BitProblem& problem) {
  return function.policy(problem.graph.num_rows() <= most_listed_rows);
}

PlainBytes plain_bytes(const BitResult& result, std::int64_t cols) {
  return {result.bytes,
          static_cast<std::uint32_t>(result.stride),
          static_cast<std::int32_t>(cols),
          static_cast<std::int32_t>(padded_bytes(cols)),
          result.finish.direct,
          plain_range(result.finish)};
}

class CudaByteRows final : public CudaBits {
 public:
  CudaByteRows(const BitProblem& problem, std::span<const ByteRowsFunction> functions)
      : CudaBits(problem, finishes_in_registers(problem.options)),
        function_(function_for(functions, options_.cols)),
        matrix_(cuda::device_rows(problem.graph, options_.place())),
        codes_(
            need_.add<std::uint8_t>(options_.b_bytes ? 0 : checked_area(options_.depth, width()))) {
    const RowsPolicy policy = policy_of(function_, problem);
    const RowsCut cut = rows_cut(as_features(problem), policy, device_traits(options_.device));
    if (std::max(cut.short_steps, cut.wide_steps) * policy.unroll > most_lane_sources) {
      throw Error(ErrorCode::internal, "rows too long for sums in 16 bits", "bit_aggregate",
                  "report this with the plan's explanation");
    }
    rows_ =
        ScheduledRows(*matrix_, {problem.graph.row_offsets().span(), *row_degrees(problem.graph)},
                      policy, cut, options_.place());
    slots_ = need_.add<std::int32_t>(checked_area(rows_.num_slots(), width()));
    need_.add_counters(checked_area(rows_.num_split_rows(),
                                    (width() + function_.columns() - 1) / function_.columns()));
  }

  void run(const BitInputs& inputs, const BitOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    if (options_.cols == 0) return;
    const OwnCodes codes = bytes_of_b(inputs, codes_, stream, workspace);
    ByteRowsLaunch launch;
    launch.work = rows_.work();
    launch.work.slots = slots_.in(workspace);
    launch.work.num_done = workspace.counters;
    launch.offsets = matrix_->offsets();
    launch.sources = matrix_->indices.data();
    launch.codes = codes.bytes;
    launch.code_stride = codes.stride;
    launch.width = width();
    AggregateResult out;
    out.rows = out.all_rows = options_.rows;
    out.cols = options_.cols;
    if (finishes_in_registers(options_)) {
      out.result = result(inputs, outputs);
      add_own(options_, codes, out.result.finish);
      if (is_plain(out.result)) {
        return function_.launch_plain(launch, plain_bytes(out.result, options_.cols), stream);
      }
      if (options_.output == BitOutput::rows) out.all_rows = outputs.codes.padded_rows;
      return function_.launch(launch, out, stream);
    }
    const Sums sums = sums_in(outputs, workspace);
    out.result.kind = BitResultKind::sums;
    out.result.sums = sums.data;
    out.result.stride = sums.stride;
    function_.launch(launch, out, stream);
    finish(inputs, outputs, stream, workspace, codes);
  }

 private:
  std::int64_t width() const { return padded_bytes(options_.cols); }

  const ByteRowsFunction& function_;
  std::shared_ptr<const cuda::DeviceRows> matrix_;
  ScheduledRows rows_;
  WorkspacePart<std::uint8_t> codes_;
  WorkspacePart<std::int32_t> slots_;
};

std::string why_not(const BitProblem& problem) {
  if (problem.options.b_bits > 8) return "more than 8 bits";
  return why_not_on_gpu(problem);
}

template <const auto& functions>
BitKernel kernel_of(const char* name, const char* description) {
  return {{name, description, "bit_aggregate", DeviceKind::cuda, true},
          why_not,
          [](const BitProblem& problem) {
            const ByteRowsFunction& function = function_for(functions, problem.options.cols);
            return predict_bit_rows_us(problem, policy_of(function, problem),
                                       device_traits(problem.options.device));
          },
          [](const BitProblem& problem) -> std::unique_ptr<const PreparedBits> {
            return std::make_unique<CudaByteRows>(problem, functions);
          }};
}

}  // namespace

void append_cuda_byte_rows(std::vector<BitKernel>& table) {
  table.push_back(kernel_of<byte_rows_of_16>(
      "bit_aggregate/cuda/rows",
      "codes as bytes, sums by rows in registers, lanes of 16 columns that finish them"));
  table.push_back(kernel_of<byte_rows_of_8>(
      "bit_aggregate/cuda/rows_narrow",
      "codes as bytes, sums by rows in registers, lanes of 8 columns that finish them"));
}

}  // namespace tessera::ops
