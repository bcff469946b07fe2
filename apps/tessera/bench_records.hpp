// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "bench/suite.hpp"
#include "session.hpp"
#include "tessera/core/measure.hpp"

/// Measurements in files.
namespace tessera::app {

/// What was measured where: version, commit, date, machine. Copy bandwidths are added by
/// `bandwidth_json`.
Json bench_header(const std::string& commit);

/// The copy bandwidth of each of these numbers of threads, in bytes per second; that of a GPU under
/// the device's name.
Json bandwidth_json(const std::vector<int>& thread_counts, Device device);

/// The fields of the record, then how it came about: bytes, repeats, heads.
Json to_json(const bench::Result& result, std::int64_t heads);

/// Reads the records of a file that `tessera bench --json` or a baseline script wrote. Throws
/// `bad_data` with the record at fault. Baselines within a file are left out.
std::vector<Measurement> read_records(const std::string& path);

}  // namespace tessera::app
