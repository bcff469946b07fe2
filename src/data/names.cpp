// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/names.hpp"

#include <algorithm>

#include "tessera/core/error.hpp"

namespace tessera {

Names::Names(const std::vector<std::string>& names) {
  std::vector<std::int64_t> ends;
  std::vector<std::uint8_t> bytes;
  for (const std::string& name : names) {
    bytes.insert(bytes.end(), name.begin(), name.end());
    ends.push_back(static_cast<std::int64_t>(bytes.size()));
  }
  ends_ = std::move(ends);
  bytes_ = std::move(bytes);
}

Names::Names(SharedArray<std::int64_t> ends, SharedArray<std::uint8_t> bytes)
    : ends_(std::move(ends)), bytes_(std::move(bytes)) {
  const bool fits = ends_.empty() ? bytes_.empty()
                                  : ends_[0] >= 0 && ends_.back() == bytes_.size() &&
                                        std::is_sorted(ends_.begin(), ends_.end());
  if (!fits) {
    throw Error(ErrorCode::bad_data, "the ends of the names do not rise to the number of bytes",
                "names", "the file is damaged or cut short: copy or make it again");
  }
}

}  // namespace tessera
