// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "arguments.hpp"
#include "files.hpp"
#include "graph_steps.hpp"
#include "session.hpp"
#include "tessera/data/dataset.hpp"
#include "tessera/io/open.hpp"

/// Options that several verbs share, each defined once.
namespace tessera::app {

void add_common_options(Arguments& app, CommonOptions& options);

/// Makes every option refuse values that are empty, and those for numbers whatever is none, fits no
/// 64 bits or is not finite.
void guard_values(Arguments& app);

/// One of these words.
Check one_of(std::vector<std::string> words);
/// The words that the library takes, which checks them itself: for completion.
Check offers(std::vector<std::string> words);
/// A number within these limits, both included.
Check between(std::int64_t low, std::int64_t high);
Check between(double low, double high);

/// How tables in text files are to be read, as given on the command line.
struct TableArguments {
  std::string separator, header = "auto", ids = "auto", source, target, weight;
  int base = 0;
  std::string nodes, nodes_separator, nodes_header, id, label, split, unknown_ids = "reject";
  std::vector<std::string> features, drop, edge_features;
  std::string edge_time;  ///< no option of tables says so, but that of links does
  std::string kinds;
  std::string time;
  std::vector<double> time_shares;
  bool numbers = false;  ///< labels are numbers to predict: no option says so, but the task does

  void apply_to(io::ReadOptions& options) const;
};

struct DataOptions {
  std::string source;
  std::string duplicates = "reject";
  std::string nonfinite = "reject";
  std::string format = {};
  TableArguments tables = {};
  GraphSteps steps = {};
};

/// `--data SOURCE`, also accepted without the `--data`, and `--duplicates`.
void add_data_options(Arguments& app, DataOptions& options);

/// The options that say how tables are to be read.
void add_table_options(Arguments& app, TableArguments& tables);

/// How tables are to be read, and what is done to the edges then: for verbs that people meet their
/// files with. The same options give the same data in each.
void add_reading_options(Arguments& app, DataOptions& options);

/// The files that the data is read from, and `others`.
std::vector<FileUse> with_data_files(const DataOptions& options, std::vector<FileUse> others);

/// `--nonfinite`, for verbs that can make something of weights that are not finite.
void add_nonfinite_option(Arguments& app, std::string& nonfinite);
Nonfinite parse_nonfinite(const std::string& text);

struct LoadedData {
  Dataset dataset;
  double seconds = 0;
  EdgeOffset edges_read = 0;            ///< before the steps
  std::vector<std::string> steps = {};  ///< what was done to the edges
};

/// Opens what was named, changes it as was asked, and hands the session the notes. `--seed` reaches
/// a `generate:` source that names no seed of its own.
LoadedData load(Session& session, const DataOptions& options);

/// The description of a random graph ("rmat?scale=17") with this seed, in place of any it names.
std::string with_seed(const std::string& description, std::uint64_t seed);

struct OutputOptions {
  std::string path;
  bool graph_only = false;
};

/// `-o FILE` and `--graph-only`, for verbs that write a data set.
void add_dataset_output_options(Arguments& app, OutputOptions& options);

/// Finds what would stop `save` before the work starts. No path means no output, and passes.
void require_savable(const OutputOptions& options);

/// Leaves out arrays with a row per edge that nothing uses: the edges are about to change. Says so.
void drop_edge_arrays(Session& session, Dataset& dataset);

/// Writes the data set where a path was given.
void save(Session& session, const OutputOptions& options, const Dataset& dataset);

}  // namespace tessera::app
