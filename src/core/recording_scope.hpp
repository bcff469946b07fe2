// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera {

/// While one lives, `is_recording()` is true for this thread.
class RecordingScope {
 public:
  RecordingScope() noexcept;
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;
  ~RecordingScope();
};

}  // namespace tessera
