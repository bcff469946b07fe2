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

  std::int64_t least_load() { return loads_[at(next())]; }

  int take(std::int64_t cost) {
    const int worker = next();
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

  int next() {
    while (queue(least_).first == nobody) ++least_;
    return queue(least_).first;
  }
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

/// In which order pieces are dealt: first those that are a good part of a share, then the others,
/// one stretch of the graph after another, so that windows computed at the same time are near each
/// other and find each other's rows of X in the cache. Within a stretch large pieces come first, so
/// that small ones even out what is left.
std::vector<std::int32_t> dealing_order(const std::vector<Piece>& pieces, int workers) {
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
  return order;
}

/// Brings pieces together by workers, each one's in their order.
void gather(const std::vector<Piece>& pieces, const std::vector<std::int32_t>& worker_of,
            int workers, PieceSchedule& schedule) {
  schedule.worker_offsets.assign(static_cast<std::size_t>(workers) + 1, 0);
  for (const std::int32_t worker : worker_of) ++schedule.worker_offsets[at(worker) + 1];
  for (int i = 0; i < workers; ++i) {
    schedule.worker_offsets[at(i) + 1] += schedule.worker_offsets[at(i)];
  }
  std::vector<std::int32_t> next(schedule.worker_offsets.begin(), schedule.worker_offsets.end());
  std::vector<Piece> gathered(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    gathered[at(next[at(worker_of[i])]++)] = pieces[i];
  }
  schedule.pieces = std::move(gathered);
}

/// Each piece to whoever has least to do.
void assign(int workers, PieceSchedule& schedule) {
  std::int64_t largest = 0;
  for (const Piece& piece : schedule.pieces) largest = std::max(largest, cost_of(piece));
  LeastBusy deal(workers, largest);
  std::vector<Piece> dealt;
  std::vector<std::int32_t> worker_of;
  dealt.reserve(schedule.pieces.size());
  worker_of.reserve(schedule.pieces.size());
  for (const std::int32_t i : dealing_order(schedule.pieces, workers)) {
    dealt.push_back(schedule.pieces[at(i)]);
    worker_of.push_back(deal.take(cost_of(dealt.back())));
  }
  gather(dealt, worker_of, workers, schedule);
}

/// Whole windows, of which those that do not fit are cut.
class Filler {
 public:
  /// Workers are filled up to `height` steps.
  Filler(const WindowSteps& windows, const PieceOptions& options, int workers, std::int64_t height)
      : steps_per_tile_(windows.steps_per_tile),
        whole_(std::max(options.min_cut_steps, height / 4)),
        height_(height),
        workers_(workers),
        deal_(workers, height + options.min_cut_steps + least_cut + merge_overhead + slack) {}

  void reserve(std::size_t num_windows) {
    pieces_.reserve(num_windows);
    worker_of_.reserve(num_windows);
  }

  /// False where a window found no room.
  bool deal(const Piece& window) {
    if (window.num_steps <= std::max(whole_, room() + slack)) {
      put(window, 0);
      return true;
    }
    const std::int32_t first_slot = slots_;
    bool fits = true;
    for (Piece rest = window; rest.num_steps > 0;) {
      Piece piece = rest;
      const std::int64_t some = room() - merge_overhead;
      fits = fits && std::min<std::int64_t>(some, rest.num_steps) > least_cut / 2;
      piece.num_steps = static_cast<std::int32_t>(part_of(rest.num_steps, some));
      piece.slot = slots_++;
      put(piece, merge_overhead);
      rest.first_step += piece.num_steps;
      rest.first_tile += piece.num_steps / static_cast<std::int32_t>(steps_per_tile_);
      rest.num_steps -= piece.num_steps;
    }
    if (slots_ == first_slot + 1) {
      pieces_.back().slot = -1;
      --slots_;
    } else {
      cut_.push_back({window.first_row, window.num_rows, first_slot, slots_ - first_slot});
    }
    return fits;
  }

  PieceSchedule schedule() const {
    PieceSchedule schedule;
    schedule.cut_windows = cut_;
    schedule.num_slots = slots_;
    gather(pieces_, worker_of_,
           std::min<int>(workers_, 1 + *std::max_element(worker_of_.begin(), worker_of_.end())),
           schedule);
    return schedule;
  }

 private:
  /// What leaving the sums of a piece and adding up those of its window costs, in steps.
  static constexpr std::int64_t merge_overhead = 8;
  /// How much longer a worker may be busy where that saves cutting a window.
  static constexpr std::int64_t slack = 8;
  static constexpr std::int64_t least_cut = 16;

  /// Steps that whoever is next has room for.
  std::int64_t room() { return height_ - deal_.least_load() - piece_overhead; }

  /// About `some` of the steps that are left, in whole tiles, and so that neither part is short.
  std::int64_t part_of(std::int64_t steps, std::int64_t some) const {
    if (steps <= some) return steps;
    some = std::min(std::max(some, least_cut), std::max(least_cut, steps - least_cut));
    some = some / steps_per_tile_ * steps_per_tile_;
    return steps - some < steps_per_tile_ ? steps : some;
  }

  void put(const Piece& piece, std::int64_t more) {
    pieces_.push_back(piece);
    worker_of_.push_back(deal_.take(cost_of(piece) + more));
  }

  std::int64_t steps_per_tile_;
  std::int64_t whole_;  ///< windows of up to so many steps are not cut
  std::int64_t height_;
  int workers_;
  LeastBusy deal_;
  std::int32_t slots_ = 0;
  std::vector<CutWindow> cut_;
  std::vector<Piece> pieces_;
  std::vector<std::int32_t> worker_of_;
};

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

namespace {

template <class Function>
void for_taken(const WindowSteps& windows, const PieceOptions& options, Function&& function) {
  const auto num_windows = static_cast<std::int64_t>(windows.step_offsets.size()) - 1;
  for (std::int64_t w = 0; w < num_windows; ++w) {
    if (options.taken.empty() || options.taken[at(w)] != 0) function(w);
  }
}

/// Steps of all windows that are taken, with what each of them costs besides; throws where there
/// are too many.
std::int64_t work_of(const WindowSteps& windows, const PieceOptions& options) {
  const EdgeOffset steps = windows.step_offsets.back();
  if (steps > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorCode::unsupported, std::to_string(steps) + " steps of tiles in one graph",
                "tiles", "partition the graph");
  }
  std::int64_t work = 0;
  for_taken(windows, options, [&](std::int64_t w) {
    work += windows.step_offsets[at(w) + 1] - windows.step_offsets[at(w)] + piece_overhead;
  });
  return work;
}

/// Windows in pieces of at most `max_steps`, in their order.
PieceSchedule cut_pieces(const WindowSteps& windows, const PieceOptions& options,
                         std::int64_t max_steps) {
  PieceSchedule schedule;
  schedule.pieces.reserve(windows.step_offsets.size() - 1);
  Cutter cutter;
  for_taken(windows, options,
            [&](std::int64_t w) { append_window(windows, w, max_steps, cutter, schedule); });
  schedule.num_slots = static_cast<std::int32_t>(cutter.num_slots());
  return schedule;
}

}  // namespace

PieceSchedule make_pieces(const WindowSteps& windows, const PieceOptions& options) {
  const std::int64_t share = work_of(windows, options) / std::max(1, options.workers);
  // Large pieces go first, so that what is left over evens out shares of one such piece. Smaller
  // ones would mean more sums to add.
  PieceSchedule schedule = cut_pieces(
      windows, options, std::min(options.max_steps, std::max(options.min_cut_steps, share)));
  const auto pieces = static_cast<std::int64_t>(schedule.pieces.size());
  assign(static_cast<int>(std::min<std::int64_t>(std::max(1, options.workers), pieces)), schedule);
  return schedule;
}

PieceSchedule make_filled_pieces(const WindowSteps& windows, const PieceOptions& options) {
  const int workers = std::max(1, options.workers);
  const std::int64_t share = work_of(windows, options) / workers;
  if (share < options.min_cut_steps) return make_pieces(windows, options);
  const PieceSchedule whole = cut_pieces(windows, options, std::int64_t{1} << 31);
  const std::vector<std::int32_t> order = dealing_order(whole.pieces, workers);
  for (std::int64_t height = share + piece_overhead;; height += 1 + height / 32) {
    Filler filler(windows, options, workers, height);
    filler.reserve(order.size());
    const bool fits = std::all_of(order.begin(), order.end(),
                                  [&](std::int32_t i) { return filler.deal(whole.pieces[at(i)]); });
    if (fits) return filler.schedule();
  }
}

}  // namespace tessera::tiles
