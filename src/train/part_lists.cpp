// SPDX-License-Identifier: Apache-2.0
#include "train/part_lists.hpp"

namespace tessera::train {

PartLists::PartLists(const Problem& problem, const links::LinkSplit& split, bool is_symmetric,
                     std::int64_t top, const Place& place)
    : split_(split),
      candidates_{problem.num_sources, problem.graph.num_rows()},
      both_ways_(is_symmetric && problem.num_sources == 0),
      top_(top),
      place_(place) {}

links::ListQuality PartLists::train(const Matrix<float>& embeddings,
                                    const nn::LinkDecoder& decoder) {
  return judged(train_, split_.train, nullptr, embeddings, decoder);
}

links::ListQuality PartLists::validation(const Matrix<float>& embeddings,
                                         const nn::LinkDecoder& decoder) {
  return judged(validation_, split_.validation, &split_.validation_graph, embeddings, decoder);
}

links::ListQuality PartLists::test(const Matrix<float>& embeddings,
                                   const nn::LinkDecoder& decoder) {
  return judged(test_, split_.test, &split_.test_graph, embeddings, decoder);
}

links::ListQuality PartLists::judged(std::optional<ListJudge>& judge, const links::Pairs& wanted,
                                     const Graph* known, const Matrix<float>& embeddings,
                                     const nn::LinkDecoder& decoder) {
  if (!judge) judge.emplace(wanted, both_ways_, known, candidates_);
  return judge->quality(embeddings, decoder, top_, place_);
}

double value_of(Metric metric, const links::ListQuality& quality) {
  return metric == Metric::recall ? quality.recall : quality.ndcg;
}

}  // namespace tessera::train
