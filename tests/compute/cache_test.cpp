// Goal: pages are never lost and never written while they are shared, and a stage that went on from
// shared or loaded caches gives the bits of one that computed everything itself. Method: every
// state that a few small sequences can reach, each with everything that may be done there; a small
// model on every device of this machine.

#include <QTest>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/digest.h"
#include "compute/cache_pages.h"
#include "compute/compute.h"
#include "compute/sample_model.h"

using namespace shoal;
using namespace shoal::compute;

namespace {

// --- pages ---

constexpr uint32_t kTexts = 3;
constexpr int64_t kPages = 4, kPagePositions = 2, kEach = 4;  // Two pages each: not for all.

using Lists = std::vector<std::vector<uint32_t>>;

Lists lists_of(const CachePages& pages) {
  Lists lists;
  for (uint32_t s = 0; s < kTexts; ++s) {
    const auto list = pages.pages_of(s);
    lists.emplace_back(list.begin(), list.end());
  }
  return lists;
}

std::map<uint32_t, int> users_of(const Lists& lists) {
  std::map<uint32_t, int> users;
  for (const auto& list : lists) {
    for (const uint32_t page : list) ++users[page];
  }
  return users;
}

// The same for states that differ in their pages' numbers alone.
Lists renamed(Lists lists) {
  std::map<uint32_t, uint32_t> names;
  for (auto& list : lists) {
    for (uint32_t& page : list)
      page = names.try_emplace(page, static_cast<uint32_t>(names.size())).first->second;
  }
  return lists;
}

// --- a model ---

constexpr int kTokens = 75;
constexpr StageOptions kOptions{.context = 80, .sequences = 3, .rows_max = 80};

std::vector<int32_t> tokens_of(int seed) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < kTokens; ++i) tokens.push_back((i * i * 7 + i * seed + seed) % 50);
  return tokens;
}

std::unique_ptr<Stage> open_stage(Device& device, const SampleModel& model,
                                  const StageOptions& options = kOptions) {
  auto stage = Stage::open(device, model.fragments, options);
  if (!stage.ok()) qFatal("%s", stage.error().message.c_str());
  return std::move(stage).value();
}

// The logits of tokens first .. last - 1 at their positions. Empty, with the reason said, after an
// error.
std::vector<float> feed(Stage& stage, uint32_t sequence, std::span<const int32_t> tokens,
                        int64_t first, int64_t last) {
  std::vector<RowInfo> rows;
  std::vector<uint32_t> wanted;
  for (int64_t i = first; i < last; ++i) {
    wanted.push_back(static_cast<uint32_t>(rows.size()));
    rows.push_back({sequence, static_cast<uint32_t>(i)});
  }
  const auto count = static_cast<size_t>(last - first);
  auto logits = stage.step({.rows = rows,
                            .tokens = tokens.subspan(static_cast<size_t>(first), count),
                            .output_rows = wanted});
  if (logits.ok()) return std::move(logits).value();
  qWarning("%s", logits.error().message.c_str());
  return {};
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && !a.empty() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// The last so many rows' logits of a run.
std::span<const float> tail(const std::vector<float>& logits, int64_t rows) {
  return std::span(logits).last(static_cast<size_t>(rows) * (logits.size() / kTokens));
}

std::vector<std::unique_ptr<Device>> all_devices() {
  std::vector<std::unique_ptr<Device>> devices;
  for (const DeviceInfo& info : list_devices()) {
    auto device = open_device(info.id, 2);
    if (!device.ok()) qFatal("%s", device.error().message.c_str());
    devices.push_back(std::move(device).value());
  }
  return devices;
}

}  // namespace

class CacheTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void no_page_is_lost_or_written_while_shared();
  void a_lone_sequence_lies_in_one_piece();
  void a_fork_goes_on_as_if_it_had_computed_all();
  void forks_never_need_more_than_their_sequences();
  void what_is_trimmed_can_be_computed_again();
  void full_caches_refuse_a_step_and_change_nothing();
  void saved_caches_go_on_on_any_device();
  void caches_are_loaded_in_parts();
  void a_load_refuses_what_no_stage_saved();
  void sequences_and_positions_beyond_are_refused();
};

void CacheTest::no_page_is_lost_or_written_while_shared() {
  std::set<Lists> seen;
  std::vector<CachePages> open{CachePages(kTexts, kPages, kPagePositions)};
  int refused = 0, copied = 0;
  const auto reach = [&](const CachePages& pages) {
    const Lists lists = lists_of(pages);
    const auto users = users_of(lists);
    QCOMPARE(pages.free_pages() + int64_t(users.size()), kPages);
    for (const auto& [page, count] : users) QVERIFY(page < kPages);
    if (seen.insert(renamed(lists)).second) open.push_back(pages);
  };
  // Every choice of what each sequence writes: nothing, or a range that begins where it has pages.
  std::vector<std::vector<CachePages::Range>> writes{{}};
  for (uint32_t s = 0; s < kTexts; ++s) {
    const auto before = writes;
    for (const auto& ranges : before) {
      for (int64_t first = 0; first < kEach; ++first) {
        for (int64_t last = first + 1; last <= kEach; ++last) {
          writes.push_back(ranges);
          writes.back().push_back({s, first, last});
        }
      }
    }
  }

  while (!open.empty()) {
    const CachePages state = open.back();
    open.pop_back();
    const Lists before = lists_of(state);
    for (uint32_t s = 0; s < kTexts; ++s) {
      const auto held = int64_t(before[s].size()) * kPagePositions;
      for (int64_t length = 0; length <= held; ++length) {
        CachePages trimmed = state;
        trimmed.trim(s, length);
        QCOMPARE(int64_t(trimmed.pages_of(s).size()), (length + 1) / kPagePositions);
        reach(trimmed);
        for (uint32_t to = 0; to < kTexts; ++to) {
          if (to == s) continue;
          CachePages forked = state;
          forked.fork(s, to, length);
          const auto list = forked.pages_of(to);
          QVERIFY(std::equal(list.begin(), list.end(), before[s].begin()));
          reach(forked);
        }
      }
    }
    for (const auto& ranges : writes) {
      // How many pages that takes: writers of a shared page each their own, but for the last user.
      std::map<uint32_t, int> writers;
      int64_t needed = 0;
      bool possible = !ranges.empty();
      for (const auto& range : ranges) {
        const auto& list = before[range.sequence];
        if (range.first > int64_t(list.size()) * kPagePositions) possible = false;
        for (int64_t i = range.first / kPagePositions; i * kPagePositions < range.last; ++i) {
          if (i < int64_t(list.size()))
            ++writers[list[size_t(i)]];
          else
            ++needed;
        }
      }
      if (!possible) continue;
      const auto users = users_of(before);
      for (const auto& [page, count] : writers)
        needed += count == users.at(page) ? count - 1 : count;

      CachePages written = state;
      const auto copies = written.make_writable(ranges);
      QCOMPARE(copies.ok(), needed <= state.free_pages());
      if (!copies.ok()) {
        ++refused;
        QCOMPARE(copies.error().code, ErrorCode::kNoSpace);
        QCOMPARE(lists_of(written), before);
        QCOMPARE(written.free_pages(), state.free_pages());
        continue;
      }
      const Lists after = lists_of(written);
      const auto users_after = users_of(after);
      for (uint32_t s = 0; s < kTexts; ++s) {
        const auto range =
            std::ranges::find_if(ranges, [s](const auto& r) { return r.sequence == s; });
        for (size_t i = 0; i < after[s].size(); ++i) {
          const bool in_range = range != ranges.end() &&
                                int64_t(i) >= range->first / kPagePositions &&
                                int64_t(i) * kPagePositions < range->last;
          if (in_range) QCOMPARE(users_after.at(after[s][i]), 1);
          if (i >= before[s].size()) {
            QVERIFY(in_range);
          } else if (after[s][i] != before[s][i]) {
            // A page of its own, to which what stood there is copied; the old one has users yet.
            QVERIFY(in_range && !users.contains(after[s][i]));
            QVERIFY(std::ranges::any_of(copies.value(), [&](const CachePages::Copy& copy) {
              return copy.from == before[s][i] && copy.to == after[s][i];
            }));
            QVERIFY(users_after.contains(before[s][i]));
            ++copied;
          }
        }
      }
      reach(written);
    }
  }
  QVERIFY(seen.size() > 50);
  QVERIFY(refused > 0 && copied > 0);
}

void CacheTest::a_lone_sequence_lies_in_one_piece() {
  CachePages pages(2, 8, 32);
  const CachePages::Range first{0, 0, 70}, second{0, 70, 200};
  QVERIFY(pages.make_writable({&first, 1}).ok());
  QVERIFY(pages.make_writable({&second, 1}).ok());
  const auto list = pages.pages_of(0);
  const std::vector<uint32_t> expected{0, 1, 2, 3, 4, 5, 6};
  QVERIFY(std::equal(list.begin(), list.end(), expected.begin(), expected.end()));
  pages.trim(0, 0);
  const CachePages::Range again{1, 0, 200};
  QVERIFY(pages.make_writable({&again, 1}).ok());
  QVERIFY(std::ranges::equal(pages.pages_of(1), expected));
}

// On both sides of a page's end, on every device: the fork, what it was made from, and both at
// once.
void CacheTest::a_fork_goes_on_as_if_it_had_computed_all() {
  const SampleModel model = make_sample_model({.weights = DType::kQ8_0});
  const std::vector<int32_t> ours = tokens_of(3);
  for (const auto& device : all_devices()) {
    for (const int64_t at : {1, 31, 32, 33, 64}) {
      // Another text from there on, alone in a stage.
      std::vector<int32_t> theirs = tokens_of(11);
      std::copy_n(ours.begin(), at, theirs.begin());
      const auto alone = open_stage(*device, model);
      const auto our_logits = feed(*alone, 0, ours, 0, kTokens);
      const auto their_logits = feed(*alone, 1, theirs, 0, kTokens);

      const auto stage = open_stage(*device, model);
      QVERIFY(same_bits(feed(*stage, 0, ours, 0, kTokens), our_logits));
      QVERIFY(stage->fork(0, 2, at).ok());
      QVERIFY(same_bits(feed(*stage, 2, theirs, at, kTokens), tail(their_logits, kTokens - at)));
      // The first one's pages are as they were, and writing them again leaves the fork's alone.
      QVERIFY(same_bits(feed(*stage, 0, ours, at, kTokens), tail(our_logits, kTokens - at)));
      QVERIFY(stage->fork(0, 1, kTokens).ok());
      QVERIFY(same_bits(feed(*stage, 0, theirs, at, kTokens), tail(their_logits, kTokens - at)));
      QVERIFY(same_bits(feed(*stage, 1, ours, kTokens - 1, kTokens), tail(our_logits, 1)));
      QVERIFY(same_bits(feed(*stage, 2, theirs, kTokens - 1, kTokens), tail(their_logits, 1)));
    }
  }
}

void CacheTest::forks_never_need_more_than_their_sequences() {
  const SampleModel model = make_sample_model({});
  auto device = open_device("cpu", 1);
  const auto stage = open_stage(*device.value(), model);
  const std::vector<int32_t> tokens = tokens_of(5);
  const auto logits = feed(*stage, 0, tokens, 0, kTokens);
  QVERIFY(stage->fork(0, 1, kTokens).ok());
  QVERIFY(stage->fork(0, 2, kTokens).ok());
  // All three write everything anew, with the memory of three.
  for (uint32_t s = 0; s < 3; ++s) QVERIFY(same_bits(feed(*stage, s, tokens, 0, kTokens), logits));
}

void CacheTest::what_is_trimmed_can_be_computed_again() {
  const SampleModel model = make_sample_model({});
  auto device = open_device("cpu", 1);
  const auto stage = open_stage(*device.value(), model);
  const std::vector<int32_t> tokens = tokens_of(5);
  const auto logits = feed(*stage, 0, tokens, 0, kTokens);
  QVERIFY(stage->trim(0, 40).ok());
  QVERIFY(feed(*stage, 0, tokens, 41, 42).empty());  // A gap.
  QVERIFY(same_bits(feed(*stage, 0, tokens, 40, kTokens), tail(logits, kTokens - 40)));
  QVERIFY(stage->trim(0, 1000).ok());  // Nothing is there to forget.
  QVERIFY(same_bits(feed(*stage, 0, tokens, kTokens - 1, kTokens), tail(logits, 1)));
  QVERIFY(stage->trim(0, 0).ok());
  QVERIFY(same_bits(feed(*stage, 0, tokens, 0, kTokens), logits));
}

void CacheTest::full_caches_refuse_a_step_and_change_nothing() {
  const SampleModel model = make_sample_model({});
  auto device = open_device("cpu", 1);
  StageOptions options = kOptions;
  options.positions = 96;  // Three pages, for three sequences.
  const auto stage = open_stage(*device.value(), model, options);
  QVERIFY(stage->device_bytes() < open_stage(*device.value(), model)->device_bytes());
  const std::vector<int32_t> tokens = tokens_of(5);
  QVERIFY(!feed(*stage, 0, tokens, 0, 64).empty());
  QVERIFY(!feed(*stage, 1, tokens, 0, 32).empty());
  const std::vector<RowInfo> rows{{0, 64}, {1, 31}};
  const std::vector<int32_t> two{1, 2};
  const auto full = stage->step({.rows = rows, .tokens = two});
  QVERIFY(!full.ok());
  QCOMPARE(full.error().code, ErrorCode::kNoSpace);
  QVERIFY2(full.error().message.find("0 free pages of 3") != std::string::npos,
           full.error().message.c_str());
  // What one gives up another may have.
  QVERIFY(stage->trim(1, 0).ok());
  const auto whole = feed(*open_stage(*device.value(), model), 0, tokens, 0, kTokens);
  QVERIFY(same_bits(feed(*stage, 0, tokens, 64, kTokens), tail(whole, kTokens - 64)));
}

// Every device saves the same bytes, and goes on from those of any other.
void CacheTest::saved_caches_go_on_on_any_device() {
  const std::vector<int32_t> tokens = tokens_of(9);
  for (const DType states : {DType::kF16, DType::kF32}) {
    const SampleModel model = make_sample_model({.weights = DType::kQ4_0, .states = states});
    ByteVector first_saved;
    std::vector<float> logits;
    for (const auto& device : all_devices()) {
      const auto stage = open_stage(*device, model);
      QVERIFY(!feed(*stage, 1, tokens_of(2), 0, 50).empty());  // So that pages are elsewhere.
      const auto whole = feed(*stage, 0, tokens, 0, kTokens);
      const auto saved = stage->save(0, 0, 70);
      QVERIFY(saved.ok());
      if (logits.empty()) {
        logits = whole;
        first_saved = saved.value();
      }
      QVERIFY(same_bits(whole, logits));
      QVERIFY(saved.value() == first_saved);
      const auto heir = open_stage(*device, model);
      const auto loaded = heir->load(2, first_saved);
      QVERIFY2(loaded.ok(), loaded.ok() ? "" : loaded.error().message.c_str());
      QVERIFY(same_bits(feed(*heir, 2, tokens, 70, kTokens), tail(logits, kTokens - 70)));
    }
  }
}

void CacheTest::caches_are_loaded_in_parts() {
  const SampleModel model = make_sample_model({});
  auto device = open_device("cpu", 1);
  const std::vector<int32_t> tokens = tokens_of(9);
  const auto stage = open_stage(*device.value(), model);
  const auto logits = feed(*stage, 0, tokens, 0, kTokens);
  const auto heir = open_stage(*device.value(), model);
  QVERIFY(!heir->load(0, stage->save(0, 20, 40).value()).ok());  // A gap.
  for (const auto& [first, last] : {std::pair{0, 20}, {20, 33}, {33, 64}, {64, 70}})
    QVERIFY(heir->load(0, stage->save(0, first, last).value()).ok());
  QVERIFY(same_bits(feed(*heir, 0, tokens, 70, kTokens), tail(logits, kTokens - 70)));
  // What a fork shares is not written by a load into one of them.
  QVERIFY(heir->fork(0, 1, 70).ok());
  QVERIFY(!feed(*stage, 1, tokens_of(4), 0, 70).empty());
  QVERIFY(heir->load(1, stage->save(1, 10, 40).value()).ok());
  QVERIFY(same_bits(feed(*heir, 0, tokens, 70, kTokens), tail(logits, kTokens - 70)));
}

void CacheTest::a_load_refuses_what_no_stage_saved() {
  auto device = open_device("cpu", 1);
  const std::vector<int32_t> tokens = tokens_of(9);
  for (const DType states : {DType::kF16, DType::kF32}) {
    const SampleModel model = make_sample_model({.states = states});
    const auto stage = open_stage(*device.value(), model);
    QVERIFY(!feed(*stage, 0, tokens, 0, 40).empty());
    const ByteVector saved = stage->save(0, 3, 5).value();
    const auto refuses = [&](ByteSpan bytes, const char* words) {
      const auto loaded = stage->load(0, bytes);
      const bool right = !loaded.ok() && loaded.error().message.find(words) != std::string::npos;
      if (!right)
        qWarning("%s: %s", words, loaded.ok() ? "loaded" : loaded.error().message.c_str());
      return right;
    };
    QVERIFY(stage->load(0, saved).ok());
    // Cut off anywhere, and any byte changed.
    for (size_t size = 0; size < saved.size(); ++size)
      QVERIFY(refuses(ByteSpan(saved).first(size), "saved caches"));
    for (size_t at = 0; at < saved.size(); at += 7) {
      ByteVector changed = saved;
      changed[at] ^= std::byte{0x10};
      QVERIFY(refuses(changed, "saved caches"));
    }
    ByteVector longer = saved;
    longer.push_back({});
    QVERIFY(refuses(longer, "bytes, not"));
    // With a digest that is right, yet holding what kernels must never read.
    const auto with_last_row = [&](uint32_t bits) {
      ByteVector changed(saved.begin(), saved.end() - 32);
      std::memcpy(changed.data() + changed.size() - 4, &bits, 4);
      const Digest digest = digest_of(changed);
      changed.insert(changed.end(), digest.bytes.begin(), digest.bytes.end());
      return changed;
    };
    QVERIFY(stage->load(0, with_last_row(0x3C003C00)).ok());
    QVERIFY(refuses(with_last_row(states == DType::kF16 ? 0x7C000000 : 0x7F800000), "position 4"));
    QVERIFY(refuses(with_last_row(states == DType::kF16 ? 0x0000FE00 : 0xFFC00000), "position 4"));
    if (states == DType::kF32) QVERIFY(refuses(with_last_row(0x00000001), "position 4"));

    // Of another model, or another kind of cache.
    const SampleModel wider = make_sample_model({.inner = 128, .states = states});
    const auto other = open_stage(*device.value(), wider);
    QVERIFY(!feed(*other, 0, tokens, 0, 40).empty());
    QVERIFY(refuses(other->save(0, 3, 5).value(), "of another version, model"));
  }
}

void CacheTest::sequences_and_positions_beyond_are_refused() {
  const SampleModel model = make_sample_model({});
  auto device = open_device("cpu", 1);
  const auto stage = open_stage(*device.value(), model);
  QVERIFY(!feed(*stage, 0, tokens_of(9), 0, 40).empty());
  QVERIFY(stage->fork(0, 1, 40).ok());
  QVERIFY(!stage->fork(0, 1, 41).ok());
  QVERIFY(!stage->fork(0, 1, -1).ok());
  QVERIFY(!stage->fork(0, 0, 40).ok());
  QVERIFY(!stage->fork(0, 3, 40).ok());
  QVERIFY(!stage->fork(3, 0, 40).ok());
  QVERIFY(stage->fork(0, 1, 0).ok());
  QVERIFY(!stage->trim(3, 0).ok());
  QVERIFY(!stage->trim(0, -1).ok());
  QVERIFY(stage->save(0, 0, 40).ok());
  QVERIFY(!stage->save(0, 0, 41).ok());
  QVERIFY(!stage->save(0, -1, 40).ok());
  QVERIFY(!stage->save(0, 5, 5).ok());
  QVERIFY(!stage->save(1, 0, 1).ok());  // It is empty now.
  QVERIFY(!stage->save(3, 0, 1).ok());
  QVERIFY(!stage->load(3, stage->save(0, 0, 40).value()).ok());
  StageOptions options = kOptions;
  options.positions = -1;
  QVERIFY(!Stage::open(*device.value(), model.fragments, options).ok());
}

QTEST_GUILESS_MAIN(CacheTest)
#include "cache_test.moc"
