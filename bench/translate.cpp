// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <string>

#include "bench/inputs.hpp"
#include "bench/ops.hpp"
#include "tessera/tiles/tiled_graph.hpp"
#include "tiles/prepared_translation.hpp"

namespace tessera::bench {
namespace {

/// The graph as tiles; the width of a problem is the height of its windows.
class Translation : public Trial {
 public:
  explicit Translation(const Problem& problem)
      : graph_(problem.graph),
        height_(static_cast<int>(problem.features)),
        device_(problem.device),
        translate_(tiles::prepared_translation(graph_, height_, tiles::Side::forward, device_)) {}

  /// Every bit must be an edge; on a GPU every byte must be that of the CPU's translation.
  Gate check() override {
    const tiles::TiledGraph tiled =
        tiles::translate(graph_, height_, tiles::Side::forward, device_);
    tiled.validate();
    bytes_ = tiled.num_bytes();
    const bool same = tiles::to_graph(tiled).col_indices() == graph_.col_indices() &&
                      tiled == tiles::translate(graph_, height_);
    return {same ? 0.0 : 1.0, 0, graph_.num_rows(), graph_.num_rows()};
  }
  void run(Stream) override { translate_(); }
  bool only_queues() const override { return false; }
  std::int64_t bytes() const override { return structure_bytes(graph_, device_) + bytes_; }
  std::string kernel() const override {
    return device_.kind == DeviceKind::cuda ? "tiles/cuda" : "tiles/cpu";
  }

 private:
  Graph graph_;
  int height_;
  Device device_;
  std::function<void()> translate_;
  std::int64_t bytes_ = 0;
};

}  // namespace

std::vector<Suite> translate_suites() {
  Suite suite{
      "translate", "the graph as tiles of bits for tensor cores; features are rows of a window",
      {},          {Precision::fp32},
      false,       [](const Problem& problem) { return std::make_unique<Translation>(problem); },
      {64}};
  suite.on_request = true;
  return {suite};
}

}  // namespace tessera::bench
