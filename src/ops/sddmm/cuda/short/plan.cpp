// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/short/launch.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cuda/array.hpp"
#include "ops/cuda/boundaries.hpp"
#include "ops/cuda/cuda_kernel.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/sddmm/cuda/cost.hpp"
#include "ops/sddmm/cuda/kernels.hpp"
#include "tiles/cuda/dot_steps.hpp"

namespace tessera::ops {
namespace {

const ShortDotsFunction& function_of(const SddmmProblem& problem, bool direct) {
  const ShortDotsKey key = {stored_as(problem.precision), direct};
  const auto kernels = kernels_of<flagged_keys<ShortDotsKey>, ShortDotsKernels>(key);
  const auto bytes =
      std::find(short_dot_bytes.begin(), short_dot_bytes.end() - 1, head_bytes(problem));
  return kernels[static_cast<std::size_t>(bytes - short_dot_bytes.begin())];
}

/// Dot products in windows of 16 rows. Operands lie on 16-byte boundaries.
class CudaShortDots final : public PreparedSddmm {
 public:
  CudaShortDots(const SddmmProblem& problem, bool direct)
      : function_(function_of(problem, direct)),
        tiles_(tiles::device_tiles(problem.graph, {tiles::dot_step_rows, tiles::Side::forward, 1},
                                   problem.place())),
        steps_(tiles::device_dot_steps(problem.graph,
                                       dot_run_steps(problem, device_traits(problem.device)),
                                       tiles::Side::forward, problem.place())) {
    const std::int64_t blocks = function_.resident_blocks() / problem.heads;
    const auto num_runs = std::ssize(steps_->host_runs);
    launch_.num_blocks =
        static_cast<std::int32_t>(std::min(std::max<std::int64_t>(1, blocks), num_runs));
    const std::vector<std::int32_t> offsets =
        tiles::share_runs(steps_->host_runs, launch_.num_blocks);
    block_offsets_ = cuda::to_device(offsets, problem.place());
    launch_.block_offsets = block_offsets_.data();
    launch_.runs = steps_->runs.data();
    launch_.num_runs = static_cast<std::int32_t>(num_runs);
    launch_.places = steps_->places.data();
    launch_.columns = tiles_->columns.data();
    launch_.masks = steps_->masks.data();
    launch_.num_rows = problem.graph.num_rows();
    launch_.row_bytes = static_cast<std::uint32_t>(head_bytes(problem));
    launch_.heads = static_cast<std::int32_t>(problem.heads);
  }

  void run(const ConstOperand& u, const ConstOperand& v, const Operand& edges,
           Stream stream) const override {
    ShortDotsLaunch launch = launch_;
    launch.u = u.data;
    launch.u_stride = stride_of(u);
    launch.v = v.data;
    launch.v_stride = stride_of(v);
    launch.edges = edges.data;
    launch.edge_stride = stride_of(edges);
    function_.launch(launch, stream);
  }

 private:
  static std::uint32_t stride_of(const ConstOperand& operand) {
    return static_cast<std::uint32_t>(stride_bytes(operand));
  }

  const ShortDotsFunction& function_;
  std::shared_ptr<const tiles::DeviceTiles> tiles_;  ///< first: the steps are made of them
  std::shared_ptr<const tiles::DeviceDotSteps> steps_;
  Buffer<std::int32_t> block_offsets_;
  ShortDotsLaunch launch_;
};

std::string why_not(const SddmmProblem& problem) {
  if (std::string reason = why_not_on_tiles(problem); !reason.empty()) return reason;
  if (head_bytes(problem) > max_short_dot_bytes) return "rows too long for exact sums";
  if (problem.graph.num_edges() > std::numeric_limits<std::uint32_t>::max()) {
    return "more than 2^32 edges";
  }
  if (problem.graph.num_rows() > max_short_dot_rows) return "more than 2^31 - 16 rows";
  return {};
}

/// Whether results are stored one by one.
constexpr std::array<bool, 2> stores_directly = {false, true};

}  // namespace

void append_cuda_short_dots_kernels(std::vector<SddmmKernel>& table) {
  append_kernels<why_not, predict_short_dots_us, prepared<CudaShortDots>, stores_directly>(
      table, [](bool direct) {
        return windows_info(
            "sddmm", fmt::format("short_{}{}", tiles::dot_step_rows, direct ? "_direct" : ""),
            fmt::format(
                "windows of {} rows on mma.sync, rows of both ends from memory to registers{}",
                tiles::dot_step_rows, direct ? ", results stored one by one" : ""),
            true);
      });
}

}  // namespace tessera::ops
