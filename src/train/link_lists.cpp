// SPDX-License-Identifier: Apache-2.0
#include "train/link_lists.hpp"

#include <algorithm>

#include "tessera/graph/build.hpp"
#include "tessera/ops/top_rows.hpp"

#include "train/host.hpp"

namespace tessera::train {
namespace {

using links::Pairs;

/// The ends that have something to find, each once.
std::vector<VertexId> askers(const Pairs& wanted, bool both_ways) {
  std::vector<VertexId> sources = wanted.sources;
  if (both_ways) sources.insert(sources.end(), wanted.targets.begin(), wanted.targets.end());
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  return sources;
}

Graph truth(const Pairs& wanted, bool both_ways, std::span<const VertexId> sources,
            const Candidates& candidates) {
  std::vector<VertexId> rows, cols;
  const auto add = [&](VertexId source, VertexId target) {
    const auto place = std::lower_bound(sources.begin(), sources.end(), source);
    rows.push_back(static_cast<VertexId>(place - sources.begin()));
    cols.push_back(target - candidates.first);
  };
  for (std::size_t k = 0; k < wanted.sources.size(); ++k) {
    add(wanted.sources[k], wanted.targets[k]);
    if (both_ways) add(wanted.targets[k], wanted.sources[k]);
  }
  return from_coo(static_cast<VertexId>(sources.size()), candidates.count(), rows, cols, {},
                  {.duplicates = Duplicates::first});
}

}  // namespace

Matrix<float> link_queries(const Matrix<float>& embeddings, std::span<const VertexId> sources,
                           const nn::LinkDecoder& decoder, Stream stream) {
  Matrix<float> rows(std::ssize(sources), embeddings.cols());
  for (std::int64_t i = 0; i < rows.rows(); ++i) {
    std::copy_n(embeddings.row(sources[static_cast<std::size_t>(i)]), rows.cols(), rows.row(i));
  }
  if (decoder.relation() == nullptr) return rows;
  const Matrix<float> relation = to_host(decoder.relation()->value, stream);
  for (std::int64_t i = 0; i < rows.rows(); ++i) {
    for (std::int64_t k = 0; k < rows.cols(); ++k) rows(i, k) *= relation(0, k);
  }
  return rows;
}

Matrix<float> means_of(const Matrix<float>& rows) {
  Matrix<float> means(rows.rows(), rows.cols() / 2);
  for (std::int64_t i = 0; i < means.rows(); ++i) {
    std::copy_n(rows.row(i), means.cols(), means.row(i));
  }
  return means;
}

Graph left_out_of_lists(std::span<const VertexId> sources, const Graph* known,
                        const Candidates& candidates) {
  std::vector<VertexId> rows, cols;
  const auto leave_out = [&](std::size_t row, VertexId vertex) {
    if (vertex < candidates.first || vertex >= candidates.end) return;
    rows.push_back(static_cast<VertexId>(row));
    cols.push_back(vertex - candidates.first);
  };
  for (std::size_t i = 0; i < sources.size(); ++i) {
    leave_out(i, sources[i]);
    if (known == nullptr) continue;
    const Csc& by_source = known->csc();
    for (EdgeOffset k = by_source.col_offsets[sources[i]];
         k < by_source.col_offsets[sources[i] + 1]; ++k) {
      leave_out(i, by_source.row_indices[k]);
    }
  }
  return from_coo(static_cast<VertexId>(sources.size()), candidates.count(), rows, cols, {},
                  {.duplicates = Duplicates::first});
}

links::TopLists link_lists(const Matrix<float>& embeddings, std::span<const VertexId> sources,
                           const nn::LinkDecoder& decoder, const Candidates& candidates,
                           const Graph& left_out, std::int64_t count, const Place& place) {
  const Matrix<float> queries = link_queries(embeddings, sources, decoder, place.stream);
  const MatrixView<const float> listed(embeddings.row(candidates.first), candidates.count(),
                                       embeddings.cols());
  links::TopOptions options{.count = count, .leave_out = &left_out};
  if (place.device.kind == DeviceKind::cpu || count > ops::longest_top_list) {
    return links::top_candidates(queries, listed, options);
  }
  const auto placed = [&](MatrixView<const float> rows) {
    Matrix<float> copy(rows.rows, rows.cols, place.resource(), place.stream);
    copy_bytes(copy.data(), rows.data, copy.span().size_bytes(), place.device, place.stream);
    return copy;
  };
  options.place = place;
  return links::top_candidates(placed(queries), placed(listed), options);
}

ListJudge::ListJudge(const Pairs& wanted, bool both_ways, const Graph* known,
                     const Candidates& candidates)
    : candidates_(candidates),
      sources_(askers(wanted, both_ways)),
      wanted_(truth(wanted, both_ways, sources_, candidates)),
      left_out_(left_out_of_lists(sources_, known, candidates)) {}

links::ListQuality ListJudge::quality(const Matrix<float>& embeddings,
                                      const nn::LinkDecoder& decoder, std::int64_t count,
                                      const Place& place) const {
  const links::TopLists lists =
      link_lists(embeddings, sources_, decoder, candidates_, left_out_, count, place);
  return links::list_quality(lists.candidates, wanted_);
}

}  // namespace tessera::train
