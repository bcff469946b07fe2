// SPDX-License-Identifier: Apache-2.0
// Splits of links, and metrics. There are none of them for a GPU: the package moves what they need
// to the CPU.
#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "operators.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/links/curves.hpp"
#include "tessera/links/ranking.hpp"
#include "tessera/links/split.hpp"

namespace tessera::torch_ops {
namespace {

[[noreturn]] void refuse(const std::string& problem, const char* where, const std::string& fix) {
  throw Error(ErrorCode::invalid_argument, problem, where, fix);
}

/// The numbers of a tensor, one behind the other, in a type.
template <class T>
class Numbers {
 public:
  Numbers(const Tensor& tensor, ScalarType type) : tensor_(in_one_piece(in_type(tensor, type))) {}

  std::span<const T> all() const {
    return {static_cast<const T*>(tensor_.const_data_ptr()),
            static_cast<std::size_t>(tensor_.numel())};
  }
  /// Of a matrix.
  MatrixView<const T> matrix() const { return {all().data(), tensor_.size(0), tensor_.size(1)}; }

 private:
  Tensor tensor_;
};

std::vector<VertexId> ids_of(const Tensor& tensor, const char* name) {
  const Numbers<std::int64_t> given(tensor, ScalarType::Long);
  std::vector<VertexId> ids;
  ids.reserve(given.all().size());
  for (const std::int64_t id : given.all()) {
    if (id < std::numeric_limits<VertexId>::min() || id > std::numeric_limits<VertexId>::max()) {
      refuse("the id " + std::to_string(id), name, "use ids of 32 bits");
    }
    ids.push_back(static_cast<VertexId>(id));
  }
  return ids;
}

/// Both rows of pairs.
std::pair<std::vector<VertexId>, std::vector<VertexId>> ends_of(const Tensor& pairs,
                                                                const char* name) {
  if (pairs.dim() != 2 || pairs.size(0) != 2) refuse("pairs that are not 2 x pairs", name, "");
  auto row = [&](std::int64_t i) { return ids_of(torch::stable::select(pairs, 0, i), name); };
  return {row(0), row(1)};
}

/// The graph of a structure whose edges are all different.
Graph simple_graph(Structure& structure) {
  const Graph graph = structure.graph(Norm::none, 1);
  if (graph.has_repeated_edges()) {
    refuse("an edge is given several times", "edge_index",
           "merge them first (torch_geometric.utils.coalesce)");
  }
  return graph;
}

Tensor link_parts(Tensor index, std::optional<Tensor> offsets, std::optional<Tensor> times,
                  std::int64_t targets, std::int64_t sources, std::int64_t layout,
                  std::int64_t loops, double validation, double test, double supervision,
                  std::int64_t seed) {
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  const Graph graph = simple_graph(*structure);
  const links::LinkShares shares{validation, test, supervision};
  std::vector<links::LinkPart> parts;
  if (times) {
    const Numbers<double> ordered(structure->in_rows(*times), ScalarType::Double);
    parts = links::link_parts_by_time(graph, ordered.all(), shares);
  } else {
    parts = links::draw_link_parts(graph, shares, static_cast<std::uint64_t>(seed));
  }
  Tensor result = empty_beside(index, std::ssize(parts), 1, ScalarType::Long);
  std::transform(parts.begin(), parts.end(), static_cast<std::int64_t*>(result.data_ptr()),
                 [](links::LinkPart part) { return static_cast<std::int64_t>(part); });
  return structure->to_caller(result);
}

/// Throws where a split by such parts would leak; says whether an edge and its reverse are one
/// pair.
bool check_link_parts(Tensor index, std::optional<Tensor> offsets, Tensor parts,
                      std::int64_t targets, std::int64_t sources, std::int64_t layout,
                      std::int64_t loops) {
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  const Graph graph = simple_graph(*structure);
  const Numbers<std::int64_t> ordered(structure->in_rows(parts), ScalarType::Long);
  std::vector<links::LinkPart> named;
  named.reserve(ordered.all().size());
  for (const std::int64_t part : ordered.all()) {
    if (part < 0 || part > static_cast<std::int64_t>(links::LinkPart::test)) {
      refuse("the part " + std::to_string(part), "parts", "use those of tessera.links");
    }
    named.push_back(static_cast<links::LinkPart>(part));
  }
  return links::check_link_parts(graph, named);
}

/// Calls `visit` with both tensors as numbers of one type: double where one of them is.
template <class Visit>
auto with_scores(const Tensor& a, const Tensor& b, Visit&& visit) {
  const bool wide = a.scalar_type() == ScalarType::Double || b.scalar_type() == ScalarType::Double;
  if (wide) {
    return visit(Numbers<double>(a, ScalarType::Double), Numbers<double>(b, ScalarType::Double));
  }
  return visit(Numbers<float>(a, ScalarType::Float), Numbers<float>(b, ScalarType::Float));
}

double roc_auc(Tensor positives, Tensor negatives) {
  return with_scores(positives, negatives, [](const auto& found, const auto& wrong) {
    return links::roc_auc(found.all(), wrong.all());
  });
}

double average_precision(Tensor positives, Tensor negatives) {
  return with_scores(positives, negatives, [](const auto& found, const auto& wrong) {
    return links::average_precision(found.all(), wrong.all());
  });
}

double hits_at(Tensor positives, Tensor negatives, std::int64_t k) {
  return with_scores(positives, negatives, [&](const auto& found, const auto& wrong) {
    return links::hits_at(found.all(), wrong.all(), k);
  });
}

Tensor tensor_of(const std::vector<double>& numbers, const Tensor& beside) {
  Tensor result = empty_beside(beside, std::ssize(numbers), ScalarType::Double);
  std::copy(numbers.begin(), numbers.end(), static_cast<double*>(result.data_ptr()));
  return result;
}

Tensor ranks(Tensor positives, Tensor negatives) {
  return with_scores(positives, negatives, [&](const auto& found, const auto& wrong) {
    return tensor_of(links::ranks(found.all(), wrong.matrix()), positives);
  });
}

/// The pairs (row, candidate) as rows of candidates, each listed once.
Graph rows_of_candidates(const Tensor& pairs, std::int64_t rows, std::int64_t candidates,
                         const char* name) {
  constexpr std::int64_t most = std::numeric_limits<VertexId>::max();
  if (rows > most || candidates > most) refuse("more than 2^31 - 1 rows or candidates", name, "");
  const auto [row, candidate] = ends_of(pairs, name);
  return from_coo(static_cast<VertexId>(rows), static_cast<VertexId>(candidates), row, candidate,
                  {}, {.duplicates = Duplicates::first});
}

Tensor ranks_of(Tensor scores, Tensor truths, std::optional<Tensor> known) {
  const std::vector<VertexId> right = ids_of(truths, "truths");
  std::optional<Graph> left_out;
  if (known) left_out = rows_of_candidates(*known, scores.size(0), scores.size(1), "known");
  return with_scores(scores, scores, [&](const auto& all, const auto&) {
    return tensor_of(links::ranks_of(all.matrix(), right, left_out ? &*left_out : nullptr), scores);
  });
}

/// Recall, NDCG and the number of rows.
Tensor list_quality(Tensor lists, Tensor truth, std::int64_t candidates) {
  const std::vector<VertexId> listed = ids_of(lists, "lists");
  const Graph right = rows_of_candidates(truth, lists.size(0), candidates, "truth");
  const links::ListQuality quality =
      links::list_quality({listed.data(), lists.size(0), lists.size(1)}, right);
  return tensor_of({quality.recall, quality.ndcg, static_cast<double>(quality.rows)}, lists);
}

}  // namespace
}  // namespace tessera::torch_ops

STABLE_TORCH_LIBRARY_IMPL(tessera, CPU, library) {
  using namespace tessera::torch_ops;
  library.impl("link_parts", TORCH_BOX(&Guarded<&link_parts>::run));
  library.impl("check_link_parts", TORCH_BOX(&Guarded<&check_link_parts>::run));
  library.impl("roc_auc", TORCH_BOX(&Guarded<&roc_auc>::run));
  library.impl("average_precision", TORCH_BOX(&Guarded<&average_precision>::run));
  library.impl("hits_at", TORCH_BOX(&Guarded<&hits_at>::run));
  library.impl("ranks", TORCH_BOX(&Guarded<&ranks>::run));
  library.impl("ranks_of", TORCH_BOX(&Guarded<&ranks_of>::run));
  library.impl("list_quality", TORCH_BOX(&Guarded<&list_quality>::run));
}
