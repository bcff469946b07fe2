// SPDX-License-Identifier: Apache-2.0
#include "tiles/cuda/survey.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/cuda_handles.hpp"
#include "core/parts_clock.hpp"
#include "cuda/array.hpp"
#include "cuda/pinned.hpp"
#include "cuda/rows.hpp"
#include "cuda/symmetry.hpp"
#include "graph/access.hpp"
#include "graph/degrees.hpp"
#include "graph/weight_sizes.hpp"

namespace tessera::tiles {
namespace {

using detail::GraphAccess;

constexpr const char* rows_key = "survey of rows";
constexpr const char* columns_key = "survey of columns";

bool is_known(const Graph& graph, const std::string& key) {
  return GraphAccess::known(graph, key) != nullptr;
}

void mark_known(const Graph& graph, const char* key) {
  GraphAccess::know(graph, key, std::make_shared<int>());
}

SurveyedRows surveyed(const cuda::DeviceRows& rows) {
  return {rows.num_rows, rows.num_cols, rows.offsets(), rows.indices.data()};
}

/// The weights of a graph whose sizes nobody knows yet.
class UnknownWeights {
 public:
  UnknownWeights(const Graph& graph, const Place& place) {
    std::size_t i = 0;
    for (const PlacedArray<float>* const array :
         {&GraphAccess::values(graph), &GraphAccess::row_scale(graph),
          &GraphAccess::col_scale(graph)}) {
      const std::size_t number = i++;
      if (array->empty() || array->device() != place.device) continue;
      SharedArray<float> numbers = array->there(place.stream);
      const bool same = number > 0 && numbers.data() == there_[number - 1].numbers;
      if (same || is_known(graph, weight_sizes_key(numbers.data()))) continue;
      there_[number] = {numbers.data(), numbers.size()};
      kept_.push_back(std::move(numbers));
    }
  }

  bool any() const noexcept { return !kept_.empty(); }
  const std::array<SurveyedWeights, num_weights>& there() const noexcept { return there_; }

  void know(const Graph& graph, const SurveyReport& report) const {
    for (std::size_t i = 0; i < num_weights; ++i) {
      if (there_[i].count == 0) continue;
      GraphAccess::know(graph, weight_sizes_key(there_[i].numbers),
                        std::make_shared<SizeRange>(report.weights[i].bits().range()),
                        Keeping::for_users);
    }
  }

 private:
  std::array<SurveyedWeights, num_weights> there_;
  std::vector<SharedArray<float>> kept_;
};

/// The columns of a graph on their way to being known.
class Columns {
 public:
  Columns(const Graph& graph, const cuda::DeviceRows& rows, const Place& place)
      : kept_(cuda::cached_columns(graph, place)) {
    if (kept_ == nullptr) made_ = cuda::transposed_rows(rows, place);
  }

  const cuda::DeviceRows& rows() const noexcept { return kept_ != nullptr ? *kept_ : made_; }

  std::size_t offset_bytes() const {
    return checked_bytes(rows().narrow_offsets.size(), sizeof(std::int32_t)) +
           checked_bytes(rows().wide_offsets.size(), sizeof(EdgeOffset));
  }
  void bring(cuda::PinnedMemory& memory) {
    if (kept_ != nullptr) return;
    const bool narrow = !made_.narrow_offsets.empty();
    const void* const there = narrow ? static_cast<const void*>(made_.narrow_offsets.data())
                                     : static_cast<const void*>(made_.wide_offsets.data());
    here_ = memory.bring(there, offset_bytes());
  }

  /// When all have come.
  void know(const Graph& graph, bool as_rows, const Place& place) {
    if (kept_ != nullptr) return;
    made_.host_offsets = as_rows ? graph.row_offsets() : brought_offsets();
    cuda::keep_columns(graph, std::move(made_), place);
  }

 private:
  SharedArray<EdgeOffset> brought_offsets() const {
    const std::int64_t count = std::int64_t{made_.num_rows} + 1;
    Buffer<EdgeOffset> offsets(count);
    if (!made_.narrow_offsets.empty()) {
      const auto* const narrow = static_cast<const std::int32_t*>(here_);
      for (std::int64_t i = 0; i < count; ++i) offsets[i] = narrow[i];
    } else {
      const auto* const wide = static_cast<const EdgeOffset*>(here_);
      for (std::int64_t i = 0; i < count; ++i) offsets[i] = wide[i];
    }
    return offsets;
  }

  std::shared_ptr<const cuda::DeviceRows> kept_;
  cuda::DeviceRows made_;
  const void* here_ = nullptr;
};

/// Graphs up to this size have all their windows counted, so that tiles are made without another
/// wait. Looking at all of larger ones, for tiles that nobody may want, takes longer than a wait.
constexpr EdgeOffset most_counted_edges = 1 << 21;
constexpr VertexId most_counted_rows = 1 << 21;

/// The columns of all windows on their way to being known, behind the report.
class AllWindows {
 public:
  AllWindows(const std::array<SurveyedRows, 2>& sides, EdgeOffset num_edges, bool short_windows)
      : least_height_(short_windows ? 1 : 64) {
    for (std::size_t side = 0; side < sides.size(); ++side) {
      const VertexId rows = sides[side].num_rows;
      const bool few = num_edges <= most_counted_edges && rows <= most_counted_rows;
      num_rows_[side] = few ? rows : 0;
    }
    for_kinds([&](std::size_t, std::size_t, std::int64_t windows) { total_ += windows; });
  }

  std::size_t bytes() const { return checked_bytes(total_, sizeof(std::int32_t)); }

  /// Where the columns of each window go, if they begin there.
  WindowColumnCounts places(std::int32_t* there) const {
    WindowColumnCounts counts{};
    for_kinds([&](std::size_t side, std::size_t kind, std::int64_t windows) {
      counts[side][kind] = there;
      there += windows;
    });
    return counts;
  }

  /// When all have come, to `here`.
  void know(const Graph& graph, const SurveyReport& report, const std::int32_t* here) const {
    for_kinds([&](std::size_t side, std::size_t kind, std::int64_t windows) {
      know_window_counts(
          graph, sampled_windows[kind], side == 0 ? Side::forward : Side::transposed,
          {{here, here + windows}, static_cast<EdgeOffset>(report.dense_edges[side][kind])});
      here += windows;
    });
  }

 private:
  template <class Body>
  void for_kinds(Body&& body) const {
    for (std::size_t side = 0; side < num_rows_.size(); ++side) {
      if (num_rows_[side] == 0) continue;
      for (std::size_t kind = 0; kind < sampled_windows.size(); ++kind) {
        const int height = sampled_windows[kind].height;
        if (height < least_height_) continue;
        body(side, kind, (std::int64_t{num_rows_[side]} + height - 1) / height);
      }
    }
  }

  int least_height_;
  std::array<VertexId, 2> num_rows_{};  ///< 0: not counted
  std::int64_t total_ = 0;
};

void know_samples(const Graph& graph, Side side, std::span<const EdgeOffset> offsets,
                  VertexId num_cols, const SurveyReport& report) {
  const std::size_t number = side == Side::forward ? 0 : 1;
  const SurveyReport::Sums* const sums = report.windows[number];
  const auto num_rows = static_cast<std::int64_t>(offsets.size()) - 1;
  const std::int64_t windows = (num_rows + chosen_windows.height - 1) / chosen_windows.height;
  const std::int32_t* const columns = report.sampled_columns[number];
  know_sampled_columns(graph, side, {columns, columns + std::min(windows, most_sampled)});
  for (std::size_t i = 0; i < sampled_windows.size(); ++i) {
    const WindowSums found{static_cast<std::int64_t>(sums[i].edges),
                           static_cast<std::int64_t>(sums[i].columns),
                           static_cast<std::int64_t>(sums[i].dense_edges)};
    know_sample(graph, sampled_windows[i], side,
                estimate(found, offsets, num_cols, sampled_windows[i].height));
  }
}

}  // namespace

void survey_on_device(const Graph& graph, bool both_sides, bool short_windows, const Place& place) {
  const TimedPart part("surveying");
  const bool of_rows = !is_known(graph, rows_key);
  const bool of_columns = both_sides && !is_known(graph, columns_key);
  const UnknownWeights weights(graph, place);
  if (!of_rows && !of_columns && !weights.any()) return;

  const cuda_backend::CurrentDevice current(place.device.index);
  const auto rows = cuda::device_rows(graph, place);
  std::unique_ptr<Columns> columns;
  if (of_columns) columns = std::make_unique<Columns>(graph, *rows, place);
  const std::array<SurveyedRows, 2> sides = {
      of_rows ? surveyed(*rows) : SurveyedRows{},
      of_columns ? surveyed(columns->rows()) : SurveyedRows{}};
  const AllWindows windows(sides, graph.num_edges(), short_windows);
  // The report and, behind it, the columns of windows: one allocation and one copy.
  Buffer<SurveyReport> there(
      1 + static_cast<std::int64_t>((windows.bytes() + sizeof(SurveyReport) - 1) /
                                    sizeof(SurveyReport)),
      place);
  SurveyReport* const report = there.data();
  fill_zero(report, sizeof(SurveyReport), place.device, place.stream);
  if (weights.any()) find_sizes(weights.there(), report, place.stream);
  count_windows(sides, windows.places(reinterpret_cast<std::int32_t*>(report + 1)), report,
                place.stream);
  const bool has_hubs = of_rows && graph.is_square() && graph.num_edges() > 0;
  if (has_hubs) count_hub_windows(sides[0], graph.num_edges(), report, place.stream);
  const bool compares = of_columns && graph.is_square();
  if (compares) {
    compare_sides({surveyed(*rows), surveyed(columns->rows())}, graph.num_edges(), report,
                  place.stream);
  }
  const std::size_t bytes = sizeof(SurveyReport) + windows.bytes();
  cuda::PinnedMemory memory(bytes + (of_columns ? columns->offset_bytes() : 0), place);
  const auto* const found = static_cast<const SurveyReport*>(memory.bring(report, bytes));
  if (of_columns) columns->bring(memory);
  row_degrees(graph);  // everybody asks for them, and the GPU works meanwhile
  memory.wait();

  weights.know(graph, *found);
  windows.know(graph, *found, reinterpret_cast<const std::int32_t*>(found + 1));
  if (of_rows) {
    know_samples(graph, Side::forward, graph.row_offsets().span(), graph.num_cols(), *found);
    if (has_hubs) {
      know_hub_windows(graph, {found->hub_windows, found->hub_windows + sampled_hubs});
    }
    mark_known(graph, rows_key);
  }
  const bool symmetric = compares && found->sides_differ == 0;
  if (compares) cuda::know_symmetry(graph, symmetric);
  if (of_columns) {
    columns->know(graph, symmetric, place);
    know_samples(graph, Side::transposed, GraphAccess::col_offsets(graph).span(), graph.num_rows(),
                 *found);
    mark_known(graph, columns_key);
  }
}

}  // namespace tessera::tiles
