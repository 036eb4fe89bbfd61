#pragma once
// What a session is asked, what it tells while it lives and at its end. Values, and the receiver's
// face.

#include <kj/async.h>

#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "compute/chat/chat_template.h"
#include "coordinator/work/session_figures.h"

namespace shoal {

struct SamplingChoice {
  float temperature = 0, top_p = 1, min_p = 0, repetition_penalty = 1;
  uint32_t top_k = 0;
  uint64_t seed = 0;
};

struct SessionRequest {
  std::string prompt;
  std::vector<ChatMessage> chat;  // Not empty: instead of `prompt`.
  int64_t tokens_max = 0;
  SamplingChoice sampling;
  bool anchored = false;
  std::string group;  // Not empty: only hosts of it, and never `anchored`.
  int64_t stages_min = 0;
  std::vector<int64_t> cuts;
  bool ignore_eos = false;
};

struct StageWho {
  HostId host;
  std::string host_name;
  bool trusted = false;
  std::string device, device_name, plane;
  int64_t first_fragment = 0, last_fragment = 0;
};

struct FailoverNote {
  int64_t stage = 0;
  int64_t at_token = 0;  // Tokens already generated when the device was lost.
  Millis gap;            // From the last token before to the first after.
  std::string cause;
  StageWho replacement;
};

struct SessionSummary {
  SessionId id;
  std::string text;
  std::vector<int32_t> ids, prompt_ids;
  std::string finish_reason;  // stop, length
  Millis prefill;
  double tokens_per_second = 0;
  int64_t relayed_bytes = 0;
  std::vector<StageWho> stages;
  std::vector<FailoverNote> failovers;
  SessionFigures figures;
};

// Where a session's tokens go. A failed promise means that nobody listens any more.
class TokenReceiver {
 public:
  virtual ~TokenReceiver() noexcept(false) = default;
  virtual kj::Promise<void> token(int32_t id, const std::string& text) = 0;
  virtual void stages(std::span<const StageWho> stages) = 0;
  virtual void failover(const FailoverNote& note) = 0;
};

}  // namespace shoal
