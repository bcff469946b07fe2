// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "ops/cuda/cuda_kernel.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/sddmm/cuda/cost.hpp"
#include "ops/sddmm/cuda/kernels.hpp"
#include "ops/sddmm/cuda/lists/launch.hpp"
#include "ops/sddmm/cuda/lists/list.hpp"

namespace tessera::ops {
namespace {

/// Edges of a block, in whole tiles.
std::int64_t share_of(std::int64_t num_edges, const DeviceTraits& traits) {
  const std::int64_t tiles = (num_edges + list_tile - 1) / list_tile;
  const std::int64_t blocks = traits.processors;
  return std::max<std::int64_t>(1, (tiles + blocks - 1) / blocks) * list_tile;
}

/// Operands lie on 16-byte boundaries.
class CudaListedDots final : public PreparedSddmm {
 public:
  CudaListedDots(const SddmmProblem& problem, const ListPolicy& policy)
      : function_(kernels_of<ListKernel>(problem.precision)),
        list_(device_list(problem.graph, policy.order, problem.place())),
        keeps_sources_(policy.order == ListOrder::panels) {
    launch_.kept.vertices = list_->kept.data();
    launch_.gathered.vertices = list_->gathered.data();
    launch_.places = list_->places.empty() ? nullptr : list_->places.data();
    launch_.num_edges = static_cast<int>(problem.graph.num_edges());
    launch_.share =
        static_cast<int>(share_of(problem.graph.num_edges(), device_traits(problem.device)));
    launch_.row_bytes = static_cast<std::uint32_t>(head_bytes(problem));
  }

  void run(const ConstOperand& u, const ConstOperand& v, const Operand& edges,
           Stream stream) const override {
    ListLaunch launch = launch_;
    const ConstOperand& kept = keeps_sources_ ? v : u;
    const ConstOperand& gathered = keeps_sources_ ? u : v;
    launch.kept.features = kept.data;
    launch.kept.stride = kept.stride;
    launch.gathered.features = gathered.data;
    launch.gathered.stride = gathered.stride;
    launch.edges = edges.data;
    launch.edges_stride = edges.stride;
    function_(launch, stream);
  }

 private:
  ListFunction function_;
  std::shared_ptr<const DeviceList> list_;
  bool keeps_sources_;
  ListLaunch launch_;
};

std::string why_not(const SddmmProblem& problem, const ListPolicy& policy) {
  if (std::string reason = why_not_on_tiles(problem); !reason.empty()) return reason;
  if (problem.heads != 1) return "one head only";
  if (head_bytes(problem) % list_line_bytes != 0) {
    return fmt::format("rows of whole {} bytes only", list_line_bytes);
  }
  if (problem.graph.num_edges() > most_listed) return "more than 2^30 edges";
  if (policy.order == ListOrder::hubs &&
      std::max(problem.graph.num_rows(), problem.graph.num_cols()) > most_hubs) {
    return "more than 2^23 vertices";
  }
  return {};
}

}  // namespace

void append_cuda_list_kernels(std::vector<SddmmKernel>& table) {
  append_kernels<why_not, predict_list_us, prepared<CudaListedDots>, list_policies>(
      table,
      [](const ListPolicy& policy) { return cuda_info("sddmm", policy.name, policy.description); });
}

}  // namespace tessera::ops
