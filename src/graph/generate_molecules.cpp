// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/graph/generate.hpp"

#include "tessera/core/parallel.hpp"

#include "graph/draw.hpp"

namespace tessera::generate {
namespace {

constexpr const char* model = "molecules";
constexpr std::int32_t max_bonds = 4;
constexpr std::int64_t grain = 256;

void check(const Molecules& parameters) {
  const auto& [graphs, mean_vertices, mean_degree, seed] = parameters;
  constexpr std::int64_t most = std::numeric_limits<VertexId>::max();
  require(graphs >= 0 && graphs <= most, model, fmt::format("{} graphs", graphs),
          fmt::format("use 0 to {}", most));
  require(mean_vertices >= 1 && mean_vertices <= 1e6, model,
          fmt::format("{} vertices a graph", mean_vertices), "use 1 to 1e6");
  require(mean_degree >= 0 && mean_degree <= 3, model, fmt::format("mean degree {}", mean_degree),
          "use 0 to 3");
  require(
      static_cast<double>(graphs) * mean_vertices * 1.5 < static_cast<double>(most), model,
      fmt::format("{} graphs of {} vertices are more than 32 bits number", graphs, mean_vertices),
      "use fewer or smaller graphs");
}

/// From half to one and a half times the mean, evenly.
std::int64_t num_atoms(double mean, const Random& random, std::uint64_t molecule) {
  DrawSequence draws(random, molecule);
  const double size = mean * (0.5 + draws.uniform());
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(size + draws.uniform()));
}

struct Atom {
  std::array<VertexId, max_bonds> bonds;
  std::int32_t num_bonds;
};

/// Grows one molecule in place. Atoms are numbered along the chain, side chains in between; the
/// numbers of bonds lie in `first` … so that they are ready for the union.
class Molecule {
 public:
  Molecule(std::span<Atom> atoms, VertexId first, DrawSequence draws)
      : atoms_(atoms), first_(first), draws_(draws), parents_(atoms.size()) {
    for (Atom& atom : atoms_) atom.num_bonds = 0;
  }

  void grow_tree() {
    constexpr double branching = 0.25;
    constexpr VertexId reach = 6;
    for (VertexId atom = 1; atom < size(); ++atom) {
      // The newest atom always has room: it has at most one bond.
      VertexId parent = atom - 1;
      if (draws_.uniform() < branching) {
        const VertexId branch_point = atom - 1 - draws_.below(std::min(reach, atom));
        if (has_room(branch_point)) parent = branch_point;
      }
      parents_[index(atom)] = parent;
      bond(atom, parent);
    }
  }

  /// Adds `count` bonds that each close a ring, of six or five atoms where there are such, while
  /// there is room.
  void close_rings(std::int64_t count) {
    for (; count > 0; --count) {
      const int wanted = draws_.uniform() < 0.7 ? 6 : 5;
      bool closed = false;
      for (const int length : {wanted, 11 - wanted, 7, 4, 3}) {
        if ((closed = close_ring(length))) break;
      }
      if (!closed) return;
    }
  }

 private:
  static std::size_t index(VertexId atom) { return static_cast<std::size_t>(atom); }
  VertexId size() const { return static_cast<VertexId>(atoms_.size()); }
  bool has_room(VertexId atom) const { return atoms_[index(atom)].num_bonds < max_bonds; }

  bool are_bonded(VertexId a, VertexId b) const {
    const Atom& atom = atoms_[index(a)];
    const auto* const end = atom.bonds.data() + atom.num_bonds;
    return std::find(atom.bonds.data(), end, first_ + b) != end;
  }

  void bond(VertexId a, VertexId b) {
    for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
      Atom& atom = atoms_[index(from)];
      atom.bonds[index(atom.num_bonds++)] = first_ + to;
    }
  }

  /// Bonds some atom to its ancestor `length` - 1 steps up the tree; the search starts anywhere.
  bool close_ring(int length) {
    const VertexId start = draws_.below(size());
    for (VertexId i = 0; i < size(); ++i) {
      const VertexId atom = start + i < size() ? start + i : start + i - size();
      VertexId ancestor = atom;
      int steps = 0;
      for (; steps < length - 1 && ancestor > 0; ++steps) ancestor = parents_[index(ancestor)];
      if (steps == length - 1 && has_room(atom) && has_room(ancestor) &&
          !are_bonded(atom, ancestor)) {
        bond(atom, ancestor);
        return true;
      }
    }
    return false;
  }

  std::span<Atom> atoms_;
  VertexId first_;
  DrawSequence draws_;
  std::vector<VertexId> parents_;
};

/// Rings that bring a molecule to the wanted mean degree, rounded up or down at random.
std::int64_t num_rings(std::int64_t atoms, double mean_degree, DrawSequence& draws) {
  const double bonds = mean_degree * static_cast<double>(atoms) / 2;
  const double rings = bonds - static_cast<double>(atoms - 1) + draws.uniform();
  return static_cast<std::int64_t>(std::max(rings, 0.0));
}

Graph graph_of_atoms(std::span<Atom> atoms) {
  const auto vertices = static_cast<VertexId>(atoms.size());
  const std::int64_t row_grain = even_grain(vertices);
  Buffer<EdgeOffset> offsets(std::int64_t{vertices} + 1);
  parallel_for(vertices, row_grain,
               [&](std::int64_t v) { offsets[v] = atoms[static_cast<std::size_t>(v)].num_bonds; });
  offsets[vertices] = 0;
  const EdgeOffset edges = exclusive_scan(std::span<EdgeOffset>(offsets.span()));
  Buffer<VertexId> columns(edges);
  parallel_for(vertices, row_grain, [&](std::int64_t v) {
    Atom& atom = atoms[static_cast<std::size_t>(v)];
    VertexId* const bonds = atom.bonds.data();
    std::sort(bonds, bonds + atom.num_bonds);
    std::copy_n(bonds, atom.num_bonds, columns.data() + offsets[v]);
  });
  return Graph(vertices, vertices, std::move(offsets), std::move(columns));
}

}  // namespace

MoleculeUnion build(const Molecules& parameters, const Progress& progress) {
  check(parameters);
  const auto& [graphs, mean_vertices, mean_degree, seed] = parameters;
  report(progress, "growing molecules", 0, graphs);
  const Random size_random(seed, draw_sizes);
  std::vector<std::int64_t> starts(static_cast<std::size_t>(graphs) + 1);
  parallel_for(graphs, grain, [&](std::int64_t g) {
    const auto molecule = static_cast<std::size_t>(g);
    starts[molecule] = num_atoms(parameters.mean_vertices, size_random, molecule);
  });
  const std::int64_t vertices = exclusive_scan(std::span<std::int64_t>(starts));

  Buffer<Atom> atoms(vertices);
  MoleculeUnion result{Graph(), std::vector<std::int32_t>(static_cast<std::size_t>(vertices))};
  const Random random(seed, draw_molecules);
  parallel_for(graphs, grain, [&](std::int64_t g) {
    const auto id = static_cast<std::size_t>(g);
    const std::int64_t start = starts[id];
    const std::int64_t size = starts[id + 1] - start;
    DrawSequence draws(random, id);
    const std::int64_t rings = num_rings(size, parameters.mean_degree, draws);
    Molecule molecule({atoms.data() + start, static_cast<std::size_t>(size)},
                      static_cast<VertexId>(start), draws);
    molecule.grow_tree();
    molecule.close_rings(rings);
    std::fill_n(result.graph_ids.begin() + start, size, static_cast<std::int32_t>(g));
  });
  result.graph = graph_of_atoms(atoms.span());
  report(progress, "growing molecules", graphs, graphs);
  return result;
}

}  // namespace tessera::generate
