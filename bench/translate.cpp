// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <string>

#include "bench/inputs.hpp"
#include "bench/ops.hpp"
#include "tessera/tiles/quad_tiles.hpp"
#include "tessera/tiles/tiled_graph.hpp"
#include "tiles/prepared_translation.hpp"

namespace tessera::bench {
namespace {

/// The graph as tiles; the width of a problem is the height of its windows. Columns that fewer than
/// `min_uses` rows of a window use go to a rest.
template <int min_uses>
class Translation : public Trial {
 public:
  explicit Translation(const Problem& problem)
      : graph_(problem.graph),
        height_(static_cast<int>(problem.features)),
        device_(problem.device),
        translate_(tiles::prepared_translation(graph_, height_, tiles::Side::forward, device_,
                                               min_uses)) {}

  /// Every bit must be an edge; on a GPU every byte must be that of the CPU's translation.
  Gate check() override {
    const tiles::SplitGraph split =
        tiles::translate_dense(graph_, height_, min_uses, tiles::Side::forward, device_);
    split.dense.validate();
    bytes_ = split.dense.num_bytes();
    if (min_uses > 1) bytes_ += structure_bytes(split.rest, device_);
    const tiles::SplitGraph expected = tiles::translate_dense(graph_, height_, min_uses);
    const bool same =
        split.dense == expected.dense && split.rest == expected.rest &&
        (min_uses > 1 || tiles::to_graph(split.dense).col_indices() == graph_.col_indices());
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

/// The columns of windows in an order in which every row is 2:4.
class QuadTranslation : public Trial {
 public:
  explicit QuadTranslation(const Problem& problem)
      : graph_(problem.graph),
        height_(static_cast<int>(problem.features)),
        device_(problem.device),
        translate_(tiles::prepared_quads(graph_, height_, tiles::Side::forward, device_)) {}

  /// On a GPU every byte must be that of the CPU's order.
  Gate check() override {
    const tiles::QuadTiles quads =
        tiles::translate_quads(graph_, height_, tiles::Side::forward, device_);
    quads.validate();
    bytes_ = quads.num_bytes();
    const bool same = tiles::to_graph(quads).col_indices() == graph_.col_indices() &&
                      quads == tiles::translate_quads(graph_, height_);
    return {same ? 0.0 : 1.0, 0, graph_.num_rows(), graph_.num_rows()};
  }
  void run(Stream) override { translate_(); }
  bool only_queues() const override { return false; }
  std::int64_t bytes() const override { return structure_bytes(graph_, device_) + bytes_; }
  std::string kernel() const override {
    return device_.kind == DeviceKind::cuda ? "tiles/cuda/quads" : "tiles/cpu/quads";
  }

 private:
  Graph graph_;
  int height_;
  Device device_;
  std::function<void()> translate_;
  std::int64_t bytes_ = 0;
};

template <class Trial>
Suite suite_of(const char* name, const char* description, std::int64_t height) {
  Suite suite{name,    description,
              {},      {Precision::fp32},
              0,       [](const Problem& problem) { return std::make_unique<Trial>(problem); },
              {height}};
  suite.on_request = true;
  return suite;
}

}  // namespace

std::vector<Suite> translate_suites() {
  return {suite_of<Translation<1>>(
              "translate",
              "the graph as tiles of bits for tensor cores; features are rows of a window", 64),
          suite_of<Translation<3>>(
              "translate_split",
              "the same, columns that fewer than 3 rows of a window use set apart", 128),
          suite_of<QuadTranslation>("translate_quads",
                                    "the same, columns in an order in which every row is 2:4", 64)};
}

}  // namespace tessera::bench
