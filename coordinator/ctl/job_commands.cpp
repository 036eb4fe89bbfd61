// shoalctl job: submit, list, show, watch, results, and what an administrator may change.

#include <algorithm>
#include <cstdio>

#include "base/digest.h"
#include "base/files.h"
#include "base/host.h"
#include "base/text.h"
#include "coordinator/ctl/commands.h"
#include "schema/limits.h"
#include "schema/transport.h"

namespace shoal::ctl {
namespace {

constexpr kj::Duration kWatchEvery = 500 * kj::MILLISECONDS;
constexpr size_t kBarWidth = 30;

const char* state_word(rpc::JobInfo::State state) {
  switch (state) {
    case rpc::JobInfo::State::QUEUED: return "queued";
    case rpc::JobInfo::State::RUNNING: return "running";
    case rpc::JobInfo::State::PAUSED: return "paused";
    case rpc::JobInfo::State::DONE: return "done";
    case rpc::JobInfo::State::FAILED: return "failed";
    case rpc::JobInfo::State::CANCELLED: return "cancelled";
    default: return "unknown";
  }
}

bool is_over(rpc::JobInfo::State state) {
  return state == rpc::JobInfo::State::DONE || state == rpc::JobInfo::State::FAILED ||
         state == rpc::JobInfo::State::CANCELLED;
}

struct Sums {
  uint64_t items = 0, done = 0, pending = 0, quarantined = 0;
};
Sums sums_of(rpc::JobInfo::Reader job) {
  Sums sums;
  for (const auto task : job.getTasks()) {
    sums.items += task.getItems();
    sums.done += task.getItemsDone();
    sums.pending += task.getItemsPending();
    sums.quarantined += task.getItemsQuarantined();
  }
  return sums;
}

Json job_json(rpc::JobInfo::Reader job) {
  Json tasks = Json::array();
  for (const auto task : job.getTasks()) {
    Json after = Json::array();
    for (const auto name : task.getAfter()) after.push_back(name.cStr());
    tasks.push_back({{"name", task.getName().cStr()},
                     {"kind", task.getKind().cStr()},
                     {"model", task.getModel().cStr()},
                     {"state", task.getState().cStr()},
                     {"after", std::move(after)},
                     {"items", task.getItems()},
                     {"items_done", task.getItemsDone()},
                     {"items_pending", task.getItemsPending()},
                     {"items_leased", task.getItemsLeased()},
                     {"items_quarantined", task.getItemsQuarantined()},
                     {"digest", task.getDigest().cStr()}});
  }
  return {{"id", job.getId()},
          {"name", job.getName().cStr()},
          {"state", state_word(job.getState())},
          {"reason", job.getReason().cStr()},
          {"priority", job.getPriority()},
          {"submitted_at_ms", job.getSubmittedAtMs()},
          {"ended_at_ms", job.getEndedAtMs()},
          {"deadline_ms", job.getDeadlineMs()},
          {"eta_ms", job.getEtaMs()},
          {"credit", job.getCredit()},
          {"tasks", std::move(tasks)}};
}

std::string show_duration(uint64_t ms) {
  const uint64_t seconds = (ms + 999) / 1000;
  if (seconds < 120) return std::to_string(seconds) + " s";
  if (seconds < 7200) return std::to_string(seconds / 60) + " min";
  if (seconds < 2 * 86'400) return std::to_string(seconds / 3600) + " h";
  return std::to_string(seconds / 86'400) + " days";
}

std::string show_items(uint64_t items) {
  return std::to_string(items) + (items == 1 ? " item" : " items");
}

std::string show_percent(const Sums& sums) {
  if (sums.items == 0) return "100%";
  return std::to_string((sums.done + sums.quarantined) * 100 / sums.items) + "%";
}

// "[######....          ] 40%  16 of 40 items, 6 waiting for a check, 12 s left". Confirmed items
// are #, those that wait for a check are dots.
std::string progress_line(rpc::JobInfo::Reader job) {
  const Sums sums = sums_of(job);
  const uint64_t all = std::max<uint64_t>(sums.items, 1);
  const size_t done = static_cast<size_t>((sums.done + sums.quarantined) * kBarWidth / all);
  const size_t came = std::min<size_t>(
      static_cast<size_t>((sums.done + sums.quarantined + sums.pending) * kBarWidth / all),
      kBarWidth);
  std::string line = "[" + std::string(done, '#') + std::string(came - done, '.') +
                     std::string(kBarWidth - came, ' ') + "] " + show_percent(sums) + "  " +
                     std::to_string(sums.done) + " of " + show_items(sums.items);
  if (sums.pending > 0) line += ", " + std::to_string(sums.pending) + " waiting for a check";
  if (sums.quarantined > 0) line += ", " + std::to_string(sums.quarantined) + " put aside";
  if (!is_over(job.getState()) && job.getEtaMs() > 0)
    line += ", " + show_duration(job.getEtaMs()) + " left";
  if (job.getState() != rpc::JobInfo::State::RUNNING)
    line += std::string(", ") + state_word(job.getState());
  return line;
}

void print_job(rpc::JobInfo::Reader job) {
  std::printf("Job %llu, %s: %s%s%s\n", static_cast<unsigned long long>(job.getId()),
              printable(job.getName().cStr()).c_str(), state_word(job.getState()),
              job.getReason().size() > 0 ? ", " : "", printable(job.getReason().cStr()).c_str());
  std::printf("%s\n", progress_line(job).c_str());
  std::printf("Submitted %s, ended %s, %s credit\n", show_time(job.getSubmittedAtMs()).c_str(),
              show_time(job.getEndedAtMs()).c_str(), show_credit(job.getCredit()).c_str());
  std::vector<std::vector<std::string>> rows;
  for (const auto task : job.getTasks()) {
    std::string after;
    for (const auto name : task.getAfter())
      after += (after.empty() ? "" : ", ") + std::string(name.cStr());
    rows.push_back({task.getName().cStr(), task.getKind().cStr(), task.getModel().cStr(),
                    task.getState().cStr(), after.empty() ? "-" : after,
                    std::to_string(task.getItems()), std::to_string(task.getItemsDone()),
                    std::to_string(task.getItemsPending()), std::to_string(task.getItemsLeased()),
                    std::to_string(task.getItemsQuarantined())});
  }
  print_table({"TASK", "KIND", "MODEL", "STATE", "AFTER", "ITEMS", "DONE", "TO CHECK", "LEASED",
               "PUT ASIDE"},
              rows);
}

Result<void> send_input(Link& link, rpc::JobUpload::Client& upload, uint32_t index,
                        const std::filesystem::path& path) {
  SHOAL_TRY_ASSIGN(file, InputFile::open(path));
  if (file.size() > limits::kJobInputBytesMax)
    return Error{ErrorCode::kNoSpace, path.string() + " is larger than an input can be"};
  ByteVector chunk(limits::kChunkBytesMax);
  for (uint64_t offset = 0; offset < file.size();) {
    SHOAL_TRY_ASSIGN(count, file.read_at(offset, chunk));
    if (count == 0) return Error{ErrorCode::kIo, path.string() + " ends too early"};
    auto request = upload.writeRequest(capnp::MessageSize{count / 8 + 64, 0});
    request.setInput(index);
    request.setBytes(rpc::kj_bytes(ByteSpan(chunk).first(count)));
    request.send().wait(link.io.waitScope);
    offset += count;
  }
  return {};
}

capnp::Response<rpc::Admin::ShowJobResults> ask(Link& link, uint64_t id) {
  auto request = link.admin.showJobRequest();
  request.setJobId(id);
  return request.send().wait(link.io.waitScope);
}

// Where results go: a file that has its name only when all of it is there, or the standard output.
class SinkFile final : public rpc::ByteSink::Server {
 public:
  explicit SinkFile(std::FILE* file) : file_(file) {}

  kj::Promise<void> write(WriteContext context) override {
    const ByteSpan bytes = rpc::bytes_of(context.getParams().getBytes());
    rpc::require_at_most(bytes.size(), limits::kChunkBytesMax, "bytes");
    digest_.update(bytes);
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size())
      rpc::throw_error({ErrorCode::kNoSpace, "the output cannot be written"});
    return kj::READY_NOW;
  }
  Digest digest() { return digest_.finish(); }

 private:
  std::FILE* file_;
  DigestBuilder digest_;
};

}  // namespace

Result<void> job_submit(const Context& context, const std::string& path) {
  const std::filesystem::path file = path;
  if (!is_there(file)) return Error{ErrorCode::kNotFound, "there is no " + path};
  SHOAL_TRY_ASSIGN(spec, read_file(file, Bytes{int64_t{limits::kJobBytesMax}}));
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    auto request = link.admin.submitJobRequest();
    request.setSpec(std::string(as_text(spec)));
    auto begun = request.send().wait(link.io.waitScope);
    rpc::JobUpload::Client upload = begun.getUpload();
    const auto inputs = begun.getInputs();
    for (uint i = 0; i < inputs.size(); ++i) {
      const std::filesystem::path input = file.parent_path() / inputs[i].cStr();
      if (!is_there(input)) {
        return Error{ErrorCode::kNotFound,
                     "there is no " + input.string() + ", which " + path + " names as an input"};
      }
      SHOAL_TRY(send_input(link, upload, i, input));
    }
    const auto response = upload.finishRequest().send().wait(link.io.waitScope);
    const auto job = response.getJob();
    if (context.json) {
      print_json(job_json(job));
    } else {
      const auto id = static_cast<unsigned long long>(job.getId());
      std::printf("Submitted %s as job %llu: %s. Watch it with shoalctl job watch %llu.\n",
                  printable(job.getName().cStr()).c_str(), id,
                  show_items(sums_of(job).items).c_str(), id);
    }
    return {};
  });
}

Result<void> job_list(const Context& context, uint32_t ended_max) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    auto request = link.admin.listJobsRequest();
    request.setEndedMax(ended_max);
    const auto response = request.send().wait(link.io.waitScope);
    Json all = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const auto job : response.getJobs()) {
      all.push_back(job_json(job));
      const Sums sums = sums_of(job);
      rows.push_back(
          {std::to_string(job.getId()), job.getName().cStr(), state_word(job.getState()),
           show_percent(sums), std::to_string(sums.done), std::to_string(sums.items),
           std::to_string(job.getPriority()), show_time(job.getSubmittedAtMs()),
           job.getEtaMs() > 0 && !is_over(job.getState()) ? show_duration(job.getEtaMs()) : "-",
           show_credit(job.getCredit())});
    }
    if (context.json) {
      print_json({{"jobs", std::move(all)}});
    } else if (rows.empty()) {
      std::printf("No jobs yet: shoalctl job submit FILE.\n");
    } else {
      print_table({"ID", "NAME", "STATE", "PROGRESS", "DONE", "ITEMS", "PRIORITY", "SUBMITTED",
                   "LEFT", "CREDIT"},
                  rows);
    }
    return {};
  });
}

Result<void> job_show(const Context& context, uint64_t id) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    const auto response = ask(link, id);
    if (context.json) {
      Json json = job_json(response.getJob());
      Json events = Json::array();
      for (const auto event : response.getEvents()) {
        events.push_back({{"at_ms", event.getAtMs()},
                          {"kind", event.getKind().cStr()},
                          {"text", event.getText().cStr()}});
      }
      json["events"] = std::move(events);
      print_json(json);
      return {};
    }
    print_job(response.getJob());
    for (const auto event : response.getEvents()) {
      std::printf("%s  %s  %s\n", show_time(event.getAtMs()).c_str(),
                  printable(event.getKind().cStr()).c_str(),
                  printable(event.getText().cStr()).c_str());
    }
    return {};
  });
}

Result<void> job_watch(const Context& context, uint64_t id) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    const bool terminal = stdout_is_terminal();
    std::string shown;
    while (true) {
      const auto response = ask(link, id);
      const auto job = response.getJob();
      const bool over = is_over(job.getState());
      std::string line = context.json
                             ? job_json(job).dump(-1, ' ', false, Json::error_handler_t::replace)
                             : progress_line(job);
      if (!context.json && !over && job.getReason().size() > 0)  // Why nobody works on it.
        line += ", " + printable(job.getReason().cStr());
      if (line != shown) {
        // On a terminal one line that changes; else a line for each change.
        if (terminal && !context.json) {
          const size_t before = shown.size();
          std::printf("\r%s%s", line.c_str(),
                      std::string(before > line.size() ? before - line.size() : 0, ' ').c_str());
        } else {
          std::printf("%s\n", line.c_str());
        }
        std::fflush(stdout);
        shown = std::move(line);
      }
      if (over) {
        if (terminal && !context.json) std::printf("\n");
        if (job.getState() == rpc::JobInfo::State::DONE) return {};
        const std::string reason = printable(job.getReason().cStr());
        if (job.getState() == rpc::JobInfo::State::CANCELLED)
          return Error{ErrorCode::kUnavailable,
                       "the job was " + (reason.empty() ? "cancelled" : reason)};
        return Error{ErrorCode::kUnavailable,
                     "the job failed" + (reason.empty() ? std::string() : ": " + reason)};
      }
      link.io.provider->getTimer().afterDelay(kWatchEvery).wait(link.io.waitScope);
    }
  });
}

Result<void> job_change(const Context& context, uint64_t id, rpc::Admin::JobChange change) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    auto request = link.admin.changeJobRequest();
    request.setJobId(id);
    request.setChange(change);
    const auto response = request.send().wait(link.io.waitScope);
    if (context.json) {
      print_json(job_json(response.getJob()));
    } else {
      print_job(response.getJob());
    }
    return {};
  });
}

Result<void> job_results(const Context& context, uint64_t id, const std::string& task,
                         const std::string& out) {
  if (!out.empty() && is_there(out)) {
    return Error{ErrorCode::kInvalid, out + " is there already: name another file, or remove it"};
  }
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    const std::string unfinished = out + ".part";
    std::FILE* const file = out.empty() ? stdout : std::fopen(unfinished.c_str(), "wb");
    if (file == nullptr) return Error{ErrorCode::kDenied, unfinished + " cannot be written"};
    const auto give_up = [&](Error error) -> Error {
      if (out.empty()) return error;
      std::fclose(file);
      std::error_code ignored;
      std::filesystem::remove(unfinished, ignored);
      return error;
    };
    auto sink = kj::heap<SinkFile>(file);
    SinkFile& taking = *sink;
    rpc::ByteSink::Client sink_client = kj::mv(sink);  // Outlives the call.
    auto request = link.admin.jobResultsRequest();
    request.setJobId(id);
    request.setTask(task);
    request.setSink(sink_client);
    std::string digest;
    uint64_t items = 0;
    try {  // A file that is not whole does not stay.
      const auto response = request.send().wait(link.io.waitScope);
      digest = response.getDigest().cStr();
      items = response.getItems();
    } catch (const kj::Exception& exception) {
      return give_up(rpc::error_of(exception));
    }
    if (std::fflush(file) != 0)
      return give_up({ErrorCode::kNoSpace, "the output cannot be written"});
    if (!digest.empty() && taking.digest().hex() != digest)
      return give_up({ErrorCode::kCorrupt, "what came is not what the coordinator has: try again"});
    if (out.empty()) return {};
    std::fclose(file);
    std::error_code code;
    std::filesystem::rename(unfinished, out, code);
    if (code) return Error{ErrorCode::kDenied, out + " cannot be written"};
    if (context.json) {
      print_json({{"path", out}, {"items", items}, {"digest", digest}});
    } else if (digest.empty()) {
      std::printf("%s has %s done so far; the task is not done yet.\n", out.c_str(),
                  show_items(items).c_str());
    } else {
      std::printf("%s has %s, BLAKE2b-256 %s.\n", out.c_str(), show_items(items).c_str(),
                  digest.c_str());
    }
    return {};
  });
}

}  // namespace shoal::ctl
