// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/parallel.hpp"
#include "tessera/links/decoder.hpp"

#include "links/decoder_checks.hpp"

namespace tessera::links {
namespace {

/// A source and a relation that occur together.
struct Head {
  VertexId source;
  VertexId relation;
};

}  // namespace

struct DistMultDecoder::State {
  State(const Pairs& pairs, std::span<const VertexId> relations, VertexId sources, VertexId targets,
        VertexId num_relations_given, const DecoderOptions& options)
      : num_sources(sources), num_targets(targets), num_relations(num_relations_given) {
    require_one_each(pairs.targets.size(), pairs, "targets");
    if (!relations.empty()) require_one_each(relations.size(), pairs, "relations");
    require_ids(pairs.sources, num_sources, "source");
    require_ids(relations, num_relations, "relation");
    decoder_check.that(num_relations > 0 || pairs.size() == 0, "there are no relations",
                       "give one at least");
    Pairs by_head{list_heads(pairs, relations), pairs.targets};
    dot = std::make_unique<DotDecoder>(by_head, static_cast<VertexId>(heads.size()), num_targets,
                                       options);
    width = options.features;
  }

  std::int64_t num_heads() const { return std::ssize(heads); }
  const Head& head(std::int64_t i) const { return heads[static_cast<std::size_t>(i)]; }

  /// Every source times its relation.
  template <class T>
  Matrix<T> products(MatrixView<const T> sources, MatrixView<const T> relations) const {
    Matrix<T> result(num_heads(), width);
    parallel_for(num_heads(), even_grain(num_heads(), 64), [&](std::int64_t i) {
      const T* const source = sources.row(head(i).source);
      const T* const relation = relations.row(head(i).relation);
      for (std::int64_t j = 0; j < width; ++j) result(i, j) = source[j] * relation[j];
    });
    return result;
  }

  VertexId num_sources, num_targets, num_relations;
  std::int64_t width = 0;
  std::vector<Head> heads;  ///< by source, then by relation
  std::unique_ptr<DotDecoder> dot;

 private:
  /// Fills `heads`; returns the one of each pair.
  std::vector<VertexId> list_heads(const Pairs& pairs, std::span<const VertexId> relations) {
    const auto key_of = [&](std::size_t k) {
      const VertexId relation = relations.empty() ? 0 : relations[k];
      return static_cast<std::int64_t>(pairs.sources[k]) * num_relations + relation;
    };
    std::vector<std::int64_t> keys(pairs.sources.size());
    for (std::size_t k = 0; k < keys.size(); ++k) keys[k] = key_of(k);
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    decoder_check.that(std::ssize(keys) <= std::numeric_limits<VertexId>::max(),
                       fmt::format("{} sources with their relations", keys.size()),
                       "give fewer pairs");
    for (const std::int64_t key : keys) {
      heads.push_back(
          {static_cast<VertexId>(key / num_relations), static_cast<VertexId>(key % num_relations)});
    }
    std::vector<VertexId> result(pairs.sources.size());
    parallel_for(pairs.size(), even_grain(pairs.size()), [&](std::int64_t k) {
      const auto place = static_cast<std::size_t>(k);
      const auto found = std::lower_bound(keys.begin(), keys.end(), key_of(place));
      result[place] = static_cast<VertexId>(found - keys.begin());
    });
    return result;
  }
};

namespace {

/// Heads in groups that add to one row of a result: group g are `order[begins[g]]` up to
/// `order[begins[g + 1]]`, in rising order.
struct Groups {
  template <class RowOf>
  Groups(std::int64_t count, VertexId rows, RowOf&& row_of)
      : begins(static_cast<std::size_t>(rows) + 1), order(static_cast<std::size_t>(count)) {
    for (std::int64_t i = 0; i < count; ++i) ++begins[static_cast<std::size_t>(row_of(i))];
    exclusive_scan(std::span(begins));
    std::vector<std::int64_t> next = begins;
    for (std::int64_t i = 0; i < count; ++i) {
      order[static_cast<std::size_t>(next[static_cast<std::size_t>(row_of(i))]++)] = i;
    }
  }

  std::vector<std::int64_t> begins;
  std::vector<std::int64_t> order;
};

/// Row g of the result: the sum of `gradient(i) * factor(i)` over the heads i of group g, by
/// features. Features are cut into blocks, so that few groups keep many threads busy, too.
template <class T, class Factor>
void sum_products(const Groups& groups, const Matrix<T>& gradient, MatrixView<T> result,
                  Factor&& factor) {
  constexpr std::int64_t block = 16;
  const std::int64_t blocks = (result.cols + block - 1) / block;
  const std::int64_t tasks = result.rows * blocks;
  parallel_for(tasks, even_grain(tasks, 16), [&](std::int64_t task) {
    const std::int64_t row = task / blocks;
    const std::int64_t begin = task % blocks * block;
    const std::int64_t width = std::min(block, result.cols - begin);
    double sums[block] = {};
    for (std::int64_t at = groups.begins[static_cast<std::size_t>(row)];
         at < groups.begins[static_cast<std::size_t>(row) + 1]; ++at) {
      const std::int64_t i = groups.order[static_cast<std::size_t>(at)];
      const T* const other = factor(i) + begin;
      const T* const of_head = gradient.row(i) + begin;
      for (std::int64_t j = 0; j < width; ++j) {
        sums[j] += static_cast<double>(of_head[j]) * static_cast<double>(other[j]);
      }
    }
    std::transform(sums, sums + width, result.row(row) + begin,
                   [](double sum) { return static_cast<T>(sum); });
  });
}

}  // namespace

DistMultDecoder::DistMultDecoder(const Pairs& pairs, std::span<const VertexId> relations,
                                 VertexId num_sources, VertexId num_targets, VertexId num_relations,
                                 const DecoderOptions& options)
    : state_(std::make_unique<State>(pairs, relations, num_sources, num_targets, num_relations,
                                     options)) {}
DistMultDecoder::~DistMultDecoder() = default;
DistMultDecoder::DistMultDecoder(DistMultDecoder&&) noexcept = default;
DistMultDecoder& DistMultDecoder::operator=(DistMultDecoder&&) noexcept = default;

template <class T>
void DistMultDecoder::score(MatrixView<const T> sources, MatrixView<const T> relations,
                            MatrixView<const T> targets, std::span<T> scores) {
  const State& state = *state_;
  decoder_check.matrix(sources, "sources", expected<T>(state.num_sources, state.width));
  decoder_check.matrix(relations, "relations", expected<T>(state.num_relations, state.width));
  const Matrix<T> products = state.products(sources, relations);
  state.dot->score(products.view(), targets, scores);
}

template <class T>
void DistMultDecoder::backward(MatrixView<const T> sources, MatrixView<const T> relations,
                               MatrixView<const T> targets, std::span<const T> grad_scores,
                               MatrixView<T> grad_sources, MatrixView<T> grad_relations,
                               MatrixView<T> grad_targets) {
  const State& state = *state_;
  decoder_check.matrices({{sources, "sources"}, {grad_sources, "grad_sources"}},
                         expected<T>(state.num_sources, state.width));
  decoder_check.matrices({{relations, "relations"}, {grad_relations, "grad_relations"}},
                         expected<T>(state.num_relations, state.width));
  const Matrix<T> products = state.products(sources, relations);
  Matrix<T> gradient(state.num_heads(), state.width);
  decoder_check.apart(grad_sources, "grad_sources",
                      {{grad_relations, "grad_relations"}, {grad_targets, "grad_targets"}});
  decoder_check.apart(grad_relations, "grad_relations", grad_targets, "grad_targets");
  state.dot->backward(products.view(), targets, grad_scores, gradient.view(), grad_targets);
  const auto source_of = [&](std::int64_t i) { return state.head(i).source; };
  const auto relation_of = [&](std::int64_t i) { return state.head(i).relation; };
  sum_products(Groups(state.num_heads(), state.num_sources, source_of), gradient, grad_sources,
               [&](std::int64_t i) { return relations.row(relation_of(i)); });
  sum_products(Groups(state.num_heads(), state.num_relations, relation_of), gradient,
               grad_relations, [&](std::int64_t i) { return sources.row(source_of(i)); });
}

template void DistMultDecoder::score(MatrixView<const float>, MatrixView<const float>,
                                     MatrixView<const float>, std::span<float>);
template void DistMultDecoder::backward(MatrixView<const float>, MatrixView<const float>,
                                        MatrixView<const float>, std::span<const float>,
                                        MatrixView<float>, MatrixView<float>, MatrixView<float>);
template void DistMultDecoder::score(MatrixView<const double>, MatrixView<const double>,
                                     MatrixView<const double>, std::span<double>);
template void DistMultDecoder::backward(MatrixView<const double>, MatrixView<const double>,
                                        MatrixView<const double>, std::span<const double>,
                                        MatrixView<double>, MatrixView<double>, MatrixView<double>);

}  // namespace tessera::links
