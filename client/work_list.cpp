#include "client/work_list.h"

#include <kj/debug.h>

#include <algorithm>

namespace shoal::client {

WorkList::Entry::Entry(WorkList& list, StageWork work)
    : list_(list), work_(std::move(work)), must_end_(nullptr) {
  auto pair = kj::newPromiseAndFulfiller<void>();
  fulfiller_ = kj::mv(pair.fulfiller);
  must_end_ = pair.promise.fork();
  list_.entries_.push_back(this);
}

WorkList::Entry::~Entry() {
  std::erase(list_.entries_, this);
  if (traceless_) return;
  if (ended_.empty()) ended_ = why_.empty() ? Message{"work.given_back", {}} : why_;
  list_.left_(work_, ended_);
}

void WorkList::Entry::ended(Message why) { ended_ = std::move(why); }

kj::Promise<void> WorkList::Entry::must_end() { return must_end_.addBranch(); }

void WorkList::Entry::end(const Message& why, const Message& told) {
  if (!why_.empty()) return;
  why_ = why;
  fulfiller_->reject(kj::Exception(kj::Exception::Type::DISCONNECTED, __FILE__, __LINE__,
                                   kj::heapString(english(told).c_str())));
}

int WorkList::end(const std::function<bool(const StageWork&)>& which, const Message& why,
                  const Message& told) {
  int count = 0;
  for (Entry* entry : entries_) {
    if (entry->work_.unit != 0 || !which(entry->work_)) continue;
    entry->end(why, told);
    ++count;
  }
  return count;
}

std::vector<const StageWork*> WorkList::all() const {
  std::vector<const StageWork*> all;
  for (const Entry* entry : entries_) all.push_back(&entry->work_);
  return all;
}

int WorkList::count(const std::string& device) const {
  return static_cast<int>(std::ranges::count_if(entries_, [&device](const Entry* entry) {
    return entry->work_.device == device && entry->work_.state != StageWork::State::kAhead;
  }));
}

int WorkList::stages(const std::string& device) const {
  return static_cast<int>(std::ranges::count_if(entries_, [&device](const Entry* entry) {
    return entry->work_.device == device && entry->work_.unit == 0;
  }));
}

}  // namespace shoal::client
