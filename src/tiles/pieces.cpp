// SPDX-License-Identifier: Apache-2.0
#include "tiles/pieces.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "graph/cut.hpp"
#include "tessera/core/error.hpp"

namespace tessera::tiles {
namespace {

/// What starting and storing a piece costs, in steps.
constexpr std::int64_t piece_overhead = 4;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::int64_t cost_of(const Piece& piece) { return piece.num_steps + piece_overhead; }

/// Appends a window in as many pieces as it takes to stay within `max_steps` each.
void append_window(const WindowSteps& windows, std::int64_t window, std::int64_t max_steps,
                   Cutter& cutter, PieceSchedule& schedule) {
  const auto first_row = static_cast<VertexId>(window * windows.height);
  const auto num_rows = static_cast<std::int32_t>(
      std::min<std::int64_t>(windows.height, std::int64_t{windows.num_rows} - first_row));
  const EdgeOffset window_step = windows.step_offsets[at(window)];
  const EdgeOffset window_tile = windows.tile_offsets[at(window)];
  const EdgeOffset steps = windows.step_offsets[at(window) + 1] - window_step;
  const EdgeOffset tiles = windows.tile_offsets[at(window) + 1] - window_tile;
  // As many as the steps need, cut between tiles; a window without any is one piece, too.
  const EdgeOffset needed = EqualParts::of_at_most(steps, max_steps).count();
  const Cut cut = cutter.cut(EqualParts(tiles, std::max<EdgeOffset>(1, needed)));
  if (!cut.is_whole()) {
    schedule.cut_windows.push_back({first_row, num_rows, cut.first_slot(), cut.num_slots()});
  }
  cut.for_parts([&](const CutPart& part) {
    const EdgeOffset first_step = part.begin * windows.steps_per_tile;
    const EdgeOffset end_step = std::min(steps, part.end * windows.steps_per_tile);
    Piece piece;
    piece.first_step = static_cast<std::int32_t>(window_step + first_step);
    piece.first_tile = static_cast<std::int32_t>(window_tile + part.begin);
    piece.num_steps = static_cast<std::int32_t>(end_step - first_step);
    piece.first_row = first_row;
    piece.num_rows = num_rows;
    piece.slot = part.slot;
    schedule.pieces.push_back(piece);
  });
}

/// Pieces that a worker takes of a stretch of the graph, on average, or more.
constexpr std::int64_t stretch_pieces = 2;

/// Each piece to whoever has least to do: first those that are a good part of a share, then the
/// others, one stretch of the graph after another, so that windows computed at the same time are
/// near each other and find each other's rows of X in the cache. Within a stretch large pieces come
/// first, so that small ones even out what is left.
void assign(int workers, PieceSchedule& schedule) {
  struct Turn {
    std::int64_t stretch;
    std::int64_t cost;
    std::size_t piece;
  };
  const auto count = static_cast<std::int64_t>(schedule.pieces.size());
  std::int64_t total = 0;
  for (const Piece& piece : schedule.pieces) total += cost_of(piece);
  const std::int64_t stretches =
      std::max<std::int64_t>(1, count / (stretch_pieces * std::max(1, workers)));
  std::vector<Turn> order;
  order.reserve(schedule.pieces.size());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t cost = cost_of(schedule.pieces[at(i)]);
    order.push_back({4 * cost * workers > total ? -1 : i * stretches / count, cost, at(i)});
  }
  std::stable_sort(order.begin(), order.end(), [](const Turn& a, const Turn& b) {
    return a.stretch != b.stretch ? a.stretch < b.stretch : a.cost > b.cost;
  });
  using Load = std::pair<std::int64_t, int>;
  std::priority_queue<Load, std::vector<Load>, std::greater<Load>> loads;
  for (int worker = 0; worker < workers; ++worker) loads.push({0, worker});
  std::vector<std::vector<std::size_t>> lists(static_cast<std::size_t>(workers));
  for (const Turn& turn : order) {
    auto [load, worker] = loads.top();
    loads.pop();
    lists[static_cast<std::size_t>(worker)].push_back(turn.piece);
    loads.push({load + turn.cost, worker});
  }
  std::vector<Piece> pieces;
  pieces.reserve(schedule.pieces.size());
  schedule.worker_offsets.assign(1, 0);
  for (const auto& list : lists) {
    for (const std::size_t i : list) pieces.push_back(schedule.pieces[i]);
    schedule.worker_offsets.push_back(static_cast<std::int32_t>(pieces.size()));
  }
  schedule.pieces = std::move(pieces);
}

}  // namespace

std::vector<CutWindow> PieceSchedule::slot_windows() const {
  std::vector<CutWindow> windows;
  windows.reserve(static_cast<std::size_t>(num_slots));
  for (const CutWindow& window : cut_windows) {
    windows.insert(windows.end(), static_cast<std::size_t>(window.num_slots), window);
  }
  return windows;
}

PieceSchedule make_pieces(const TiledGraph& tiled, const PieceOptions& options) {
  return make_pieces(WindowSteps{.num_rows = tiled.num_rows,
                                 .height = tiled.height,
                                 .step_offsets = tiled.step_offsets.span(),
                                 .tile_offsets = tiled.tile_offsets.span()},
                     options);
}

PieceSchedule make_pieces(const WindowSteps& windows, const PieceOptions& options) {
  const EdgeOffset steps = windows.step_offsets.back();
  if (steps > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorCode::unsupported, std::to_string(steps) + " steps of tiles in one graph",
                "tiles", "partition the graph");
  }
  const auto num_windows = static_cast<std::int64_t>(windows.step_offsets.size()) - 1;
  const auto is_taken = [&](std::int64_t w) {
    return options.taken.empty() || options.taken[at(w)] != 0;
  };
  std::int64_t work = 0;
  for (std::int64_t w = 0; w < num_windows; ++w) {
    if (!is_taken(w)) continue;
    work += windows.step_offsets[at(w) + 1] - windows.step_offsets[at(w)] + piece_overhead;
  }
  const std::int64_t share = work / std::max(1, options.workers);
  // Large pieces go first, so that what is left over evens out shares of one such piece. Smaller
  // ones would mean more sums to add.
  const std::int64_t max_steps =
      std::min(options.max_steps, std::max(options.min_cut_steps, share));
  PieceSchedule schedule;
  Cutter cutter;
  for (std::int64_t w = 0; w < num_windows; ++w) {
    if (is_taken(w)) append_window(windows, w, max_steps, cutter, schedule);
  }
  schedule.num_slots = static_cast<std::int32_t>(cutter.num_slots());
  const auto pieces = static_cast<std::int64_t>(schedule.pieces.size());
  assign(static_cast<int>(std::min<std::int64_t>(std::max(1, options.workers), pieces)), schedule);
  return schedule;
}

}  // namespace tessera::tiles
