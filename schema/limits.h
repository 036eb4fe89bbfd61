#pragma once
// An upper bound for every list, text and blob on a wire; checked where written and where read.

#include <cstddef>
#include <cstdint>

namespace shoal::limits {

constexpr size_t kMessageBytesMax = 64u
                                    << 20;  // What one received message may make a reader visit.
constexpr int kNestingMax = 32;
constexpr size_t kCallsInFlightBytesMax = 64u << 20;  // Unanswered requests of one peer.
constexpr size_t kLoginMessageBytesMax = 64u << 10;   // Before a peer has proved who it is;
constexpr uint32_t kLoginMessagesMax = 32;            // and so many messages in all.

constexpr size_t kNameBytesMax = 256;     // Host, model and device names, ids, versions.
constexpr size_t kReasonBytesMax = 1024;  // A sentence for a person.
constexpr size_t kInviteBytesMax = 128;
constexpr size_t kUrlBytesMax = 1024;
constexpr uint32_t kMessageParametersMax = 10;
constexpr uint32_t kJobClassesMax = 1024;  // Of a coordinator's card, or denied by an owner.
constexpr uint32_t kReceiptsPerCallMax = 1'000;
constexpr uint32_t kProofsPerCallMax = 64;  // That receipts are among those of a day,
constexpr size_t kProofBytesMax = 64 * 32;  // and what one of them holds.
constexpr size_t kCardTextBytesMax = 4096;  // What an administrator says of a coordinator.
constexpr size_t kKeyBytesMax = 256;        // Any key, signature or sealed key.
constexpr uint32_t kDevicesPerHostMax = 64;

constexpr uint32_t kChunkBytesMax = 1u << 20;  // Of a shard, in one call.
constexpr uint64_t kShardBytesMax = uint64_t{16} << 30;
constexpr uint32_t kFragmentsMax = 1024;         // Of one model.
constexpr size_t kManifestBytesMax = 48u << 20;  // The tokenizer's vocabulary is part of it.

constexpr uint32_t kContextMax = 1u << 20;
constexpr uint32_t kSequencesMax = 1024;
constexpr uint32_t kRowsMax = 1024;            // Of one step.
constexpr size_t kHiddenBytesMax = 32u << 20;  // Of one step.
constexpr uint32_t kHistoryMax = 1024;         // Tokens that a draw looks back on.

constexpr size_t kPromptBytesMax = 4u << 20;  // Of a conversation: of all its texts together.
constexpr uint32_t kChatMessagesMax = 4096;
constexpr uint32_t kTokensMax = 1u << 20;   // Of one generation.
constexpr uint32_t kListRowsMax = 100'000;  // Of any administrators' list.

constexpr size_t kJobBytesMax = 1u << 20;       // Of a job file.
constexpr size_t kJobInputBytesMax = 1u << 30;  // Of one task's input file.
constexpr size_t kItemBytesMax = 4u << 20;      // Of one line of it.
constexpr uint32_t kTasksPerJobMax = 256;
constexpr uint32_t kUnitsAheadMax = 64;  // Leased by one device.
constexpr uint32_t kItemsPerUnitMax = 4096;
// Tokens of all of its items, and likewise of its output.
constexpr uint32_t kTokensPerUnitMax = 1u << 20;
constexpr uint32_t kStopTokensMax = 64;

static_assert(kHiddenBytesMax < kMessageBytesMax && kManifestBytesMax < kMessageBytesMax);
static_assert(kChunkBytesMax < kMessageBytesMax);

}  // namespace shoal::limits
