// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "ops/cuda/boundaries.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/sddmm/cuda/kernels.hpp"
#include "ops/sddmm/cuda/lists/cost.hpp"
#include "ops/sddmm/cuda/lists/launch.hpp"
#include "ops/sddmm/cuda/lists/list.hpp"
#include "ops/sddmm/cuda/on_tiles.hpp"

namespace tessera::ops {
namespace {

ListFunction function_of(Precision precision, std::size_t policy) {
  return kernels_of<kernel_precisions>(
      stored_as(precision), []<Precision stored>() { return ListKernels<stored>::all(); })[policy];
}

/// Edges of a block: in whole tiles, or in whole steps of all of its groups.
std::int64_t share_of(const ListPolicy& policy, std::int64_t num_edges,
                      const DeviceTraits& traits) {
  if (policy.shares == 0) return policy.block_threads / 32 * list_tile;
  const std::int64_t unit =
      policy.ahead ? policy.block_threads / ahead_lanes * ahead_edges : list_tile;
  const std::int64_t units = (num_edges + unit - 1) / unit;
  const std::int64_t blocks = std::int64_t{traits.processors} * policy.shares;
  return std::max<std::int64_t>(1, (units + blocks - 1) / blocks) * unit;
}

/// Dot products by one policy. Operands lie on 16-byte boundaries.
class CudaListedDots final : public PreparedSddmm {
 public:
  CudaListedDots(const SddmmProblem& problem, std::size_t policy)
      : function_(function_of(problem.precision, policy)),
        list_(device_list(problem.graph, list_policies[policy].order, problem.place())),
        by_source_(list_policies[policy].order == ListOrder::panels) {
    launch_.kept.vertices = list_->kept.data();
    launch_.gathered.vertices = list_->gathered.data();
    launch_.places = list_->places.empty() ? nullptr : list_->places.data();
    launch_.num_edges = static_cast<int>(problem.graph.num_edges());
    launch_.share = static_cast<int>(
        share_of(list_policies[policy], problem.graph.num_edges(), device_traits(problem.device)));
    launch_.row_bytes = static_cast<std::uint32_t>(head_bytes(problem));
  }

  void run(const ConstOperand& u, const ConstOperand& v, const Operand& edges,
           Stream stream) const override {
    ListLaunch launch = launch_;
    const ConstOperand& kept = by_source_ ? v : u;
    const ConstOperand& gathered = by_source_ ? u : v;
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
  bool by_source_;
  ListLaunch launch_;
};

std::string why_not(const SddmmProblem& problem, const ListPolicy& policy) {
  if (std::string reason = why_not_on_tiles(problem); !reason.empty()) return reason;
  if (problem.heads != 1) return "one head only";
  if (policy.ahead && head_bytes(problem) != ahead_row_bytes) {
    return fmt::format("rows of {} bytes only", ahead_row_bytes);
  }
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

std::string name_of(const ListPolicy& policy) {
  const char* const order = policy.order == ListOrder::rows   ? "rows"
                            : policy.order == ListOrder::hubs ? "hubs"
                                                              : "panels";
  if (policy.shares == 0) return fmt::format("list_{}", order);
  return fmt::format("list_{}_{}{}", order, policy.shares, policy.ahead ? "_ahead" : "");
}

std::string description_of(const ListPolicy& policy) {
  const char* const order = policy.order == ListOrder::rows ? "listed as they lie"
                            : policy.order == ListOrder::hubs
                                ? "of rows that share sources side by side"
                                : "of 256 rows by the other end";
  if (policy.shares == 0) return fmt::format("edges {}, 16 for a warp", order);
  return fmt::format("edges {}, {} {} of them for each processor{}", order, policy.shares,
                     policy.shares == 1 ? "share" : "shares",
                     policy.ahead ? ", rows always on their way" : "");
}

template <std::size_t index>
SddmmKernel list_kernel() {
  constexpr ListPolicy policy = list_policies[index];
  SddmmKernel kernel;
  kernel.info.name = "sddmm/cuda/" + name_of(policy);
  kernel.info.description = description_of(policy);
  kernel.info.op = "sddmm";
  kernel.info.device = DeviceKind::cuda;
  kernel.why_not = [](const SddmmProblem& problem) {
    return why_not(problem, list_policies[index]);
  };
  kernel.predicted_us = [](const SddmmProblem& problem) {
    return predict_list_us(problem, list_policies[index], device_traits(problem.device));
  };
  kernel.prepare = [](const SddmmProblem& problem) -> std::unique_ptr<const PreparedSddmm> {
    return std::make_unique<CudaListedDots>(problem, index);
  };
  return kernel;
}

}  // namespace

void append_cuda_list_kernels(std::vector<SddmmKernel>& table) {
  [&]<std::size_t... i>(std::index_sequence<i...>) { (table.push_back(list_kernel<i>()), ...); }
  (std::make_index_sequence<list_policies.size()>{});
}

}  // namespace tessera::ops
