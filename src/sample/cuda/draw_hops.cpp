// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <utility>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/edge_arrays.hpp"
#include "cuda/pinned.hpp"
#include "sample/cuda/hop.hpp"
#include "sample/numbering.hpp"
#include "sample/placed.hpp"

namespace tessera::sample::on_gpu {
namespace {

/// As many edges of a hop as memory is taken for without a wait that asks how many there are.
constexpr std::int64_t most_unasked = std::int64_t{1} << 22;

/// How much there may be when a hop begins.
struct Sizes {
  std::int64_t vertices = 0;
  std::int64_t targets = 0;  ///< vertices that draw in this hop
  std::int64_t edges = 0;
};

template <class T>
void grow(Buffer<T>& array, std::int64_t size, const Place& place) {
  if (array.size() >= size) return;
  Buffer<T> larger(size, place);
  if (!array.empty()) {
    copy_bytes(larger.data(), array.data(), static_cast<std::size_t>(array.size()) * sizeof(T),
               place.device, place.stream);
  }
  array = std::move(larger);
}

/// Queues all hops of a batch. Memory is taken for what they may draw at most, as far as that is
/// little; before a hop that may draw more its edges are counted, and the host asks how many.
template <class Key>
class Drawing {
 public:
  Drawing(const Candidates& candidates, const HopOptions& options, std::span<const VertexId> seeds,
          std::uint64_t step, std::span<const std::int64_t> seed_times, const Place& place)
      : candidates_(candidates),
        options_(options),
        step_(step),
        place_(place),
        num_seeds_(std::ssize(seeds)),
        sizes_{num_seeds_, num_seeds_, 0},
        most_edges_(num_hops()),
        seed_times_(cuda::to_device(seed_times, place)),
        counts_(num_seeds_ + 1, place),
        keys_(num_seeds_, place) {
    require_room(num_seeds_);
    std::vector<std::int64_t> marks(2 * num_hops() + 3);
    marks[1] = num_seeds_;
    marks_ = cuda::to_device(marks, place);
    const Buffer<VertexId> given = cuda::to_device(seeds, place);
    begin_batch(hop_at(0), given.data(), num_seeds_, place.stream);
  }

  void draw() {
    for (std::size_t hop = 0; hop < num_hops(); ++hop) {
      cuda::exclusive_scan(counts_.data(), sizes_.targets + 1, place_);
      if (hop == reached_) reserve(hop);
      draw_hop(hop);
    }
    look_up_until(num_hops());
  }

  PlacedHops finish(bool with_host_offsets) {
    PlacedHops hops;
    hops.vertices = Buffer<VertexId>(sizes_.vertices, place_);
    hops.trees = Buffer<VertexId>(options_.disjoint ? sizes_.vertices : 0, place_);
    split_keys(keys_.data(), vertex_marks() + num_hops() + 1, sizes_.vertices, hops.vertices.data(),
               options_.disjoint ? hops.trees.data() : nullptr, place_.stream);
    const std::size_t num_offsets = with_host_offsets ? most_drawing_ + 1 : 0;
    cuda::PinnedMemory memory(
        marks_.size() * sizeof(std::int64_t) + num_offsets * sizeof(EdgeOffset), place_);
    const auto* const marks = brought_marks(memory);
    const auto* const offsets = with_host_offsets
                                    ? static_cast<const EdgeOffset*>(memory.bring(
                                          offsets_.data(), num_offsets * sizeof(EdgeOffset)))
                                    : nullptr;
    memory.wait();
    const auto hops_there = static_cast<std::ptrdiff_t>(num_hops());
    hops.vertices_until.assign(marks + 1, marks + hops_there + 2);
    hops.edges_until.assign(marks + hops_there + 2, marks + 2 * hops_there + 3);
    if (with_host_offsets) {
      hops.host_offsets.assign(offsets, offsets + hops.vertices_until[num_hops() - 1] + 1);
    }
    hops.offsets = std::move(offsets_);
    hops.sources = std::move(sources_);
    hops.targets = std::move(targets_);
    hops.candidates = std::move(drawn_);
    return hops;
  }

 private:
  std::size_t num_hops() const { return options_.fan_outs.size(); }
  /// 0, then until where vertices are numbered when each hop begins, and in the end.
  std::int64_t* vertex_marks() { return marks_.data(); }
  /// How many edges were drawn before each hop, and in the end.
  std::int64_t* edge_marks() { return marks_.data() + num_hops() + 2; }
  const std::int64_t* brought_marks(cuda::PinnedMemory& memory) {
    return static_cast<const std::int64_t*>(
        memory.bring(marks_.data(), marks_.size() * sizeof(std::int64_t)));
  }

  Hop<Key> hop_at(std::size_t number) {
    Hop<Key> hop;
    hop.lists = candidates_.lists();
    hop.rules = rules_of(options_, step_, number);
    hop.seed_times = seed_times_.empty() ? nullptr : seed_times_.data();
    hop.vertices = vertex_marks() + number;
    hop.edges = edge_marks() + number;
    hop.most_targets = sizes_.targets;
    hop.most_edges = most_edges_[number];
    hop.keys = keys_.data();
    hop.offsets = offsets_.data();
    hop.counts = counts_.data();
    hop.table = {slots_.data(), 64 - std::countr_zero(static_cast<std::uint64_t>(slots_.size()))};
    hop.candidates = drawn_.data();
    hop.targets = targets_.data();
    hop.sources = reinterpret_cast<std::uint32_t*>(sources_.data());
    return hop;
  }

  /// When a hop has drawn at most so many edges.
  Sizes after(const Sizes& sizes, std::int64_t edges) const {
    const std::int64_t all = candidates_.num_vertices();
    if (options_.disjoint) return {sizes.vertices + edges, edges, sizes.edges + edges};
    return {std::min(sizes.vertices + edges, num_seeds_ + all), std::min(edges, all),
            sizes.edges + edges};
  }

  /// What hops from this one on may draw, as far as that can be said; whether it can.
  bool foresee(std::size_t hop, Sizes& sizes) {
    const std::int64_t fan_out = options_.fan_outs[hop];
    if (fan_out < 0 || sizes.targets * fan_out > most_unasked) return false;
    most_edges_[hop] = sizes.targets * fan_out;
    sizes = after(sizes, most_edges_[hop]);
    return true;
  }

  /// Makes room for this hop, whose counts are added up, and for as many as can be foreseen.
  void reserve(std::size_t hop) {
    Sizes reached = sizes_;
    if (!foresee(hop, reached)) {
      ask_for_sizes(hop);
      reached = after(sizes_, most_edges_[hop]);
    }
    most_drawing_ = static_cast<std::size_t>(sizes_.vertices);
    for (reached_ = hop + 1; reached_ < num_hops(); ++reached_) {
      most_drawing_ = static_cast<std::size_t>(reached.vertices);
      if (!foresee(reached_, reached)) break;
    }
    require_room(reached.vertices);
    look_up_until(hop);
    grow(keys_, reached.vertices, place_);
    grow(offsets_, reached.vertices + 1, place_);
    grow(drawn_, reached.edges, place_);
    grow(targets_, reached.edges, place_);
    grow(sources_, reached.edges, place_);
    const auto slots = std::bit_ceil(static_cast<std::uint64_t>(2 * reached.vertices + 64));
    slots_ = Buffer<Slot<Key>>(static_cast<std::int64_t>(slots), place_);
    enter_vertices(hop_at(hop), sizes_.vertices, place_.stream);
  }

  /// Waits, and knows how much there is when this hop begins, and what it draws.
  void ask_for_sizes(std::size_t hop) {
    cuda::PinnedMemory memory((marks_.size() + 1) * sizeof(std::int64_t), place_);
    const auto* const marks = brought_marks(memory);
    const auto* const edges = static_cast<const EdgeOffset*>(
        memory.bring(counts_.data() + sizes_.targets, sizeof(EdgeOffset)));
    memory.wait();
    require_room(*edges);
    sizes_ = {marks[hop + 1], marks[hop + 1] - marks[hop], marks[num_hops() + 2 + hop]};
    most_edges_[hop] = *edges;
  }

  void draw_hop(std::size_t number) {
    const Hop<Key> hop = hop_at(number);
    on_gpu::draw_edges(hop, place_.stream);
    Buffer<std::int32_t> firsts(hop.most_edges + 1, place_);
    mark_firsts(hop, firsts.data(), place_.stream);
    cuda::exclusive_scan(firsts.data(), firsts.size(), place_);
    sizes_ = after(sizes_, hop.most_edges);
    const bool goes_on = number + 1 < num_hops();
    Buffer<EdgeOffset> counts(goes_on ? sizes_.targets + 1 : 0, place_);
    Hop<Key> next = hop;
    next.counts = goes_on ? counts.data() : nullptr;
    if (goes_on) next.rules = rules_of(options_, step_, number + 1);
    next.most_targets = sizes_.targets;
    append_vertices(hop, firsts.data(), next, place_.stream);
    counts_ = std::move(counts);
  }

  /// The table is made anew for later hops: edges before this one get their sources' numbers.
  void look_up_until(std::size_t hop) {
    if (hop == looked_up_) return;
    look_up(hop_at(std::min(hop, num_hops() - 1)), edge_marks() + looked_up_, edge_marks() + hop,
            sizes_.edges, place_.stream);
    looked_up_ = hop;
  }

  const Candidates& candidates_;
  const HopOptions& options_;
  std::uint64_t step_;
  Place place_;
  std::int64_t num_seeds_;
  Sizes sizes_;                           ///< when the next hop begins
  std::vector<std::int64_t> most_edges_;  ///< that hops draw, of those there is room for
  std::size_t reached_ = 0;               ///< the first hop without room
  std::size_t most_drawing_ = 0;          ///< vertices of all hops but the last that has room
  std::size_t looked_up_ = 0;             ///< the first hop whose sources are slots
  Buffer<std::int64_t> seed_times_, marks_;
  Buffer<EdgeOffset> counts_;
  Buffer<Key> keys_;
  Buffer<EdgeOffset> offsets_, drawn_;
  Buffer<VertexId> targets_, sources_;
  Buffer<Slot<Key>> slots_;
};

template <class Key>
PlacedHops drawn(Drawing<Key>&& drawing, bool with_host_offsets) {
  drawing.draw();
  return drawing.finish(with_host_offsets);
}

}  // namespace

PlacedHops draw_hops(const Candidates& candidates, const HopOptions& options,
                     std::span<const VertexId> seeds, std::uint64_t step,
                     std::span<const std::int64_t> seed_times, bool with_host_offsets,
                     const Place& place) {
  const cuda_backend::CurrentDevice current(place.device.index);
  if (options.disjoint) {
    return drawn(Drawing<std::uint64_t>(candidates, options, seeds, step, seed_times, place),
                 with_host_offsets);
  }
  return drawn(Drawing<std::uint32_t>(candidates, options, seeds, step, seed_times, place),
               with_host_offsets);
}

}  // namespace tessera::sample::on_gpu
