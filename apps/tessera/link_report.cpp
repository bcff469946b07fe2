// SPDX-License-Identifier: Apache-2.0
#include "link_report.hpp"

#include <string>

#include <fmt/format.h>

#include "numbers.hpp"
#include "tessera/core/grouped.hpp"
#include "train_report.hpp"

namespace tessera::app {
namespace {

using train::LinkQuality;

/// What of two is not the metric: of AUROC and average precision, or of recall and NDCG.
const char* other_metric(const train::TrainReport& report) {
  if (train::is_of_lists(report.metric)) {
    const bool is_recall = report.metric == train::Metric::recall;
    return train::to_string(is_recall ? train::Metric::ndcg : train::Metric::recall);
  }
  const bool is_area = report.metric == train::Metric::roc_auc;
  return train::to_string(is_area ? train::Metric::average_precision : train::Metric::roc_auc);
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

}  // namespace

void add_links(const train::TrainReport& report, Table& table) {
  if (!report.links) return;
  const std::size_t runs = report.runs.size();
  const LinkQuality& links = *report.links;
  table.add({std::string("test ") + other_metric(report), human_metric(report.test_other, runs)});
  if (links.recall) {
    table.add({"lists", fmt::format("recall@{0} {1:.2f} %, NDCG@{0} {2:.2f} %, of {3} without what "
                                    "is known",
                                    links.top, *links.recall * 100, *links.ndcg * 100,
                                    grouped(links.lists))});
  }
  std::string text;
  for (std::size_t i = 0; i < links.hits.size(); ++i) {
    if (!links.hits[i]) continue;
    text += fmt::format("hits@{} {:.2f} %, ", LinkQuality::hits_at[i], *links.hits[i] * 100);
  }
  if (links.mean_reciprocal_rank) {
    text += fmt::format("MRR {:.4f} among {}, ", *links.mean_reciprocal_rank,
                        LinkQuality::ranked_among);
  }
  if (text.empty()) return;  // with few links, of sources that have an edge to every vertex
  text += fmt::format("of {} test link{}", grouped(links.pairs), links.pairs == 1 ? "" : "s");
  if (runs > 1) text += fmt::format(", by the weights of run {}", links.run + 1);
  table.add({"ranking", text});
}

void add_links(const train::TrainReport& report, Json& json) {
  if (!report.links) return;
  const LinkQuality& links = *report.links;
  const bool several = report.runs.size() > 1;
  json["test_other"] = {{"metric", other_metric(report)},
                        {"mean", report.test_other.mean},
                        {"std", several ? Json(report.test_other.deviation) : Json()}};
  Json hits = Json::array();
  for (std::size_t i = 0; i < links.hits.size(); ++i) {
    hits.push_back({{"k", LinkQuality::hits_at[i]}, {"share", or_null(links.hits[i])}});
  }
  json["links"] = {{"run", links.run + 1},
                   {"pairs", links.pairs},
                   {"roc_auc", links.roc_auc},
                   {"average_precision", links.average_precision},
                   {"hits", hits},
                   {"mrr", or_null(links.mean_reciprocal_rank)},
                   {"mrr_among", LinkQuality::ranked_among},
                   {"top", links.top},
                   {"lists", links.lists},
                   {"recall", or_null(links.recall)},
                   {"ndcg", or_null(links.ndcg)}};
}

}  // namespace tessera::app
