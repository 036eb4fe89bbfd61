#include "compute/backends/cuda/simt_shim.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#define SHOAL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SHOAL_ASAN 1
#endif
#endif
#ifdef SHOAL_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace shoal::compute::cuda::simt {

// Who touched an element last. Two accesses are ordered when a barrier of the block lies between,
// or within a warp one of the warp.
struct Access {
  int64_t thread = -1;  // -1: nobody; -2: several of the warp.
  uint32_t warp = 0;
  uint32_t block_epoch = 0, warp_epoch = 0;
};

struct Element {
  Access writer;
  Access readers[2];  // Of one warp, and of any other.
};

struct Shared {
  size_t element_bytes = 0;
  std::vector<std::byte> bytes;
  std::vector<Element> elements;
};

namespace {

constexpr uint32_t kWarpSize = 32;
constexpr uint32_t kThreadsMax = 1024;
#ifdef SHOAL_ASAN
constexpr size_t kStackBytes = 256 << 10;
#else
constexpr size_t kStackBytes = 64 << 10;
#endif

enum class State : uint8_t { kReady, kAtBlockBarrier, kInWarp, kEnded };

// A fiber has a stack for good and runs one thread of a block after another.
struct Fiber {
  ucontext_t first;  // How it is entered the first time,
  jmp_buf jump;      // and where it goes on.
  std::byte* stack = nullptr;
  bool entered = false;
  Index index;
  State state = State::kReady;
  int line = 0;             // Where it waits.
  uint32_t warp_epoch = 0;  // Barriers of its warp that it passed.
  uint32_t meetings = 0;    // Of its warp that it took part in.
};

// What the lanes of a warp bring to a meeting; two, as a quick lane may be at the next one already.
struct Warp {
  std::array<std::array<uint32_t, 3>, kWarpSize> words[2];
  uint32_t arrived = 0;
  int line = 0;
};

// Runs blocks of so many threads. Belongs to the thread that calls run_grid().
class Block {
 public:
  explicit Block(uint32_t threads) : fibers_(threads), warps_(threads / kWarpSize) {
    stacks_ = std::make_unique_for_overwrite<std::byte[]>(kStackBytes * threads);
  }

  void seed(uint64_t seed) { random_ = seed; }
  // Once it failed, no other block can be run.
  Result<void> run(Index index, Index grid, const std::function<void()>& thread);

  // Called by the fiber that runs.
  void wait_for_block(int line);
  const Warp& meet_warp(const std::array<uint32_t, 3>& words, int line, uint32_t& turn);
  void pass_warp_barrier() { ++current().warp_epoch; }
  std::byte* touch(Shared& array, size_t index, bool writes);
  Shared& shared(const void* key, size_t count, size_t element_bytes);
  [[noreturn]] void fail(std::string text);

  Fiber& current() { return fibers_[current_]; }

  Index index_, size_, grid_;

 private:
  static void enter();
  void prepare(Fiber& fiber);
  void leave();  // To the scheduler.
  void switch_to(uint32_t fiber);
  void make_ready(uint32_t fiber) {
    fibers_[fiber].state = State::kReady;
    ready_.push_back(fiber);
  }
  uint32_t draw(uint32_t below) {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return static_cast<uint32_t>((random_ >> 20) % below);
  }
  bool ordered(const Access& before) const;
  Access access() const;

  uint64_t random_ = 1;
  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  std::unique_ptr<std::byte[]> stacks_;
#ifdef SHOAL_ASAN
  ucontext_t scheduler_context_;
#else
  jmp_buf scheduler_;
#endif
  const std::function<void()>* thread_ = nullptr;
  std::vector<uint32_t> ready_;
  uint32_t current_ = 0;
  uint32_t at_barrier_ = 0, ended_ = 0;
  uint32_t epoch_ = 0;  // Barriers of the block that all have passed.
  int barrier_line_ = 0;
  std::map<const void*, Shared> arrays_;
  std::string fault_;
};

thread_local Block* running = nullptr;  // Kernels have no place to hand it through.

Block& block() {
  SHOAL_CHECK(running != nullptr);
  return *running;
}

#ifdef SHOAL_ASAN
thread_local const void* scheduler_stack = nullptr;
thread_local size_t scheduler_stack_bytes = 0;
#endif

void Block::enter() {
#ifdef SHOAL_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_bytes);
#endif
  for (;;) {
    Block& self = block();
    (*self.thread_)();
    self.current().state = State::kEnded;
    ++self.ended_;
    self.leave();
  }
}

// swapcontext() asks the system about signals each time; jumps do not, and are all that is needed
// once a fiber was entered. The address sanitizer knows only the former.
#ifdef SHOAL_ASAN

void Block::leave() {
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, scheduler_stack, scheduler_stack_bytes);
  swapcontext(&current().first, &scheduler_context_);
  __sanitizer_finish_switch_fiber(fake, &scheduler_stack, &scheduler_stack_bytes);
}

void Block::switch_to(uint32_t fiber) {
  current_ = fiber;
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, stacks_.get() + kStackBytes * fiber, kStackBytes);
  swapcontext(&scheduler_context_, &fibers_[fiber].first);
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
}

#else

__attribute__((noinline)) void Block::leave() {
  if (_setjmp(current().jump) == 0) _longjmp(scheduler_, 1);
}

__attribute__((noinline)) void Block::switch_to(uint32_t fiber) {
  current_ = fiber;
  if (_setjmp(scheduler_) != 0) return;
  if (current().entered) _longjmp(current().jump, 1);
  current().entered = true;
  setcontext(&current().first);
}

#endif

void Block::prepare(Fiber& fiber) {
  if (fiber.stack != nullptr) return;
  fiber.stack = stacks_.get() + kStackBytes * static_cast<size_t>(&fiber - fibers_.data());
  getcontext(&fiber.first);
  fiber.first.uc_stack.ss_sp = fiber.stack;
  fiber.first.uc_stack.ss_size = kStackBytes;
  fiber.first.uc_link = nullptr;
  makecontext(&fiber.first, &Block::enter, 0);
}

Result<void> Block::run(Index index, Index grid, const std::function<void()>& thread) {
  index_ = index;
  grid_ = grid;
  size_ = {static_cast<uint32_t>(fibers_.size()), 1, 1};
  thread_ = &thread;
  ready_.clear();
  at_barrier_ = ended_ = epoch_ = 0;
  for (auto& [key, array] : arrays_) std::ranges::fill(array.elements, Element{});
  for (Warp& warp : warps_) warp.arrived = 0;
  for (uint32_t i = 0; i < fibers_.size(); ++i) {
    Fiber& fiber = fibers_[i];
    fiber.index = {i, 0, 0};
    fiber.warp_epoch = fiber.meetings = 0;
    prepare(fiber);
    make_ready(i);
  }
  while (!ready_.empty()) {
    const uint32_t at = draw(static_cast<uint32_t>(ready_.size()));
    const uint32_t fiber = ready_[at];
    ready_[at] = ready_.back();
    ready_.pop_back();
    switch_to(fiber);
    if (!fault_.empty()) break;
  }
  if (fault_.empty() && ended_ != fibers_.size()) {
    for (const Fiber& fiber : fibers_) {
      if (fiber.state == State::kEnded) continue;
      fault_ = "thread " + std::to_string(fiber.index.x) + " waits at line " +
               std::to_string(fiber.line) + " for threads that ended or wait elsewhere";
      break;
    }
  }
  if (fault_.empty()) return {};
  return Error{ErrorCode::kInvalid,
               "block " + std::to_string(index.x) + ", " + std::to_string(index.y) + ": " + fault_};
}

// The fibers of a block that failed are never resumed; their stacks hold nothing that must be
// ended.
void Block::fail(std::string text) {
  if (fault_.empty()) fault_ = std::move(text);
  for (;;) leave();
}

void Block::wait_for_block(int line) {
  if (at_barrier_ > 0 && barrier_line_ != line) {
    fail("threads wait at different barriers: lines " + std::to_string(barrier_line_) + " and " +
         std::to_string(line));
  }
  barrier_line_ = line;
  current().line = line;
  if (++at_barrier_ < fibers_.size()) {
    current().state = State::kAtBlockBarrier;
    return leave();
  }
  at_barrier_ = 0;
  ++epoch_;
  for (uint32_t i = 0; i < fibers_.size(); ++i) {
    if (i != current_) make_ready(i);
  }
}

const Warp& Block::meet_warp(const std::array<uint32_t, 3>& words, int line, uint32_t& turn) {
  const uint32_t number = current_ / kWarpSize;
  Warp& warp = warps_[number];
  if (warp.arrived > 0 && warp.line != line) {
    fail("lanes of a warp meet at different places: lines " + std::to_string(warp.line) + " and " +
         std::to_string(line));
  }
  warp.line = line;
  turn = current().meetings++ % 2;
  warp.words[turn][current_ % kWarpSize] = words;
  current().line = line;
  if (++warp.arrived < kWarpSize) {
    current().state = State::kInWarp;
    leave();
    return warp;
  }
  warp.arrived = 0;
  for (uint32_t i = number * kWarpSize; i < (number + 1) * kWarpSize; ++i) {
    if (i != current_) make_ready(i);
  }
  return warp;
}

Shared& Block::shared(const void* key, size_t count, size_t element_bytes) {
  Shared& array = arrays_[key];
  if (array.elements.empty()) {
    array.element_bytes = element_bytes;
    array.elements.resize(count);
    array.bytes.resize(count * element_bytes);
  }
  return array;
}

Access Block::access() const {
  return {current_, current_ / kWarpSize, epoch_, fibers_[current_].warp_epoch};
}

// Whether the running thread may rely on `before` being over.
bool Block::ordered(const Access& before) const {
  if (before.thread == -1 || before.thread == int64_t{current_}) return true;
  if (before.block_epoch != epoch_) return true;
  return before.warp == current_ / kWarpSize && before.warp_epoch != fibers_[current_].warp_epoch;
}

std::byte* Block::touch(Shared& array, size_t index, bool writes) {
  const auto say = [&](const char* what) {
    return "thread " + std::to_string(current_) + " " + what + " element " + std::to_string(index) +
           " of a shared array of " + std::to_string(array.elements.size());
  };
  if (index >= array.elements.size()) fail(say("names") + ", beyond its end");
  Element& element = array.elements[index];
  if (!writes && element.writer.thread == -1) fail(say("reads") + " before it was written");
  if (!ordered(element.writer)) {
    fail(say(writes ? "writes" : "reads") + ", which thread " +
         std::to_string(element.writer.thread) + " wrote with no barrier between");
  }
  const Access now = access();
  if (writes) {
    for (const Access& reader : element.readers) {
      if (!ordered(reader)) fail(say("writes") + ", which others read with no barrier between");
    }
    element = Element{now, {}};
  } else {
    Access& own =
        element
            .readers[element.readers[0].thread == -1 || element.readers[0].block_epoch != epoch_ ||
                             element.readers[0].warp == now.warp
                         ? 0
                         : 1];
    const bool joins = own.thread != -1 && own.block_epoch == epoch_ && own.warp == now.warp &&
                       own.warp_epoch == now.warp_epoch && own.thread != now.thread;
    own = now;
    if (joins) own.thread = -2;
  }
  return array.bytes.data() + index * array.element_bytes;
}

}  // namespace

const Index& thread_index() { return block().current().index; }
const Index& block_index() { return block().index_; }
const Index& block_size() { return block().size_; }
const Index& grid_size() { return block().grid_; }

void block_barrier(int line) { block().wait_for_block(line); }

void warp_barrier(int line) {
  uint32_t turn = 0;
  block().meet_warp({}, line, turn);
  block().pass_warp_barrier();
}

uint32_t shuffle(uint32_t value, uint32_t from_lane, int line) {
  if (from_lane >= kWarpSize) block().fail("a shuffle from lane " + std::to_string(from_lane));
  uint32_t turn = 0;
  const Warp& warp = block().meet_warp({value}, line, turn);
  return warp.words[turn][from_lane][0];
}

void warp_product(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t b0) {
  uint32_t turn = 0;
  const Warp& warp = block().meet_warp({a0, a1, b0}, 0, turn);
  const uint32_t g = lane() / 4, t = lane() % 4;
  const auto byte_of = [](uint32_t word, uint32_t i) {
    return int{static_cast<int8_t>(word >> (8 * i))};
  };
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t row = g, half = i / 2, column = 2 * t + i % 2;
    for (uint32_t k = 0; k < 16; ++k) {
      c[i] += byte_of(warp.words[turn][row * 4 + k / 4][half], k % 4) *
              byte_of(warp.words[turn][column * 4 + k / 4][2], k % 4);
    }
  }
}

Shared& shared_array(const void* key, size_t count, size_t element_bytes) {
  return block().shared(key, count, element_bytes);
}
std::byte* shared_read(Shared& array, size_t index) { return block().touch(array, index, false); }
std::byte* shared_write(Shared& array, size_t index) { return block().touch(array, index, true); }

Result<void> run_grid(Index blocks, uint32_t threads, uint64_t seed,
                      const std::function<void()>& thread) {
  SHOAL_CHECK(running == nullptr);
  if (threads == 0 || threads > kThreadsMax || threads % kWarpSize != 0) {
    return Error{ErrorCode::kInvalid, "a block of " + std::to_string(threads) + " threads"};
  }
  if (blocks.x == 0 || blocks.x > 0x7FFFFFFFu || blocks.y == 0 || blocks.y > 65535) {
    return Error{ErrorCode::kInvalid, "a grid of " + std::to_string(blocks.x) + " x " +
                                          std::to_string(blocks.y) + " blocks"};
  }
  // Made once for each size, as stacks are dear to touch the first time.
  thread_local std::map<uint32_t, Block> known;
  Block& block = known.try_emplace(threads, threads).first->second;
  block.seed(seed * 2 + 1);
  running = &block;
  Result<void> result;
  // Forwards or backwards: no block may rely on another's being over.
  const uint64_t count = uint64_t{blocks.x} * blocks.y;
  for (uint64_t i = 0; i < count && result.ok(); ++i) {
    const uint64_t at = seed % 2 == 0 ? i : count - 1 - i;
    const Index index{static_cast<uint32_t>(at % blocks.x), static_cast<uint32_t>(at / blocks.x),
                      0};
    result = block.run(index, blocks, thread);
  }
  running = nullptr;
  if (!result.ok()) known.erase(threads);
  return result;
}

}  // namespace shoal::compute::cuda::simt
