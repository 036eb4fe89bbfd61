#include "coordinator/rpc/job_desk.h"

#include <algorithm>

#include "base/text.h"
#include "coordinator/jobs/job_service.h"
#include "coordinator/rpc/model_upload.h"
#include "schema/limits.h"
#include "schema/require.h"
#include "schema/task.h"

namespace shoal {
namespace {

constexpr Bytes kFreeMin{int64_t{256} << 20};         // Left on the disk by an upload.
constexpr kj::Duration kTurn = 1 * kj::MILLISECONDS;  // Between pieces of an upload.
constexpr size_t kPieceBytes = size_t{64} << 10;

// What one input file becomes for one of the tasks that use it.
struct InputUse {
  size_t task = 0;
  ItemsWriter writer;
  ItemSums sums;
};

// One input file on its way in.
struct Input {
  std::string name;
  std::vector<InputUse> uses;
  std::string rest;  // A line that has no end yet.
  int64_t lines = 0, items = 0;
  size_t bytes = 0;
};

class JobUploadServer final : public rpc::JobUpload::Server {
 public:
  JobUploadServer(Parts& parts, NewJob job, std::vector<Input> inputs)
      : parts_(parts), job_(std::move(job)), inputs_(std::move(inputs)) {}

  kj::Promise<void> write(WriteContext context) override {
    const auto params = context.getParams();
    const size_t index = params.getInput();
    rpc::require_at_most(params.getBytes().size(), limits::kChunkBytesMax, "bytes");
    if (done_ || index >= inputs_.size())
      rpc::throw_error({ErrorCode::kInvalid, "there is no such input file to upload"});
    // Writes may overlap, and each takes several turns: one after another.
    std::string text(as_text(rpc::bytes_of(params.getBytes())));
    last_ = last_.addBranch()
                .then([this, index, text = std::move(text)]() mutable -> kj::Promise<void> {
                  return take(inputs_[index], std::move(text)).promise();
                })
                .fork();
    return last_.addBranch();
  }

  kj::Promise<void> finish(FinishContext context) override {
    if (done_) rpc::throw_error({ErrorCode::kInvalid, "the job was submitted already"});
    done_ = true;
    return last_.addBranch().then([this, context]() mutable { return submit(context); });
  }

 private:
  kj::Promise<void> submit(FinishContext context) {
    for (Input& input : inputs_) {
      if (!input.rest.empty()) take_line(input, input.rest);
      input.rest.clear();
      if (input.items == 0)
        rpc::throw_error({ErrorCode::kInvalid, input.name + ": it has no items"});
      for (InputUse& use : input.uses) {
        job_.tasks[use.task].items = rpc::require(use.writer.finish());
        job_.tasks[use.task].sums = use.sums;
      }
    }
    const JobId id = rpc::require(parts_.jobs->submit_job(std::move(job_)));
    return parts_.jobs->stored().then([this, id, context]() mutable {
      write_job_info(context.getResults().initJob(), rpc::require(parts_.jobs->show(id)));
    });
  }

  // Others have their turn between two pieces: turning text into tokens takes its time.
  rpc::Task<void> take(Input& input, std::string bytes) {
    input.bytes += bytes.size();
    if (input.bytes > limits::kJobInputBytesMax) {
      rpc::throw_error({ErrorCode::kNoSpace, input.name + ": it is larger than an input can be"});
    }
    const Bytes free = rpc::require(free_space(parts_.jobs->folder()));
    if (free < kFreeMin) {
      rpc::throw_error({ErrorCode::kNoSpace, "the coordinator's disk has no room for the job"});
    }
    size_t taken = 0;
    while (taken < bytes.size()) {
      const std::string_view piece = std::string_view(bytes).substr(taken, kPieceBytes);
      taken += piece.size();
      take_piece(input, piece);
      if (taken < bytes.size()) co_await parts_.timer.afterDelay(kTurn);
    }
  }

  void take_piece(Input& input, std::string_view piece) {
    while (!piece.empty()) {
      const size_t end = piece.find('\n');
      input.rest += piece.substr(0, end);
      if (input.rest.size() > limits::kItemBytesMax) {
        rpc::throw_error({ErrorCode::kInvalid, input.name + ", line " +
                                                   std::to_string(input.lines + 1) +
                                                   ": it is longer than a line can be"});
      }
      if (end == std::string_view::npos) return;
      piece.remove_prefix(end + 1);
      take_line(input, input.rest);
      input.rest.clear();
    }
  }

  void take_line(Input& input, std::string_view line) {
    input.lines += 1;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    for (InputUse& use : input.uses) {
      const JobTask& task = job_.file.tasks[use.task];
      const Result<WorkItem> item =
          read_input_line(line, task, *job_.models[use.task], input.items);
      if (!item.ok()) {
        rpc::throw_error({item.error().code, input.name + ", line " + std::to_string(input.lines) +
                                                 ": " + item.error().message});
      }
      use.sums.add(item.value(), task.kind);
      rpc::require(use.writer.add(item.value()));
    }
    input.items += 1;
  }

  Parts& parts_;
  NewJob job_;
  std::vector<Input> inputs_;
  bool done_ = false;
  kj::ForkedPromise<void> last_ = kj::Promise<void>(kj::READY_NOW).fork();  // Write.
};

const char* state_text(TaskState state) {
  switch (state) {
    case TaskState::kWaiting: return "waiting";
    case TaskState::kRunning: return "ready";
    case TaskState::kDone: return "done";
    case TaskState::kStopped: return "stopped";
  }
  SHOAL_UNREACHABLE();
}

rpc::JobInfo::State wire_state(const ShownJob& shown) {
  switch (shown.job.state) {
    case JobState::kRunning:
      return shown.begun ? rpc::JobInfo::State::RUNNING : rpc::JobInfo::State::QUEUED;
    case JobState::kPaused: return rpc::JobInfo::State::PAUSED;
    case JobState::kDone: return rpc::JobInfo::State::DONE;
    case JobState::kCancelled: return rpc::JobInfo::State::CANCELLED;
    case JobState::kFaulted: return rpc::JobInfo::State::FAILED;
  }
  SHOAL_UNREACHABLE();
}

// A temporary file goes when it was sent, or nobody takes it.
struct Outgoing {
  std::filesystem::path path;
  bool temporary = false;
  InputFile file;
  ByteVector chunk = ByteVector(limits::kChunkBytesMax);
  uint64_t offset = 0;

  Outgoing(std::filesystem::path path, bool temporary, InputFile file)
      : path(std::move(path)), temporary(temporary), file(std::move(file)) {}
  ~Outgoing() {
    std::error_code ignored;  // The next start removes it.
    if (temporary) std::filesystem::remove(path, ignored);
  }
};

rpc::Task<void> send_all(kj::Own<Outgoing> out, rpc::ByteSink::Client sink) {
  while (out->offset < out->file.size()) {
    const size_t count = rpc::require(out->file.read_at(out->offset, out->chunk));
    if (count == 0) rpc::throw_error({ErrorCode::kIo, "the output's file ends too early"});
    auto request = sink.writeRequest(capnp::MessageSize{count / 8 + 64, 0});
    request.setBytes(rpc::kj_bytes(ByteSpan(out->chunk).first(count)));
    kj::Promise<void> sent = request.send();
    co_await kj::mv(sent);
    out->offset += count;
  }
}

}  // namespace

rpc::JobUpload::Client begin_job_upload(Parts& parts, std::string spec,
                                        std::vector<std::string>& names) {
  NewJob job;
  job.file = rpc::require(read_job_file(spec));
  job.spec = std::move(spec);
  job.tasks.resize(job.file.tasks.size());
  for (const JobTask& task : job.file.tasks) {
    Result<std::shared_ptr<const LiveModel>> model = use_model(parts, task.model);
    if (!model.ok()) {
      rpc::throw_error(
          {model.error().code, "job file: task " + task.name + ": " + model.error().message});
    }
    job.models.push_back(std::move(model).value());
    for (const int32_t token : task.stop) {
      if (token >= job.models.back()->manifest.vocabulary) {
        rpc::throw_error({ErrorCode::kInvalid, "job file: task " + task.name +
                                                   ": stop_tokens: the model has no token " +
                                                   std::to_string(token)});
      }
    }
  }
  std::vector<Input> inputs;
  for (const std::string& name : job.file.inputs) {
    Input input;
    input.name = name;
    for (size_t i = 0; i < job.file.tasks.size(); ++i) {
      if (job.file.tasks[i].input_task || job.file.tasks[i].input != name) continue;
      input.uses.push_back(
          {i,
           rpc::require(ItemsWriter::begin(parts.jobs->folder(), parts.jobs->new_file_name())),
           {}});
    }
    inputs.push_back(std::move(input));
  }
  names = job.file.inputs;
  return kj::heap<JobUploadServer>(parts, std::move(job), std::move(inputs));
}

void write_job_info(rpc::JobInfo::Builder out, const ShownJob& shown) {
  const StoredJob& job = shown.job;
  out.setId(static_cast<uint64_t>(job.id.value));
  out.setName(job.name);
  out.setState(wire_state(shown));
  out.setReason(job.reason.empty() ? shown.waits : job.reason);
  out.setPriority(job.priority);
  out.setSubmittedAtMs(job.submitted_at.count);
  out.setEndedAtMs(job.ended_at.count);
  out.setDeadlineMs(job.deadline.count);
  out.setCredit(credit_of(CreditParts{job.credit_parts}));
  if (shown.left) out.setEtaMs(static_cast<uint64_t>(std::max<int64_t>(shown.left->count, 1)));
  auto tasks = out.initTasks(static_cast<uint>(shown.tasks.size()));
  for (uint i = 0; i < tasks.size(); ++i) {
    const StoredTask& row = shown.tasks[i].row;
    const TaskFigures& figures = shown.tasks[i].figures;
    tasks[i].setName(row.name);
    tasks[i].setKind(std::string(task_kind_name(row.kind)));
    tasks[i].setModel(row.model);
    tasks[i].setState(state_text(row.state));
    auto after = tasks[i].initAfter(static_cast<uint>(row.after.size()));
    for (uint k = 0; k < after.size(); ++k) {
      const auto before = std::ranges::find(job.tasks, row.after[k], &StoredTask::id);
      if (before != job.tasks.end()) after.set(k, before->name);
    }
    tasks[i].setItems(static_cast<uint64_t>(row.items));
    tasks[i].setItemsDone(static_cast<uint64_t>(figures.done));
    tasks[i].setItemsPending(static_cast<uint64_t>(figures.pending));
    tasks[i].setItemsLeased(static_cast<uint64_t>(figures.leased));
    tasks[i].setItemsQuarantined(static_cast<uint64_t>(figures.poisoned));
    if (row.output_digest) tasks[i].setDigest(row.output_digest->hex());
  }
}

kj::Promise<void> send_output(std::filesystem::path path, bool temporary,
                              rpc::ByteSink::Client sink) {
  InputFile file = rpc::require(InputFile::open(path));
  auto out = kj::heap<Outgoing>(std::move(path), temporary, std::move(file));
  return send_all(kj::mv(out), kj::mv(sink)).promise();
}

}  // namespace shoal
