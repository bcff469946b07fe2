// SPDX-License-Identifier: Apache-2.0
#include "tiles/pieces.hpp"

#include <algorithm>
#include <functional>
#include <limits>
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

/// Costs are told apart up to this one: a piece that costs more fills many workers' shares anyhow.
constexpr std::int64_t most_told_apart = 4095;

/// Some pieces, those of larger costs first; of the same cost in their order.
class LargestFirst {
 public:
  explicit LargestFirst(std::int64_t largest)
      : last_(std::min(largest, most_told_apart)), begins_(at(last_ + 2)) {}

  template <class Taken>
  void append(const std::vector<Piece>& pieces, std::int64_t begin, std::int64_t end, Taken&& taken,
              std::vector<std::int32_t>& order) {
    std::fill(begins_.begin(), begins_.end(), 0);
    for (std::int64_t i = begin; i < end; ++i) {
      if (taken(pieces[at(i)])) ++begins_[at(rank(pieces[at(i)]) + 1)];
    }
    begins_[0] = static_cast<std::int32_t>(order.size());
    for (std::size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
    order.resize(static_cast<std::size_t>(begins_.back()));
    for (std::int64_t i = begin; i < end; ++i) {
      if (!taken(pieces[at(i)])) continue;
      order[static_cast<std::size_t>(begins_[at(rank(pieces[at(i)]))]++)] =
          static_cast<std::int32_t>(i);
    }
  }

 private:
  std::int64_t rank(const Piece& piece) const { return last_ - std::min(cost_of(piece), last_); }

  std::int64_t last_;
  std::vector<std::int32_t> begins_;  ///< of each rank in the order
};

/// Gives pieces to whoever has least to do; of several, to whoever has had that longest. Workers of
/// about the same load stand in a queue: no load is further from the least one than the largest
/// cost, so that a round of queues is enough.
class LeastBusy {
 public:
  LeastBusy(int workers, std::int64_t largest)
      : unit_(std::max<std::int64_t>(1, largest / most_told_apart)),
        queues_(at(largest / unit_ + 2)),
        behind_(static_cast<std::size_t>(workers), nobody),
        loads_(static_cast<std::size_t>(workers), 0) {
    for (int worker = 0; worker < workers; ++worker) line_up(worker);
  }

  int take(std::int64_t cost) {
    while (queue(least_).first == nobody) ++least_;
    const int worker = queue(least_).first;
    queue(least_).first = behind_[at(worker)];
    loads_[at(worker)] += cost;
    line_up(worker);
    return worker;
  }

 private:
  static constexpr int nobody = -1;
  struct Queue {
    int first = nobody, last = nobody;
  };

  Queue& queue(std::int64_t number) { return queues_[at(number) % queues_.size()]; }
  void line_up(int worker) {
    Queue& of_load = queue(loads_[at(worker)] / unit_);
    (of_load.first == nobody ? of_load.first : behind_[at(of_load.last)]) = worker;
    of_load.last = worker;
    behind_[at(worker)] = nobody;
  }

  std::int64_t unit_;  ///< loads of a queue
  std::int64_t least_ = 0;
  std::vector<Queue> queues_;
  std::vector<int> behind_;  ///< each worker, who is next
  std::vector<std::int64_t> loads_;
};

/// Each piece to whoever has least to do: first those that are a good part of a share, then the
/// others, one stretch of the graph after another, so that windows computed at the same time are
/// near each other and find each other's rows of X in the cache. Within a stretch large pieces come
/// first, so that small ones even out what is left.
void assign(int workers, PieceSchedule& schedule) {
  const std::vector<Piece>& pieces = schedule.pieces;
  const auto count = static_cast<std::int64_t>(pieces.size());
  std::int64_t total = 0, largest = 0;
  for (const Piece& piece : pieces) {
    total += cost_of(piece);
    largest = std::max(largest, cost_of(piece));
  }
  const auto is_large = [&](const Piece& piece) { return 4 * cost_of(piece) * workers > total; };
  const std::int64_t stretches =
      std::max<std::int64_t>(1, count / (stretch_pieces * std::max(1, workers)));
  LargestFirst in_order(largest);
  std::vector<std::int32_t> order;
  order.reserve(pieces.size());
  in_order.append(pieces, 0, count, is_large, order);
  const EqualParts parts(count, stretches);
  for (std::int64_t i = 0; i < stretches; ++i) {
    in_order.append(pieces, parts.begin(i), parts.begin(i + 1), std::not_fn(is_large), order);
  }
  LeastBusy deal(workers, largest);
  std::vector<std::int32_t> worker_of;
  worker_of.reserve(pieces.size());
  schedule.worker_offsets.assign(static_cast<std::size_t>(workers) + 1, 0);
  for (const std::int32_t piece : order) {
    worker_of.push_back(deal.take(cost_of(pieces[at(piece)])));
    ++schedule.worker_offsets[at(worker_of.back()) + 1];
  }
  for (int i = 0; i < workers; ++i) {
    schedule.worker_offsets[at(i) + 1] += schedule.worker_offsets[at(i)];
  }
  std::vector<std::int32_t> next(schedule.worker_offsets.begin(), schedule.worker_offsets.end());
  std::vector<Piece> dealt(pieces.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    dealt[at(next[at(worker_of[i])]++)] = pieces[at(order[i])];
  }
  schedule.pieces = std::move(dealt);
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
  schedule.pieces.reserve(static_cast<std::size_t>(num_windows));
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
