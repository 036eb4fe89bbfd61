// Goal: a worker computes exactly what the engine computes, and nothing that reaches it over its
// pipe makes it do anything else. Method: real shoal-worker processes; a tiny model of random
// weights, sealed as shards.

#include <kj/async-io.h>

#include <QDir>
#include <QFile>
#include <QTest>
#include <cmath>

#include "base/host.h"
#include "base/random.h"
#include "base/secrets.h"
#include "compute/sample_model.h"
#include "compute/sampling/likelihood.h"
#include "compute/sampling/sampler.h"
#include "compute/shards/shard.h"
#include "schema/limits.h"
#include "schema/transport.h"
#include "schema/worker.capnp.h"

using namespace shoal;

namespace {

constexpr uint32_t kContext = 32, kSequences = 2, kRowsMax = 8;

struct Shard {
  SecretBytes key;
  ByteVector sealed;
  Digest digest;
};

Shard seal(const compute::Fragment& fragment) {
  ByteVector plain;
  const Result<void> written =
      compute::write_shard(fragment, [&plain](ByteSpan bytes) -> Result<void> {
        plain.insert(plain.end(), bytes.begin(), bytes.end());
        return {};
      });
  SHOAL_CHECK(written.ok());
  Shard shard{random_key()};
  shard.sealed = seal_stream(shard.key, plain);
  shard.digest = digest_of(shard.sealed);
  return shard;
}

// One worker process and the connection to it.
struct Worker {
  ChildProcess child;
  kj::Own<rpc::Connection> connection;
  rpc::Worker::Client client;
  BoxPublicKey key;
};

std::vector<uint32_t> bits(std::span<const float> values) {
  std::vector<uint32_t> all(values.size());
  std::memcpy(all.data(), values.data(), values.size_bytes());
  return all;
}

}  // namespace

class WorkerTest : public QObject {
  Q_OBJECT

 public:
  ~WorkerTest() noexcept override {}  // kj's own may throw, Qt's may not.

 private:
  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  compute::SampleModel model_;
  std::vector<Shard> shards_;  // Embedding, three blocks, head.

  std::pair<ChildProcess, OwnedFd> spawn() {
    auto [ours, theirs] = make_socket_pair().value();
    ChildOptions options;
    options.argv = {
        SHOAL_BIN_DIR "/shoal-worker", "--device", "cpu", "--threads", "1", "--rpc-fd", "3"};
    options.channel = std::move(theirs);
    return {ChildProcess::spawn(std::move(options)).value(), std::move(ours)};
  }

  Worker start() {
    auto [child, fd] = spawn();
    auto stream = io_.lowLevelProvider->wrapSocketFd(fd.release(),
                                                     kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP);
    auto connection = kj::heap<rpc::Connection>(kj::mv(stream), false, nullptr);
    auto client = connection->bootstrap().castAs<rpc::Worker>();
    const auto described = client.describeRequest().send().wait(io_.waitScope);
    BoxPublicKey key = BoxPublicKey::from_bytes(rpc::bytes_of(described.getPublicKey())).value();
    return {std::move(child), kj::mv(connection), kj::mv(client), key};
  }

  // The error that a call ends with; an empty message when it succeeds.
  template <class T>
  Error error_in(kj::Promise<T> promise) {
    return error_in(promise.ignoreResult());
  }
  Error error_in(kj::Promise<void> promise) {
    return promise
        .then(
            [] {
              return Error{ErrorCode::kInvalid, ""};
            },
            [](kj::Exception&& exception) { return rpc::error_of(exception); })
        .wait(io_.waitScope);
  }

  using OpenRequest = capnp::Request<rpc::Worker::OpenStageParams, rpc::Worker::OpenStageResults>;

  OpenRequest open_request(Worker& worker, size_t first, size_t count,
                           const BoxPublicKey* other_key = nullptr) {
    OpenRequest request = worker.client.openStageRequest();
    auto spec = request.initSpec();
    spec.setContext(kContext);
    spec.setSequences(kSequences);
    spec.setRowsMax(kRowsMax);
    auto list = spec.initShards(static_cast<uint32_t>(count));
    for (uint32_t i = 0; i < count; ++i) {
      const Shard& shard = shards_[first + i];
      list[i].setDigest(rpc::kj_bytes(shard.digest.bytes));
      list[i].setSealedBytes(shard.sealed.size());
      const ByteVector sealed_key =
          seal_to(other_key == nullptr ? worker.key : *other_key, shard.key.view()).value();
      list[i].setSealedKey(rpc::kj_bytes(sealed_key));
    }
    return request;
  }

  kj::Promise<void> write(rpc::StageLoader::Client& loader, uint32_t shard, ByteSpan bytes) {
    auto request = loader.writeRequest();
    request.setShard(shard);
    request.setBytes(rpc::kj_bytes(bytes));
    return request.send();
  }

  // In pieces that fit no chunk, so that the worker has to join them.
  void feed(rpc::StageLoader::Client& loader, uint32_t index, const ByteVector& sealed) {
    constexpr size_t kPiece = 7001;
    for (size_t done = 0; done < sealed.size(); done += kPiece) {
      write(loader, index, ByteSpan(sealed).subspan(done, std::min(kPiece, sealed.size() - done)))
          .wait(io_.waitScope);
    }
  }

  rpc::Stage::Client open(Worker& worker, size_t first, size_t count) {
    auto loader = open_request(worker, first, count).send().wait(io_.waitScope).getLoader();
    for (uint32_t i = 0; i < count; ++i) feed(loader, i, shards_[first + i].sealed);
    return loader.finishRequest().send().wait(io_.waitScope).getStage();
  }

  std::unique_ptr<compute::Stage> open_here(compute::Device& device, size_t first, size_t count) {
    return compute::Stage::open(device, std::span(model_.fragments).subspan(first, count),
                                {kContext, kSequences, kRowsMax})
        .value();
  }

  using StepRequest = capnp::Request<rpc::Stage::StepParams, rpc::Stage::StepResults>;

  StepRequest token_step(rpc::Stage::Client& stage, const std::vector<int32_t>& tokens,
                         uint32_t position, uint32_t sequence = 0) {
    StepRequest request = stage.stepRequest();
    auto input = request.initInput();
    auto sequences = input.initSequences(static_cast<uint32_t>(tokens.size()));
    auto positions = input.initPositions(static_cast<uint32_t>(tokens.size()));
    auto list = input.initTokens(static_cast<uint32_t>(tokens.size()));
    for (uint32_t i = 0; i < tokens.size(); ++i) {
      sequences.set(i, sequence);
      positions.set(i, position + i);
      list.set(i, tokens[i]);
    }
    return request;
  }

  StepRequest hidden_step(rpc::Stage::Client& stage, std::span<const float> hidden, uint32_t rows) {
    StepRequest request = stage.stepRequest();
    auto input = request.initInput();
    auto sequences = input.initSequences(rows);
    auto positions = input.initPositions(rows);
    for (uint32_t i = 0; i < rows; ++i) {
      sequences.set(i, 0);
      positions.set(i, i);
    }
    input.setHidden(rpc::kj_bytes(std::as_bytes(hidden)));
    return request;
  }

  std::vector<float> hidden_of(rpc::StepOutput::Reader output) {
    std::vector<float> values(output.getHidden().size() / sizeof(float));
    std::memcpy(values.data(), output.getHidden().begin(), output.getHidden().size());
    return values;
  }

 private Q_SLOTS:
  void initTestCase() {
    ignore_broken_pipes();
    model_ = compute::make_sample_model({});
    for (const compute::Fragment& fragment : model_.fragments) shards_.push_back(seal(fragment));
    QCOMPARE(shards_.size(), size_t(5));
  }

  void describes_itself_and_ends_with_its_pipe() {
    Worker worker = start();
    const auto described = worker.client.describeRequest().send().wait(io_.waitScope);
    QCOMPARE(QByteArray(described.getDevice().getId().cStr()), QByteArray("cpu"));
    QCOMPARE(described.getPid(), static_cast<uint32_t>(worker.child.pid()));
    worker.connection = nullptr;
    const std::optional<ChildExit> exit = worker.child.wait(Millis{20'000});
    QVERIFY(exit.has_value());
    QVERIFY2(exit->clean(), exit->text().c_str());
  }

  void makes_a_new_key_each_time() {
    Worker one = start();
    Worker other = start();
    QVERIFY(one.key != other.key);
  }

  void is_sandboxed_on_every_thread() {
    Worker worker = start();
    const QString tasks = QStringLiteral("/proc/%1/task").arg(worker.child.pid());
    const QStringList threads = QDir(tasks).entryList(QDir::Dirs | QDir::NoDotAndDotDot);
    QVERIFY(threads.size() >= 2);  // The loop and the compute thread.
    for (const QString& thread : threads) {
      QFile file(tasks + '/' + thread + "/status");
      QVERIFY(file.open(QIODevice::ReadOnly));
      const QByteArray status = file.readAll();
      // 2: filtered. base_host_test shows what the filter refuses, sockets among it.
      QVERIFY2(status.contains("Seccomp:\t2\n"), status);
      QVERIFY2(status.contains("NoNewPrivs:\t1\n"), status);
    }
  }

  void computes_what_the_engine_computes() {
    Worker worker = start();
    auto device = compute::open_device("cpu", 2).value();

    rpc::Stage::Client stage = open(worker, 0, 4);  // Embedding and blocks: hidden rows come out.
    auto here = open_here(*device, 0, 4);
    const auto shape = stage.shapeRequest().send().wait(io_.waitScope);
    QVERIFY(shape.getBeginsWithTokens() && !shape.getEndsWithLogits());
    QCOMPARE(int64_t(shape.getWidth()), here->shape().width);

    const std::vector<int32_t> tokens = {3, 1, 4, 1, 5};
    std::vector<compute::RowInfo> rows;
    for (uint32_t i = 0; i < tokens.size(); ++i) rows.push_back({1, i});
    const std::vector<float> expected = here->step({rows, tokens, {}, {}}).value();
    const auto answer = token_step(stage, tokens, 0, /*sequence=*/1).send().wait(io_.waitScope);
    QCOMPARE(bits(hidden_of(answer.getOutput())), bits(expected));

    // A second step sees the first one's caches; another sequence does not.
    const std::vector<int32_t> next = {9};
    const std::vector<compute::RowInfo> next_row = {{1, 5}};
    const std::vector<float> next_expected = here->step({next_row, next, {}, {}}).value();
    const auto next_answer = token_step(stage, next, 5, 1).send().wait(io_.waitScope);
    QCOMPARE(bits(hidden_of(next_answer.getOutput())), bits(next_expected));
    const auto other = token_step(stage, next, 0, 0).send().wait(io_.waitScope);
    QVERIFY(bits(hidden_of(other.getOutput())) != bits(next_expected));
  }

  void draws_what_the_sampler_draws_over_a_cut() {
    Worker worker = start();
    auto device = compute::open_device("cpu", 1).value();
    auto here = open_here(*device, 0, 5);
    rpc::Stage::Client front = open(worker, 0, 2);
    rpc::Stage::Client back = open(worker, 2, 3);  // Two stages in one worker.

    const std::vector<int32_t> tokens = {7, 8, 9};
    const std::vector<compute::RowInfo> rows = {{0, 0}, {0, 1}, {0, 2}};
    const std::vector<uint32_t> output_rows = {0, 2};
    const std::vector<float> logits = here->step({rows, tokens, {}, output_rows}).value();

    const auto middle = token_step(front, tokens, 0).send().wait(io_.waitScope);
    const std::vector<float> hidden = hidden_of(middle.getOutput());
    StepRequest request = hidden_step(back, hidden, 3);
    auto draws = request.getInput().initDraws(2);
    draws[0].setRow(0);  // Greedy.
    draws[1].setRow(2);
    draws[1].setPosition(3);
    auto sampling = draws[1].initSampling();
    sampling.setTemperature(0.9f);
    sampling.setRepetitionPenalty(1.3f);
    sampling.setSeed(77);
    auto history = draws[1].initHistory(3);
    for (uint32_t i = 0; i < 3; ++i) history.set(i, tokens[i]);
    const auto answer = request.send().wait(io_.waitScope);
    QVERIFY(answer.getOutput().isTokens());
    QCOMPARE(answer.getOutput().getTokens().size(), 2u);

    const size_t vocabulary = static_cast<size_t>(here->shape().vocabulary);
    SamplingOptions greedy{
        .temperature = 0, .top_k = 0, .top_p = 1, .min_p = 0, .repetition_window = 0};
    SamplingOptions warm{.temperature = 0.9f,
                         .top_k = 0,
                         .top_p = 1,
                         .min_p = 0,
                         .repetition_penalty = 1.3f,
                         .repetition_window = 3,
                         .seed = 77};
    QCOMPARE(answer.getOutput().getTokens()[0],
             sample(std::span(logits).first(vocabulary), greedy, {}, 0).value());
    QCOMPARE(answer.getOutput().getTokens()[1],
             sample(std::span(logits).subspan(vocabulary), warm, tokens, 3).value());

    // Without draws the step only fills the caches.
    const auto filled = hidden_step(back, hidden, 3).send().wait(io_.waitScope);
    QVERIFY(filled.getOutput().isTokens());
    QCOMPARE(filled.getOutput().getTokens().size(), 0u);
  }

  // Method: the text in one step and in every way of cutting it in two; two sequences beside one
  // another; against the engine's logits and, within rounding, logarithms in doubles.
  void scores_are_log_likelihoods_however_the_text_is_cut() {
    Worker worker = start();
    rpc::Stage::Client stage = open(worker, 0, 5);
    auto device = compute::open_device("cpu", 1).value();
    auto here = open_here(*device, 0, 5);
    const std::vector<int32_t> tokens = {7, 8, 9, 4, 0, 49};
    std::vector<compute::RowInfo> rows;
    std::vector<uint32_t> all;
    for (uint32_t i = 0; i < tokens.size(); ++i) rows.push_back({0, i}), all.push_back(i);
    const std::vector<float> logits = here->step({rows, tokens, {}, all}).value();
    const size_t vocabulary = static_cast<size_t>(here->shape().vocabulary);

    // The score of each token but the first, of rows [first, last) in one step.
    const auto score = [&](uint32_t sequence, size_t first, size_t last) {
      const std::vector<int32_t> part(tokens.begin() + ptrdiff_t(first),
                                      tokens.begin() + ptrdiff_t(last));
      StepRequest request = token_step(stage, part, static_cast<uint32_t>(first), sequence);
      const auto count = static_cast<uint32_t>(std::min(last, tokens.size() - 1) - first);
      auto scores = request.getInput().initScores(count);
      for (uint32_t i = 0; i < count; ++i) {
        scores[i].setRow(i);
        scores[i].setToken(tokens[first + i + 1]);
      }
      const auto answer = request.send().wait(io_.waitScope);
      std::vector<float> values;
      for (const float value : answer.getOutput().getLogLikelihoods()) values.push_back(value);
      return values;
    };
    const std::vector<float> whole = score(0, 0, tokens.size());
    QCOMPARE(whole.size(), tokens.size() - 1);
    for (size_t i = 0; i < whole.size(); ++i) {
      const std::span<const float> row = std::span(logits).subspan(i * vocabulary, vocabulary);
      QCOMPARE(whole[i], log_likelihood(row, tokens[i + 1]).value());
      double sum = 0;
      for (const float logit : row) sum += std::exp(double(logit));
      const double expected = double(row[static_cast<size_t>(tokens[i + 1])]) - std::log(sum);
      QVERIFY(std::abs(whole[i] - expected) <= 1e-6 * std::max(1.0, std::abs(expected)));
    }
    for (size_t cut = 1; cut < tokens.size(); ++cut) {
      std::vector<float> parts = score(1, 0, cut);
      const std::vector<float> rest = score(1, cut, tokens.size());
      parts.insert(parts.end(), rest.begin(), rest.end());
      QCOMPARE(bits(parts), bits(whole));
    }

    // Draws and scores of one step, on the same row and on others.
    StepRequest both = token_step(stage, tokens, 0);
    auto draws = both.getInput().initDraws(2);
    draws[0].setRow(1);
    draws[1].setRow(3);
    auto scores = both.getInput().initScores(2);
    scores[0].setRow(0);
    scores[0].setToken(tokens[1]);
    scores[1].setRow(3);
    scores[1].setToken(tokens[4]);
    const auto answer = both.send().wait(io_.waitScope);
    QCOMPARE(answer.getOutput().getTokens().size(), 2u);
    QCOMPARE(answer.getOutput().getLogLikelihoods().size(), 2u);
    QCOMPARE(answer.getOutput().getLogLikelihoods()[0], whole[0]);
    QCOMPARE(answer.getOutput().getLogLikelihoods()[1], whole[3]);
    const SamplingOptions greedy{
        .temperature = 0, .top_k = 0, .top_p = 1, .min_p = 0, .repetition_window = 0};
    QCOMPARE(answer.getOutput().getTokens()[1],
             sample(std::span(logits).subspan(3 * vocabulary, vocabulary), greedy, {}, 0).value());
  }

  void gives_the_features_that_the_engine_gives() {
    Worker worker = start();
    rpc::Stage::Client stage = open(worker, 0, 5);
    auto device = compute::open_device("cpu", 1).value();
    auto here = open_here(*device, 0, 5);
    const std::vector<int32_t> tokens = {7, 8, 9};
    const std::vector<compute::RowInfo> rows = {{0, 0}, {0, 1}, {0, 2}};
    const std::vector<uint32_t> all = {0, 1, 2};
    const std::vector<float> expected = here->step({rows, tokens, {}, all, true}).value();
    StepRequest request = token_step(stage, tokens, 0);
    request.getInput().setWantsFeatures(true);
    const auto answer = request.send().wait(io_.waitScope);
    QVERIFY(answer.getOutput().isHidden());
    QCOMPARE(bits(hidden_of(answer.getOutput())), bits(expected));
  }

  void refuses_keys_that_are_not_for_it() {
    Worker worker = start();
    const BoxKeyPair other = BoxKeyPair::generate();
    const BoxPublicKey other_key = other.public_key();
    const Error error = error_in(open_request(worker, 0, 1, &other_key).send());
    QCOMPARE(error.code, ErrorCode::kDenied);
    QVERIFY2(error.message.find(shards_[0].digest.hex()) != std::string::npos,
             error.message.c_str());

    // The right worker, but the key of another shard: the first bytes show it.
    OpenRequest request = open_request(worker, 0, 1);
    request.getSpec().getShards()[0].setSealedKey(
        rpc::kj_bytes(seal_to(worker.key, shards_[1].key.view()).value()));
    auto loader = request.send().wait(io_.waitScope).getLoader();
    (void)error_in(write(loader, 0, shards_[0].sealed));
    QVERIFY(!error_in(loader.finishRequest().send()).message.empty());
  }

  void refuses_specs_out_of_bounds() {
    Worker worker = start();
    const auto refused = [&](auto change, const char* field) {
      OpenRequest request = open_request(worker, 0, 1);
      change(request.getSpec());
      const Error error = error_in(request.send());
      QVERIFY2(error.code == ErrorCode::kInvalid, field);
      QVERIFY2(error.message.find(field) != std::string::npos, error.message.c_str());
    };
    refused([](rpc::StageSpec::Builder spec) { spec.setContext(0); }, "spec.context");
    refused([](rpc::StageSpec::Builder spec) { spec.setContext(limits::kContextMax + 1); },
            "spec.context");
    refused([](rpc::StageSpec::Builder spec) { spec.setSequences(0); }, "spec.sequences");
    refused([](rpc::StageSpec::Builder spec) { spec.setRowsMax(limits::kRowsMax + 1); },
            "spec.rowsMax");
    refused([](rpc::StageSpec::Builder spec) { spec.initShards(0); }, "spec.shards");
    refused([](rpc::StageSpec::Builder spec) { spec.getShards()[0].setSealedBytes(0); },
            "shard.sealedBytes");
    refused([](rpc::StageSpec::Builder spec) { spec.getShards()[0].initDigest(31); },
            "shard.digest");
    QCOMPARE(error_in(worker.client.pingRequest().send()).message, std::string());
  }

  void refuses_damaged_and_disordered_shards() {
    Worker worker = start();
    const Shard& shard = shards_[1];
    {  // A flipped byte, wherever it is, is found and named.
      for (const size_t at : {size_t(0), shard.sealed.size() / 2, shard.sealed.size() - 1}) {
        ByteVector bad = shard.sealed;
        bad[at] ^= std::byte{1};
        auto loader = open_request(worker, 1, 1).send().wait(io_.waitScope).getLoader();
        (void)error_in(write(loader, 0, bad));
        const Error error = error_in(loader.finishRequest().send());
        QVERIFY2(error.message.find(shard.digest.hex()) != std::string::npos,
                 error.message.c_str());
        QCOMPARE(error.code, ErrorCode::kCorrupt);
      }
    }
    {  // Another shard first.
      auto loader = open_request(worker, 1, 2).send().wait(io_.waitScope).getLoader();
      (void)error_in(write(loader, 1, shards_[2].sealed));
      QCOMPARE(error_in(loader.finishRequest().send()).code, ErrorCode::kInvalid);
    }
    {  // More than announced.
      auto loader = open_request(worker, 1, 1).send().wait(io_.waitScope).getLoader();
      feed(loader, 0, shard.sealed);
      (void)error_in(write(loader, 0, shard.sealed));
      QVERIFY(!error_in(loader.finishRequest().send()).message.empty());
    }
    {  // Less than announced.
      auto loader = open_request(worker, 1, 1).send().wait(io_.waitScope).getLoader();
      write(loader, 0, ByteSpan(shard.sealed).first(100)).wait(io_.waitScope);
      const Error error = error_in(loader.finishRequest().send());
      QVERIFY2(error.message.find("0 of 1 shards") != std::string::npos, error.message.c_str());
    }
    {  // A chunk beyond the limit of one call.
      auto loader = open_request(worker, 1, 1).send().wait(io_.waitScope).getLoader();
      (void)error_in(write(loader, 0, ByteVector(limits::kChunkBytesMax + 1)));
      QVERIFY(!error_in(loader.finishRequest().send()).message.empty());
    }
    // Fragments that do not follow one another are no stage.
    auto loader = open_request(worker, 0, 1).send().wait(io_.waitScope).getLoader();
    feed(loader, 0, shards_[0].sealed);
    rpc::Stage::Client stage = loader.finishRequest().send().wait(io_.waitScope).getStage();
    QVERIFY(error_in(token_step(stage, {1}, 0).send()).message.empty());  // And it still works.
  }

  void refuses_steps_that_do_not_fit() {
    Worker worker = start();
    rpc::Stage::Client front = open(worker, 0, 2);
    rpc::Stage::Client back = open(worker, 2, 3);
    const auto refused = [&](StepRequest request, const char* field) {
      const Error error = error_in(request.send());
      QVERIFY2(error.code == ErrorCode::kInvalid,
               (std::string(field) + ": " + error.message).c_str());
      QVERIFY2(error.message.find(field) != std::string::npos, error.message.c_str());
    };
    refused(token_step(front, std::vector<int32_t>(kRowsMax + 1, 1), 0), "step.positions");
    refused(token_step(front, {}, 0), "step.positions");
    refused(token_step(front, {1}, kContext), "step.positions[]");
    refused(token_step(front, {1}, 0, kSequences), "step.sequences[]");
    refused(token_step(front, {-1}, 0), "token");
    refused(token_step(front, {50}, 0), "token");  // The vocabulary's end.
    refused(token_step(back, {1}, 0), "step.hidden");
    const std::vector<float> hidden(64 * 2, 0.5f);
    refused(hidden_step(front, hidden, 2), "step.tokens");
    refused(hidden_step(back, hidden, 3), "step.hidden");
    {
      StepRequest request = token_step(front, {1, 2}, 0);
      request.getInput().initSequences(1);
      refused(kj::mv(request), "step.sequences");
    }
    {
      StepRequest request = token_step(front, {1}, 0);
      request.getInput().initDraws(1);
      refused(kj::mv(request), "step.draws");
    }
    const auto with_draw = [&](auto change) {
      StepRequest request = hidden_step(back, hidden, 2);
      change(request.getInput().initDraws(1)[0]);
      return request;
    };
    refused(with_draw([](rpc::Draw::Builder draw) { draw.setRow(2); }), "draw.row");
    refused(with_draw([](rpc::Draw::Builder draw) { draw.initHistory(limits::kHistoryMax + 1); }),
            "draw.history");
    refused(with_draw([](rpc::Draw::Builder draw) { draw.initSampling().setTemperature(NAN); }),
            "temperature");
    {
      StepRequest request = hidden_step(back, hidden, 2);
      auto draws = request.getInput().initDraws(2);
      draws[0].setRow(1);
      draws[1].setRow(1);
      refused(kj::mv(request), "draw.row");
    }
    {
      StepRequest request = token_step(front, {1}, 0);
      request.getInput().initScores(1);
      refused(kj::mv(request), "step.scores");
      request = token_step(front, {1}, 0);
      request.getInput().setWantsFeatures(true);
      refused(kj::mv(request), "step.wantsFeatures");
    }
    const auto with_score = [&](uint32_t row, int32_t token) {
      StepRequest request = hidden_step(back, hidden, 2);
      auto score = request.getInput().initScores(1)[0];
      score.setRow(row);
      score.setToken(token);
      return request;
    };
    refused(with_score(2, 0), "score.row");
    refused(with_score(0, -1), "score.token");
    refused(with_score(0, 50), "score.token");  // The vocabulary's end.
    QVERIFY(error_in(with_score(1, 49).send()).message.empty());
    {
      StepRequest request = hidden_step(back, hidden, 2);
      auto scores = request.getInput().initScores(2);
      scores[0].setRow(1);
      scores[1].setRow(0);
      refused(kj::mv(request), "score.row");
      request = hidden_step(back, hidden, 2);
      request.getInput().initScores(3);
      refused(kj::mv(request), "step.scores");
      request = with_score(0, 0);
      request.getInput().setWantsFeatures(true);
      refused(kj::mv(request), "step.wantsFeatures");
    }
    {
      std::vector<float> poisoned = hidden;
      poisoned[70] = NAN;
      const Error error = error_in(hidden_step(back, poisoned, 2).send());
      QVERIFY(error.code == ErrorCode::kInvalid || error.code == ErrorCode::kNonFinite);
      QVERIFY(!error.message.empty());
    }
    {  // Finite rows whose squares are not: the op that finds it is named.
      const std::vector<float> huge(64 * 2, 3e38f);
      const Error error = error_in(hidden_step(back, huge, 2).send());
      QCOMPARE(error.code, ErrorCode::kNonFinite);
      QVERIFY2(error.message.find("rms_norm") != std::string::npos, error.message.c_str());
    }
    QVERIFY(error_in(hidden_step(back, hidden, 2).send()).message.empty());  // And it still works.
  }

  void set_pace(Worker& worker, uint32_t duty_percent, uint32_t rows_max) {
    auto request = worker.client.setPaceRequest();
    request.setDutyPercent(duty_percent);
    request.setRowsMax(rows_max);
    request.send().wait(io_.waitScope);
  }

  // Method: the digest of all outputs of steps of eight rows, at each pace.
  void its_pace_changes_no_bit() {
    auto device = compute::open_device("cpu", 1).value();
    auto here = open_here(*device, 0, 4);
    const auto expected =
        here->step({std::vector<compute::RowInfo>{
                        {0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 0}, {1, 1}, {0, 4}, {1, 2}},
                    std::vector<int32_t>{3, 1, 4, 1, 5, 9, 2, 6},
                    {},
                    {}})
            .value();
    const Digest digest = digest_of(std::as_bytes(std::span(expected)));
    for (const auto& [duty, rows] : std::vector<std::pair<uint32_t, uint32_t>>{
             {100, 0}, {100, 1}, {100, 3}, {60, 0}, {60, 1}, {99, 5}, {60, limits::kRowsMax}}) {
      Worker worker = start();
      rpc::Stage::Client stage = open(worker, 0, 4);
      set_pace(worker, duty, rows);
      // The same rows in another order, in which a row comes before one that it looks back on.
      const std::vector<uint32_t> order = {6, 7, 0, 5, 1, 4, 3, 2};
      const std::vector<std::array<uint32_t, 3>> rows_of = {
          {0, 0, 3}, {0, 1, 1}, {0, 2, 4}, {0, 3, 1}, {1, 0, 5}, {1, 1, 9}, {0, 4, 2}, {1, 2, 6}};
      StepRequest request = stage.stepRequest();
      auto input = request.initInput();
      auto sequences = input.initSequences(8);
      auto positions = input.initPositions(8);
      auto tokens = input.initTokens(8);
      for (uint32_t i = 0; i < 8; ++i) {
        sequences.set(i, rows_of[order[i]][0]);
        positions.set(i, rows_of[order[i]][1]);
        tokens.set(i, static_cast<int32_t>(rows_of[order[i]][2]));
      }
      const auto answer = request.send().wait(io_.waitScope);
      const std::vector<float> shuffled = hidden_of(answer.getOutput());
      QCOMPARE(shuffled.size(), expected.size());
      std::vector<float> ordered(shuffled.size());
      const size_t width = shuffled.size() / 8;
      for (size_t i = 0; i < 8; ++i) {
        std::copy_n(shuffled.begin() + static_cast<ptrdiff_t>(i * width), width,
                    ordered.begin() + static_cast<ptrdiff_t>(order[i] * width));
      }
      QVERIFY(digest_of(std::as_bytes(std::span(ordered))) == digest);
      // And the caches that it left are the same.
      const auto next = token_step(stage, {7}, 5).send().wait(io_.waitScope);
      auto again = open_here(*device, 0, 4);
      (void)again->step({std::vector<compute::RowInfo>{{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}},
                         std::vector<int32_t>{3, 1, 4, 1, 2},
                         {},
                         {}});
      const auto next_here =
          again->step({std::vector<compute::RowInfo>{{0, 5}}, std::vector<int32_t>{7}, {}, {}});
      QCOMPARE(bits(hidden_of(next.getOutput())), bits(next_here.value()));
    }
  }

  void its_pace_changes_no_drawn_token() {
    Worker worker = start();
    rpc::Stage::Client stage = open(worker, 0, 5);
    const auto draw = [&] {
      StepRequest request = token_step(stage, {7, 8, 9, 10, 11, 12, 13}, 0);
      auto draws = request.getInput().initDraws(3);
      draws[0].setRow(1);
      draws[1].setRow(2);
      draws[2].setRow(6);
      std::vector<int32_t> tokens;
      const auto answer = request.send().wait(io_.waitScope);
      for (const int32_t token : answer.getOutput().getTokens()) tokens.push_back(token);
      return tokens;
    };
    const std::vector<int32_t> expected = draw();
    QCOMPARE(expected.size(), size_t(3));
    for (const uint32_t rows : {1u, 2u, 3u, 6u, 7u}) {
      set_pace(worker, 70, rows);
      QCOMPARE(draw(), expected);
    }
  }

  void refuses_a_pace_out_of_bounds() {
    Worker worker = start();
    const auto error = [&](uint32_t duty_percent, uint32_t rows_max) {
      auto request = worker.client.setPaceRequest();
      request.setDutyPercent(duty_percent);
      request.setRowsMax(rows_max);
      return error_in(request.send());
    };
    QCOMPARE(error(1, 0).message, std::string());
    QCOMPARE(error(100, limits::kRowsMax).message, std::string());
    for (const uint32_t duty : {0u, 101u, UINT32_MAX}) {
      QCOMPARE(error(duty, 0).code, ErrorCode::kInvalid);
      QVERIFY(error(duty, 0).message.find("dutyPercent") != std::string::npos);
    }
    QCOMPARE(error(50, limits::kRowsMax + 1).code, ErrorCode::kInvalid);
  }

  // Method: at one percent, what eight steps owe would take a hundred times as long as they.
  void ends_in_the_middle_of_a_rest() {
    Worker worker = start();
    rpc::Stage::Client stage = open(worker, 0, 5);
    set_pace(worker, 1, 1);
    std::vector<kj::Promise<void>> steps;
    for (uint32_t i = 0; i < 3; ++i) {
      steps.push_back(token_step(stage, {1, 2, 3, 4, 5, 6, 7, 8}, 8 * i).send().ignoreResult());
    }
    worker.client.pingRequest().send().wait(io_.waitScope);  // They have arrived.
    // Dropped steps leave the device at once to one that is wanted.
    steps.clear();
    set_pace(worker, 100, 0);
    (void)token_step(stage, {1}, 0).send().wait(io_.waitScope);
    set_pace(worker, 1, 1);
    auto step = token_step(stage, {1, 2, 3, 4, 5, 6, 7, 8}, 0).send();
    worker.client.pingRequest().send().wait(io_.waitScope);
    worker.connection = nullptr;
    const std::optional<ChildExit> exit = worker.child.wait(Millis{20'000});
    QVERIFY(exit.has_value());
    QVERIFY2(exit->clean(), exit->text().c_str());
  }

  // Method: a stage of more than half the device's memory, so that none can be opened while another
  // one is there. Whether the first is made before nobody wants it any more or after, or not at
  // all.
  void a_stage_that_nobody_waits_for_is_freed() {
    Worker worker = start();
    const auto described = worker.client.describeRequest().send().wait(io_.waitScope);
    constexpr uint64_t kPositionBytes = 3 * 2 * 32 * 2;  // Three blocks' keys and values.
    const uint64_t sequences =
        described.getDevice().getMemoryBytes() / 5 * 3 / (kPositionBytes * limits::kContextMax);
    QVERIFY(sequences >= 1 && sequences <= limits::kSequencesMax);
    const auto large = [&] {
      OpenRequest request = open_request(worker, 1, 3);
      request.getSpec().setContext(limits::kContextMax);
      request.getSpec().setSequences(static_cast<uint32_t>(sequences));
      auto loader = request.send().wait(io_.waitScope).getLoader();
      for (uint32_t i = 0; i < 3; ++i) feed(loader, i, shards_[1 + i].sealed);
      return loader;
    };
    for (int turn = 0; turn < 3; ++turn) {
      auto loader = large();
      auto finish = loader.finishRequest().send();
      for (int i = 0; i < turn; ++i) worker.client.pingRequest().send().wait(io_.waitScope);
      finish = nullptr;
    }
    auto loader = large();
    const Error error = error_in(loader.finishRequest().send());
    QVERIFY2(error.message.empty(), error.message.c_str());
  }

  // Method: the thread rests while the steps arrive, so that they wait together; each text is
  // compared with the engine, which computes it alone.
  void sessions_that_wait_together_get_their_own_bits() {
    Worker worker = start();
    auto device = compute::open_device("cpu", 1).value();
    std::vector<rpc::Stage::Client> stages;
    for (int i = 0; i < 3; ++i) stages.push_back(open(worker, 0, 4));
    stages.push_back(open(worker, 1, 3));  // Other shards, so other weights.
    set_pace(worker, 1, 0);
    (void)hidden_step(stages[3], std::vector<float>(64, 0.5f), 1).send().wait(io_.waitScope);
    std::vector<std::unique_ptr<compute::Stage>> here;
    for (int i = 0; i < 3; ++i) here.push_back(open_here(*device, 0, 4));
    here.push_back(open_here(*device, 1, 3));
    struct Asked {
      kj::Promise<std::vector<float>> answer;
      std::vector<float> expected;
    };
    std::vector<Asked> asked;
    std::vector<uint32_t> lengths(3, 0);
    for (uint32_t round = 0; round < 4; ++round) {
      for (uint32_t i = 0; i < 3; ++i) {
        // Prompts beside single rows, and two steps of a stage waiting at once.
        const uint32_t count = (round + i) % 3 == 0 ? 4 : 1;
        std::vector<compute::RowInfo> rows;
        std::vector<int32_t> tokens;
        for (uint32_t row = 0; row < count; ++row) {
          rows.push_back({0, lengths[i] + row});
          tokens.push_back(static_cast<int32_t>((lengths[i] * 7 + row + i * 13) % 50));
        }
        auto answer =
            token_step(stages[i], tokens, lengths[i]).send().then([this](auto&& response) {
              return hidden_of(response.getOutput());
            });
        asked.push_back({kj::mv(answer), here[i]->step({rows, tokens, {}, {}}).value()});
        lengths[i] += count;
      }
    }
    const std::vector<float> hidden(64 * 2, 0.5f);
    asked.push_back(
        {hidden_step(stages[3], hidden, 2).send().then([this](auto&& response) {
           return hidden_of(response.getOutput());
         }),
         here[3]->step({std::vector<compute::RowInfo>{{0, 0}, {0, 1}}, {}, hidden, {}}).value()});
    worker.client.pingRequest().send().wait(io_.waitScope);  // They have arrived.
    set_pace(worker, 90, 0);
    for (Asked& one : asked) {
      const std::vector<float> got = one.answer.wait(io_.waitScope);
      QCOMPARE(bits(got), bits(one.expected));
    }
    // Stages end one by one; what they shared goes with the last.
    stages.erase(stages.begin());
    const auto again = token_step(stages[0], {1}, 0).send().wait(io_.waitScope);
    QVERIFY(again.getOutput().isHidden());
  }

  // A step that is dropped while it waits beside others leaves them alone.
  void a_dropped_step_holds_up_nobody() {
    Worker worker = start();
    std::vector<rpc::Stage::Client> stages;
    for (int i = 0; i < 3; ++i) stages.push_back(open(worker, 0, 5));
    const auto draw = [&](rpc::Stage::Client& stage) {
      StepRequest request = token_step(stage, {7, 8, 9}, 0);
      request.getInput().initDraws(1)[0].setRow(2);
      return request.send().then([](auto&& answer) { return answer.getOutput().getTokens()[0]; });
    };
    set_pace(worker, 1, 0);
    const int32_t expected = draw(stages[0]).wait(io_.waitScope);
    auto first = draw(stages[0]);
    auto last = kj::Promise<int32_t>(nullptr);
    {
      auto dropped = draw(stages[1]);
      last = draw(stages[2]);
      worker.client.pingRequest().send().wait(io_.waitScope);  // They have arrived.
    }
    set_pace(worker, 100, 0);
    QCOMPARE(first.wait(io_.waitScope), expected);
    QCOMPARE(last.wait(io_.waitScope), expected);
    QCOMPARE(draw(stages[1]).wait(io_.waitScope), expected);
  }

  void answers_while_it_computes() {
    Worker worker = start();
    bool measured = false;
    auto benchmark = worker.client.benchmarkRequest()
                         .send()
                         .then([&](auto&& answer) {
                           measured = true;
                           return answer.getReport().getDecodeRowsPerSecond();
                         })
                         .eagerlyEvaluate(nullptr);
    worker.client.pingRequest().send().wait(io_.waitScope);
    QVERIFY(!measured);
    QVERIFY(benchmark.wait(io_.waitScope) > 0);
  }

  void passes_its_own_test() {
    Worker worker = start();
    const auto answer = worker.client.selfTestRequest().send().wait(io_.waitScope);
    QVERIFY2(answer.getReport().getExact(), answer.getReport().getFirstFailure().cStr());
    QVERIFY(answer.getReport().getSamples() > 0);
  }

  void ends_at_garbage() {
    auto [child, fd] = spawn();
    auto stream = io_.lowLevelProvider->wrapSocketFd(fd.release(),
                                                     kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP);
    Random random(1);
    ByteVector garbage(64 << 10);
    random.fill(garbage);
    // It may hang up before it has read all of it.
    stream->write(garbage.data(), garbage.size())
        .catch_([](kj::Exception&&) {})
        .wait(io_.waitScope);
    const std::optional<ChildExit> exit = child.wait(Millis{20'000});
    QVERIFY(exit.has_value());
    QVERIFY2(exit->signal == 0, exit->text().c_str());
  }

  void its_death_is_a_lost_connection() {
    Worker worker = start();
    rpc::Stage::Client stage = open(worker, 0, 2);
    auto benchmark = worker.client.benchmarkRequest().send();  // Busy in the middle of something.
    worker.child.kill();
    const auto kind_of = [&](auto promise) {
      return promise.ignoreResult()
          .then([] { return kj::Exception::Type::FAILED; },
                [](kj::Exception&& exception) { return exception.getType(); })
          .wait(io_.waitScope);
    };
    QVERIFY(kind_of(kj::mv(benchmark)) == kj::Exception::Type::DISCONNECTED);
    QVERIFY(kind_of(token_step(stage, {1}, 0).send()) == kj::Exception::Type::DISCONNECTED);
  }

  void says_why_a_device_cannot_be_opened() {
    auto [ours, theirs] = make_socket_pair().value();
    ChildOptions options;
    options.argv = {SHOAL_BIN_DIR "/shoal-worker", "--device", "abacus", "--rpc-fd", "3"};
    options.channel = std::move(theirs);
    ChildProcess child = ChildProcess::spawn(std::move(options)).value();
    auto stream = io_.lowLevelProvider->wrapSocketFd(ours.release(),
                                                     kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP);
    rpc::Connection connection(kj::mv(stream), false, nullptr);
    auto client = connection.bootstrap().castAs<rpc::Worker>();
    const Error error = error_in(client.describeRequest().send());
    QVERIFY2(error.message.find("abacus") != std::string::npos, error.message.c_str());
  }
};

QTEST_GUILESS_MAIN(WorkerTest)
#include "worker_test.moc"
