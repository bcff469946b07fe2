// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <span>

#include "cuda/rows.hpp"
#include "ops/bits/cuda/cost.hpp"
#include "ops/bits/cuda/kernels.hpp"
#include "ops/bits/cuda/rows/launch.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/rows/row_lists.hpp"
#include "ops/spmm/parts.hpp"
#include "tessera/core/error.hpp"

namespace tessera::ops {
namespace {

constexpr VertexId most_listed_rows = 1 << 24;

const ByteRowsFunction& function_for(std::span<const ByteRowsFunction> functions,
                                     std::int64_t cols) {
  return narrowest(functions, &ByteRowsFunction::columns, cols);
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

class CudaByteRows final : public CudaByteSums {
 public:
  CudaByteRows(const BitProblem& problem, std::span<const ByteRowsFunction> functions)
      : CudaByteSums(problem),
        function_(function_for(functions, options_.cols)),
        matrix_(cuda::device_rows(problem.graph, options_.place())) {
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

 private:
  void sum(const BitInputs&, const OwnCodes& codes, const AggregateResult& out, Stream stream,
           const WorkspaceView& workspace) const override {
    ByteRowsLaunch launch;
    launch.work = rows_.work();
    launch.work.slots = slots_.in(workspace);
    launch.work.num_done = workspace.counters;
    launch.offsets = matrix_->offsets();
    launch.sources = matrix_->indices.data();
    launch.codes = codes.bytes;
    launch.code_stride = codes.stride;
    launch.width = width();
    if (is_plain(out.result)) {
      return function_.launch_plain(launch, plain_bytes(out.result, options_.cols), stream);
    }
    function_.launch(launch, out, stream);
  }

  const ByteRowsFunction& function_;
  std::shared_ptr<const cuda::DeviceRows> matrix_;
  ScheduledRows rows_;
  WorkspacePart<std::int32_t> slots_;
};

template <const auto& functions>
double predict_us(const BitProblem& problem, const DeviceTraits& traits) {
  const ByteRowsFunction& function = function_for(functions, problem.options.cols);
  return predict_bit_rows_us(problem, policy_of(function, problem), traits);
}

template <const auto& functions>
constexpr auto byte_rows_kernel =
    cuda_kernel<BitKernel, why_not_bytes, predict_us<functions>, prepared<CudaByteRows>, functions>;

}  // namespace

void append_cuda_byte_rows(std::vector<BitKernel>& table) {
  table.push_back(byte_rows_kernel<byte_rows_of_16>(cuda_info(
      "bit_aggregate", "rows",
      "codes as bytes, sums by rows in registers, lanes of 16 columns that finish them")));
  table.push_back(byte_rows_kernel<byte_rows_of_8>(
      cuda_info("bit_aggregate", "rows_narrow",
                "codes as bytes, sums by rows in registers, lanes of 8 columns that finish them")));
}

}  // namespace tessera::ops
