// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/tall/launch.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cuda/wgmma_device.hpp"
#include "ops/cuda/cuda_kernel.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/sddmm/cuda/cost.hpp"
#include "ops/sddmm/cuda/kernels.hpp"
#include "tiles/cuda/dot_tiles.hpp"
#include "tiles/dot_tiles.hpp"

namespace tessera::ops {
namespace {

const TallDotsFunction& function_of(const SddmmProblem& problem) {
  const auto kernels = kernels_of<TallDotsKernels>(problem.precision);
  const auto bytes =
      std::lower_bound(tall_dot_bytes.begin(), tall_dot_bytes.end() - 1, head_bytes(problem));
  return kernels[static_cast<std::size_t>(bytes - tall_dot_bytes.begin())];
}

/// Dot products on tiles. Operands lie on 16-byte boundaries.
class CudaTallDots final : public PreparedSddmm {
 public:
  explicit CudaTallDots(const SddmmProblem& problem)
      : tiles_(tiles::device_dot_tiles(problem.graph, tiles::Side::forward, problem.place())),
        function_(function_of(problem)) {
    const std::int64_t heads = std::max<std::int64_t>(1, problem.heads);
    const std::int64_t workers = std::max<std::int64_t>(1, function_.resident_blocks() / heads);
    const TallDotRuns runs = share_tall_dots(problem.graph, static_cast<int>(tiles_->tiles.size()),
                                             static_cast<int>(workers));
    launch_.tiles = tiles_->tiles.data();
    launch_.codes = tiles_->codes.data();
    launch_.num_tiles = static_cast<int>(tiles_->tiles.size());
    launch_.run_shift = runs.shift;
    launch_.num_workers = runs.workers;
    launch_.num_rows = problem.graph.num_rows();
    launch_.width = static_cast<std::int32_t>(problem.features / problem.heads);
    launch_.heads = static_cast<std::int32_t>(problem.heads);
  }

  void run(const ConstOperand& u, const ConstOperand& v, const Operand& edges,
           Stream stream) const override {
    TallDotsLaunch launch = launch_;
    launch.u = u.data;
    launch.u_stride = u.stride;
    launch.v = v.data;
    launch.v_stride = v.stride;
    launch.edges = edges.data;
    launch.edges_stride = static_cast<std::int32_t>(edges.stride);
    function_.launch(launch, stream);
  }

 private:
  std::shared_ptr<const tiles::DeviceDotTiles> tiles_;
  const TallDotsFunction& function_;
  TallDotsLaunch launch_;
};

std::string why_not(const SddmmProblem& problem) {
  if (std::string reason = why_not_on_tiles(problem); !reason.empty()) return reason;
  if (head_bytes(problem) > max_dot_stride) return "rows too long";
  const int products_a_step = bytes_per_element(problem.precision) == 4 ? 3 : 1;
  if (products_a_step * head_bytes(problem) / 32 > max_tall_dot_products) {
    return "rows too long for exact sums";
  }
  if (!cuda::has_wgmma(problem.device)) {
    return "needs a GPU with wgmma (compute capability 9.0)";
  }
  return tiles::why_no_dot_tiles(problem.graph);
}

}  // namespace

void append_cuda_tall_dots_kernels(std::vector<SddmmKernel>& table) {
  table.push_back(
      cuda_kernel<SddmmKernel, why_not, predict_tall_dots_us, prepared<CudaTallDots>>(windows_info(
          "sddmm", fmt::format("tiles_{}", tiles::dot_tile_height),
          fmt::format(
              "tiles of {} rows and {} columns on wgmma, a row of V gathered once for all rows",
              tiles::dot_tile_height, tiles::tile_columns),
          true)));
}

}  // namespace tessera::ops
