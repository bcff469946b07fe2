// SPDX-License-Identifier: Apache-2.0
#include "bench_compare.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "bench_records.hpp"
#include "numbers.hpp"
#include "table.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/printable.hpp"

namespace tessera::app {
namespace {

/// What two records must agree in to be set side by side.
using Key = std::tuple<std::string, std::string, std::int64_t, std::string, std::string, int>;

Key key_of(const Measurement& record) {
  return {record.op,        record.graph,  record.features,
          record.precision, record.device, record.threads};
}

/// The fastest record of each case: a file may hold several kernels, or several settings.
std::map<Key, Measurement> best_records(const std::string& path, bool by_position) {
  std::map<Key, Measurement> best;
  std::map<std::string, std::size_t> positions;
  for (const Measurement& record : read_records(path)) {
    Key key = key_of(record);
    const auto position = positions.try_emplace(record.graph, positions.size()).first->second;
    if (by_position) std::get<1>(key) = fmt::format("{:09}", position);
    const auto [place, is_new] = best.try_emplace(key, record);
    if (!is_new && record.median_us < place->second.median_us) place->second = record;
  }
  return best;
}

struct Pair {
  Measurement first;
  Measurement second;
  double ratio() const { return first.median_us / second.median_us; }
};

struct Comparison {
  std::vector<Pair> pairs;
  std::int64_t only_first = 0;
  std::int64_t only_second = 0;
  double geometric_mean = 1;
  double win_rate = 0;
  std::size_t worst = 0;
};

Comparison compare(const std::map<Key, Measurement>& first,
                   const std::map<Key, Measurement>& second) {
  Comparison result;
  for (const auto& [key, record] : first) {
    const auto other = second.find(key);
    if (other != second.end()) result.pairs.push_back({record, other->second});
  }
  const auto matched = static_cast<std::int64_t>(result.pairs.size());
  result.only_first = static_cast<std::int64_t>(first.size()) - matched;
  result.only_second = static_cast<std::int64_t>(second.size()) - matched;
  double logs = 0;
  double wins = 0;
  for (std::size_t i = 0; i < result.pairs.size(); ++i) {
    const double ratio = result.pairs[i].ratio();
    logs += std::log(ratio);
    if (ratio > 1) ++wins;
    if (ratio < result.pairs[result.worst].ratio()) result.worst = i;
  }
  const double count = std::max(1.0, static_cast<double>(matched));
  result.geometric_mean = std::exp(logs / count);
  result.win_rate = wins / count;
  return result;
}

std::string case_name(const Measurement& record) {
  return fmt::format("{} on {}, {} features, {}, {} threads", record.op, record.graph,
                     record.features, record.precision, record.threads);
}

std::string to_text(const Comparison& comparison, const std::string& first,
                    const std::string& second, double fail_under) {
  Table table("llrlrrrr");
  table.add({"op", "graph", "features", "precision", "threads", "A", "B", "A / B"});
  for (const Pair& pair : comparison.pairs) {
    const Measurement& a = pair.first;
    const std::string& other = pair.second.graph;
    table.add({a.op, a.graph == other ? other : a.graph + " / " + other, std::to_string(a.features),
               a.precision, std::to_string(a.threads), human_microseconds(a.median_us),
               human_microseconds(pair.second.median_us),
               fmt::format("{:.2f}{}", pair.ratio(), pair.ratio() < fail_under ? " !" : "")});
  }
  std::string text =
      fmt::format("A {}\nB {}\n\n{}\n", printable(first), printable(second), table.text());
  text += fmt::format("B is {:.2f} times as fast as A (geometric mean of {} cases)\n",
                      comparison.geometric_mean, comparison.pairs.size());
  text += fmt::format("B wins {} of the cases\n", human_share(comparison.win_rate));
  const Pair& worst = comparison.pairs[comparison.worst];
  text += fmt::format("worst: {:.2f}, {}\n", worst.ratio(), printable(case_name(worst.first)));
  if (comparison.only_first + comparison.only_second > 0) {
    text += fmt::format("not compared: {} cases only in A, {} only in B\n", comparison.only_first,
                        comparison.only_second);
  }
  return text;
}

Json to_json(const Comparison& comparison, const std::string& first, const std::string& second,
             double fail_under) {
  Json cases = Json::array();
  std::int64_t below = 0;
  for (const Pair& pair : comparison.pairs) {
    const Measurement& a = pair.first;
    cases.push_back({{"op", a.op},
                     {"graph", a.graph},
                     {"b_graph", pair.second.graph},
                     {"features", a.features},
                     {"precision", a.precision},
                     {"device", a.device},
                     {"threads", a.threads},
                     {"a_kernel", a.kernel},
                     {"b_kernel", pair.second.kernel},
                     {"a_us", a.median_us},
                     {"b_us", pair.second.median_us},
                     {"ratio", pair.ratio()}});
    if (pair.ratio() < fail_under) ++below;
  }
  return {{"verb", "bench compare"},
          {"a", first},
          {"b", second},
          {"geometric_mean", comparison.geometric_mean},
          {"win_rate", comparison.win_rate},
          {"worst", comparison.pairs[comparison.worst].ratio()},
          {"only_in_a", comparison.only_first},
          {"only_in_b", comparison.only_second},
          {"below_threshold", below},
          {"cases", cases}};
}

}  // namespace

ExitCode compare_records(Session& session, const std::string& first, const std::string& second,
                         double fail_under, bool by_position) {
  const Comparison comparison =
      compare(best_records(first, by_position), best_records(second, by_position));
  if (comparison.pairs.empty()) {
    throw Error(ErrorCode::bad_data, "no case is in both files", first + " and " + second,
                by_position
                    ? "records match by op, features, precision, device and threads"
                    : "records match by op, graph, features, precision, device and threads; for "
                      "graphs with other names add --by-position");
  }
  session.deliver(to_text(comparison, first, second, fail_under),
                  to_json(comparison, first, second, fail_under));
  const bool failed = comparison.pairs[comparison.worst].ratio() < fail_under;
  return failed ? ExitCode::check_failed : ExitCode::ok;
}

}  // namespace tessera::app
