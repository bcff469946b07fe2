// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <memory>

#include <fmt/format.h>

#include "describe.hpp"
#include "numbers.hpp"
#include "options.hpp"
#include "table.hpp"
#include "tessera/tiles/quad_tiles.hpp"
#include "tessera/tiles/statistics.hpp"
#include "verb.hpp"

namespace tessera::app {
namespace {

using tiles::WindowStats;

struct TilesOptions {
  DataOptions data;
  int height = 64;
  bool transposed = false;

  tiles::Side side() const { return transposed ? tiles::Side::transposed : tiles::Side::forward; }
};

/// Windows whose columns stand in groups of four, of which every row uses two.
struct Padding24 {
  int height = 0;
  std::int64_t quads = 0;
  double places_per_column = 0;
};

/// Everything the verb reports.
struct TilesReport {
  std::vector<WindowStats> heights;  ///< in steps of 16 columns
  WindowStats spmm_blocks;           ///< of 16 x 8, as TC-GNN counts them
  WindowStats sddmm_blocks;          ///< of 16 x 16
  WindowStats shown;                 ///< of the height asked for
  std::vector<Padding24> quads;      ///< for sparse tensor cores
  std::vector<std::string> picture;
};

Json to_json(const WindowStats& stats) {
  return {{"height", stats.height},
          {"block_columns", stats.block_columns},
          {"windows", stats.num_windows},
          {"blocks_before", stats.blocks_before},
          {"blocks_after", stats.blocks_after},
          {"distinct_columns", stats.distinct_columns},
          {"reuse", stats.reuse()},
          {"density_before", stats.density_before()},
          {"density_after", stats.density_after()},
          {"padding", stats.padding()},
          {"tiled_bytes", stats.tiled_bytes},
          {"csr_bytes", stats.csr_bytes},
          {"blocks_histogram", stats.blocks_histogram},
          {"shared_by", stats.shared_by}};
}

Json to_json(const Dataset& dataset, const TilesReport& report, const TilesOptions& options) {
  Json heights = Json::array();
  for (const WindowStats& stats : report.heights) heights.push_back(to_json(stats));
  Json quads = Json::array();
  for (const Padding24& windows : report.quads) {
    quads.push_back({{"height", windows.height},
                     {"quads", windows.quads},
                     {"places_per_column", windows.places_per_column}});
  }
  return {{"verb", "tiles"},
          {"name", dataset.name},
          {"edges", dataset.graph.num_edges()},
          {"side", tiles::to_string(options.side())},
          {"heights", heights},
          {"spmm_blocks", to_json(report.spmm_blocks)},
          {"sddmm_blocks", to_json(report.sddmm_blocks)},
          {"quads", quads},
          {"picture", report.picture}};
}

std::string times(double factor) { return fmt::format("{:.3g} x", factor); }

std::string fewer(const WindowStats& stats) {
  if (stats.blocks_after == 0) return "-";
  return times(static_cast<double>(stats.blocks_before) / static_cast<double>(stats.blocks_after));
}

std::string heights_table(const std::vector<WindowStats>& heights) {
  Table table("rrrrrrrrr");
  table.add({"rows", "windows", "blocks", "before", "fewer", "bits set", "padding", "reuse",
             "bytes / CSR"});
  for (const WindowStats& stats : heights) {
    const double bytes = stats.csr_bytes == 0 ? 0
                                              : static_cast<double>(stats.tiled_bytes) /
                                                    static_cast<double>(stats.csr_bytes);
    table.add({grouped(stats.height), grouped(stats.num_windows), grouped(stats.blocks_after),
               grouped(stats.blocks_before), fewer(stats), human_share(stats.density_after()),
               human_share(stats.padding()), times(stats.reuse()), times(bytes)});
  }
  return table.text();
}

std::string paper_table(const TilesReport& report) {
  Table table("lrrr");
  table.add({"blocks of the paper", "before", "after", "fewer"});
  const auto add = [&](const char* name, const WindowStats& stats) {
    table.add({name, grouped(stats.blocks_before), grouped(stats.blocks_after), fewer(stats)});
  };
  add("16 x 8, for spmm", report.spmm_blocks);
  add("16 x 16, for sddmm", report.sddmm_blocks);
  return table.text();
}

std::string quads_table(const std::vector<Padding24>& heights) {
  Table table("rrr");
  table.add({"2:4, rows", "quads", "places / column"});
  for (const Padding24& windows : heights) {
    table.add({grouped(windows.height), grouped(windows.quads),
               fmt::format("{:.3f}", windows.places_per_column)});
  }
  return table.text();
}

Padding24 padding_of(const Graph& graph, const WindowStats& stats, tiles::Side side) {
  const std::int64_t quads = tiles::translate_quads(graph, stats.height, side).num_quads;
  const auto columns = static_cast<double>(std::max<std::int64_t>(1, stats.distinct_columns));
  return {stats.height, quads, static_cast<double>(quads * tiles::quad_columns) / columns};
}

/// Counts by powers of two, from `first` on, as bars.
std::string bars(const char* what, const char* of, const std::vector<std::int64_t>& counts,
                 std::int64_t first) {
  constexpr double full_bar = 40;
  if (counts.empty()) return {};
  const auto most = std::max<std::int64_t>(1, *std::max_element(counts.begin(), counts.end()));
  Table table("rrl");
  table.add({what, of});
  std::int64_t low = first;
  for (const std::int64_t count : counts) {
    const std::int64_t next = low == 0 ? 1 : 2 * low;
    const auto length = static_cast<std::size_t>(std::max(
        count > 0 ? 1.0 : 0.0, full_bar * static_cast<double>(count) / static_cast<double>(most)));
    table.add(
        {next - low <= 1 ? grouped(low) : fmt::format("{}-{}", grouped(low), grouped(next - 1)),
         grouped(count), std::string(length, '#')});
    low = next;
  }
  return "\n" + table.text();
}

/// The first tile of the window with most edges for each column; 32 rows at most.
std::vector<std::string> draw(const tiles::TiledGraph& tiled) {
  const auto words_of = [&](std::int64_t tile) {
    return tiled.words.span().subspan(static_cast<std::size_t>(tile * tiled.words_per_tile()),
                                      static_cast<std::size_t>(tiled.words_per_tile()));
  };
  const auto edges_of = [&](std::int64_t tile) {
    std::int64_t edges = 0;
    for (const std::uint32_t word : words_of(tile)) edges += std::popcount(word);
    return edges;
  };
  std::int64_t densest = -1;
  std::int64_t most = 0;
  for (std::int64_t w = 0; w < tiled.num_windows(); ++w) {
    const std::int64_t tile = tiled.tile_offsets[w];
    if (tile == tiled.tile_offsets[w + 1]) continue;
    if (const std::int64_t edges = edges_of(tile); edges > most) {
      most = edges;
      densest = tile;
    }
  }
  std::vector<std::string> picture;
  if (densest < 0) return picture;
  for (int row = 0; row < std::min(32, tiled.height); ++row) {
    std::string line;
    for (int column = 0; column < tiles::tile_columns; ++column) {
      line += tiled.has_edge(densest, row, column) ? '#' : '.';
    }
    picture.push_back(line);
  }
  return picture;
}

std::string to_text(const Dataset& dataset, const TilesReport& report) {
  std::string text = headline(dataset) + "\n" + heights_table(report.heights) + "\n" +
                     paper_table(report) + "\n" + quads_table(report.quads);
  text += bars("blocks of 16", fmt::format("windows of {}", report.shown.height).c_str(),
               report.shown.blocks_histogram, 0);
  text += bars("rows sharing", "columns", report.shown.shared_by, 1);
  if (report.picture.empty()) return text;
  text += fmt::format("\n  the densest first tile of a window of {}:\n", report.shown.height);
  for (const std::string& line : report.picture) text += "  " + line + "\n";
  return text;
}

Action setup(Arguments& app) {
  auto options = std::make_shared<TilesOptions>();
  add_data_options(app, options->data);
  add_nonfinite_option(app, options->data.nonfinite);
  app.add_option("--height", options->height,
                 "rows of a window in the histograms and the picture: 8, 16, 32, 64, 128 or 256 "
                 "(default 64)")
      ->type_name("ROWS");
  app.add_flag("--transposed", options->transposed,
               "the reversed graph (A^T), as the backward pass needs it");
  const auto run = [options](Session& session) {
    const LoadedData data = load(session, options->data);
    const Graph& graph = data.dataset.graph;
    session.stage("translating");
    TilesReport report;
    report.picture = draw(tiles::translate(graph, options->height, options->side()));
    for (const int height : tiles::window_heights) {
      report.heights.push_back(
          tiles::window_stats(graph, height, tiles::step_columns, options->side()));
      if (height == options->height) report.shown = report.heights.back();
      if (height < tiles::quad_heights.front()) continue;
      report.quads.push_back(padding_of(graph, report.heights.back(), options->side()));
    }
    report.spmm_blocks = tiles::window_stats(graph, 16, 8, options->side());
    report.sddmm_blocks = tiles::window_stats(graph, 16, 16, options->side());
    session.deliver(to_text(data.dataset, report), to_json(data.dataset, report, *options));
    return ExitCode::ok;
  };
  return {run, [options] { return std::vector{source_file(options->data.source)}; }};
}

}  // namespace

const Verb tiles_verb{"tiles", "report how well a graph fits tensor cores", "[options] SOURCE",
                      "tessera tiles embedded:citation\n"
                      "tessera tiles --data graph.npz --height 128 --json -",
                      setup};

}  // namespace tessera::app
