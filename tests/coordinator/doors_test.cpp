// Goal: the hosts' door lets in whom it should and nobody else, and gives nobody more than was
// granted; the administrators' door publishes whole models or nothing. Method: real RPC in one
// thread.

#include <QTest>

#include <limits>

#include <kj/async-io.h>
#include <kj/debug.h>

#include "coordinator/session/journal.h"
#include "coordinator/store/model_table.h"
#include "schema/login.h"
#include "tests/coordinator/world.h"

using namespace shoal;
using namespace shoal::test;

namespace {

// What the call fails with, or "".
std::string failure_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const kj::Exception& exception) {
    return rpc::error_of(exception).message;
  }
  return "";
}

bool has(const std::string& text, const char* part) {
  if (text.find(part) != std::string::npos) return true;
  qWarning("said: \"%s\"", text.c_str());
  return false;
}

std::string make_invite_url(World& world, uint64_t lifetime_ms, uint32_t uses) {
  auto request = world.admin().createInviteRequest();
  request.setLifetimeMs(lifetime_ms);
  request.setUsesMax(uses);
  return world.run(kj::Promise<capnp::Response<rpc::Admin::CreateInviteResults>>(request.send()))
      .getUrl()
      .cStr();
}

void set_standing(World& world, uint64_t host, rpc::HostInfo::Standing standing) {
  auto request = world.admin().setHostStandingRequest();
  request.setHostId(host);
  request.setStanding(standing);
  world.run(request.send().ignoreResult());
}

int files_in(const std::filesystem::path& folder) {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder),
                                        std::filesystem::directory_iterator()));
}

rpc::ModelUpload::Client begin_upload(World& world, const std::string& manifest,
                                      const ToyModel& model) {
  auto request = world.admin().publishModelRequest();
  request.setManifest(manifest);
  auto keys = request.initKeys(static_cast<uint>(model.keys.size()));
  for (uint i = 0; i < keys.size(); ++i) keys.set(i, rpc::kj_bytes(model.keys[i].view()));
  return world.run(kj::Promise<capnp::Response<rpc::Admin::PublishModelResults>>(request.send()))
      .getUpload();
}

void write_shard(World& world, rpc::ModelUpload::Client& upload, uint32_t shard, ByteSpan bytes) {
  auto request = upload.writeRequest();
  request.setShard(shard);
  request.setBytes(rpc::kj_bytes(bytes));
  world.run(request.send());
}

}  // namespace

class DoorsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_unknown_host_needs_an_invite();
  void a_known_host_needs_none();
  void a_signature_counts_once_and_for_this_coordinator();
  void a_banned_host_stays_out();
  void a_second_login_replaces_the_first();
  void a_silent_host_is_dropped();
  void leaving_is_orderly();
  void reports_are_bounded();
  void a_host_fills_no_event_table();
  void strangers_are_bounded();
  void protocols_that_do_not_fit_are_told();
  void a_shard_is_read_only_by_whom_it_was_given_to();
  void a_model_is_published_whole_or_not_at_all();
  void a_damaged_manifest_hides_no_other_model();
  void a_model_in_use_is_not_removed();
  void strays_go_at_the_next_start();
  void the_data_folder_is_made_once();
  void a_wrong_master_key_is_refused();
};

void DoorsTest::an_unknown_host_needs_an_invite() {
  World world;
  const auto joins = [&](const std::string& invite) {
    return failure_of([&] { world.add_host("h", {.invite = invite}); });
  };
  QVERIFY(has(joins("wrong"), "not one of this coordinator"));
  const auto of_url = [](const std::string& url) {
    return rpc::parse_attach_url(url).value().invite;
  };
  const std::string once = of_url(make_invite_url(world, 3'600'000, 1));
  QCOMPARE(joins(once), std::string());
  QVERIFY(has(joins(once), "as often as it may be"));
  const std::string brief = of_url(make_invite_url(world, 1'000, 10));
  QCOMPARE(joins(brief), std::string());
  world.pass_time(Millis{1'000});
  QVERIFY(has(joins(brief), "expired"));
  QVERIFY(has(failure_of([&] { make_invite_url(world, 0, 1); }), "invite"));
  QVERIFY(has(failure_of([&] { make_invite_url(world, 1000, 0); }), "invite"));
  QVERIFY(has(joins(std::string(129, 'x')), "invite"));
  // A refused stranger leaves no event.
  QVERIFY(world.events_text().find("refused") == std::string::npos);
}

void DoorsTest::a_known_host_needs_none() {
  World world;
  FakeHost& host = world.add_host("h");
  const uint64_t id = host.id;
  host.options.invite = "none";
  host.connect();
  QCOMPARE(host.id, id);
  QVERIFY(!host.trusted);
  set_standing(world, id, rpc::HostInfo::Standing::TRUSTED);
  host.connect();
  QVERIFY(host.trusted);
  QVERIFY(has(failure_of([&] { set_standing(world, 99, rpc::HostInfo::Standing::TRUSTED); }),
              "no host 99"));
}

void DoorsTest::a_signature_counts_once_and_for_this_coordinator() {
  World world;
  const SigningKey identity = SigningKey::generate();
  rpc::Peer peer{"here", kj::refcounted<rpc::ReceiveLimit>(1)};
  auto door = world.coordinator->host_door(kj::mv(peer)).castAs<rpc::Coordinator>();
  const auto hello = [&] {
    auto request = door.helloRequest();
    request.setProtocolVersion(rpc::PROTOCOL_VERSION);
    return to_vector(rpc::bytes_of(
        world.run(kj::Promise<capnp::Response<rpc::Coordinator::HelloResults>>(request.send()))
            .getNonce()));
  };
  class Nobody final : public rpc::Host::Server {};
  const auto login = [&](ByteSpan nonce, const std::string& pin) {
    return failure_of([&] {
      auto request = door.loginRequest();
      auto card = request.initLogin();
      card.setPublicKey(rpc::kj_bytes(identity.public_key().bytes));
      const Signature signature = identity.sign(rpc::login_message(nonce, pin));
      card.setSignature(rpc::kj_bytes(signature));
      card.setInvite(world.invite);
      request.setHost(kj::heap<Nobody>());
      world.run(request.send().ignoreResult());
    });
  };
  QVERIFY(has(login(ByteVector(32), world.pin), "without a hello"));
  QVERIFY(has(login(hello(), "another pin"), "signature"));
  QVERIFY(has(login(ByteVector(32), world.pin), "without a hello"));  // The try used the nonce up.
  const ByteVector first = hello();
  const ByteVector second = hello();
  QVERIFY(first != second);
  QVERIFY(has(login(first, world.pin), "signature"));
  const ByteVector good = hello();
  QCOMPARE(login(good, world.pin), std::string());
  QVERIFY(has(login(good, world.pin), "without a hello"));
}

void DoorsTest::a_banned_host_stays_out() {
  World world;
  world.publish(make_toy_model("toy"));
  FakeHost& host = world.add_host("h");
  world.generate({.stages_min = 1});
  set_standing(world, host.id, rpc::HostInfo::Standing::BANNED);
  QVERIFY(has(failure_of([&] { host.report(); }), "login is over"));
  QVERIFY(has(world.refusal_of({.stages_min = 1}), "no device is ready"));
  QVERIFY(has(failure_of([&] { host.connect(); }), "banned"));
  set_standing(world, host.id, rpc::HostInfo::Standing::VOLUNTEER);
  QCOMPARE(failure_of([&] { host.connect(); }), std::string());
  QCOMPARE(world.generate({.stages_min = 1}).ids.size(), size_t{12});
}

void DoorsTest::a_second_login_replaces_the_first() {
  World world;
  world.publish(make_toy_model("toy"));
  FakeHost& first = world.add_host("h");
  auto twin = std::make_unique<FakeHost>(world, HostOptions{.name = "h"});
  twin->identity = SigningKey::from_seed(first.identity.seed().view()).value();
  twin->connect();
  QCOMPARE(twin->id, first.id);
  QVERIFY(has(failure_of([&] { first.report(); }), "login is over"));
  world.generate({.stages_min = 1});
  QCOMPARE(twin->stages_opened, 1);
  QCOMPARE(first.stages_opened, 0);
  // The end of the old connection does not end the new login.
  first.kill();
  world.settle();
  QCOMPARE(failure_of([&] { twin->report(); }), std::string());
}

void DoorsTest::a_silent_host_is_dropped() {
  World world([](CoordinatorSettings& settings) { settings.ping_interval = Millis{2'000}; });
  FakeHost& host = world.add_host("h");
  world.pass_time(Millis{60'000});
  QCOMPARE(failure_of([&] { host.report(); }), std::string());
  host.silent = true;
  world.pass_time(Millis{5'000});
  QVERIFY(world.events_text().find("host_silent") == std::string::npos);
  world.pass_time(Millis{4'000});
  QVERIFY(world.events_text().find("host_silent") != std::string::npos);
  QVERIFY(has(failure_of([&] { host.report(); }), "login is over"));
  host.connect();
  QCOMPARE(failure_of([&] { host.report(); }), std::string());
}

void DoorsTest::leaving_is_orderly() {
  World world;
  FakeHost& host = world.add_host("h");
  auto request = KJ_ASSERT_NONNULL(host.session).leaveRequest();
  request.setReason("going home");
  world.run(request.send().ignoreResult());
  QVERIFY(world.events_text().find("host_left: h: going home") != std::string::npos);
  QVERIFY(has(failure_of([&] { host.report(); }), "login is over"));
  host.kill();
  world.settle();
  const std::string events = world.events_text();
  QCOMPARE(events.find("host_left"), events.rfind("host_left"));  // Said once.
}

void DoorsTest::reports_are_bounded() {
  World world;
  FakeHost& host = world.add_host("h");
  host.options.devices.assign(65, "cpu");
  QVERIFY(has(failure_of([&] { host.report(); }), "devices"));
  host.options.devices = {"cpu", "cpu"};
  QVERIFY(has(failure_of([&] { host.report(); }), "twice"));
  host.options.devices = {""};
  QVERIFY(has(failure_of([&] { host.report(); }), "without an id"));
  host.options.devices = {std::string(257, 'x')};
  QVERIFY(has(failure_of([&] { host.report(); }), "device id"));
  // What is no figure counts as none.
  host.options.devices = {"cpu"};
  host.options.bytes_per_second = std::numeric_limits<double>::quiet_NaN();
  host.options.memory = UINT64_MAX;
  QCOMPARE(failure_of([&] { host.report(); }), std::string());
  world.publish(make_toy_model("toy"));
  QCOMPARE(world.generate({.stages_min = 1}).ids.size(), size_t{12});
  // An inexact device takes no part in exact work.
  host.options.exact = false;
  host.report();
  QVERIFY(has(world.refusal_of({.stages_min = 1}), "exactness self-test"));
}

// Goal: one host's doings, however many, leave a bounded number of events, and how many more there
// were is told.
void DoorsTest::a_host_fills_no_event_table() {
  World world;
  FakeHost& host = world.add_host("h");
  FakeHost& other = world.add_host("other");
  const auto events_of = [&](const FakeHost& which) {
    auto request = world.admin().listEventsRequest();
    request.setCountMax(100'000);
    const auto response =
        world.run(kj::Promise<capnp::Response<rpc::Admin::ListEventsResults>>(request.send()));
    int64_t count = 0;
    for (const auto event : response.getEvents()) count += event.getHostId() == which.id;
    return count;
  };
  const int64_t before = events_of(host);  // Enrolled, connected, ready: two of them count.
  for (int64_t i = 0; i < kHostEventsMax; ++i) {
    host.options.devices = {"gpu" + std::to_string(i)};  // Each new device is an event.
    host.report();
  }
  QCOMPARE(events_of(host), kHostEventsMax + 1);
  QVERIFY(before == 3);
  // Others are heard all the same.
  other.options.devices = {"another"};
  other.report();
  QCOMPARE(events_of(other), int64_t{4});
  QVERIFY(world.events_text().find("events_left_out") == std::string::npos);
  world.clock.advance(Millis{3'600'000});
  make_invite_url(world, 1000, 1);  // Anything that is noted.
  QVERIFY(has(world.events_text(),
              "events_left_out: after 200 events of this host within an hour, "
              "2 more were only counted"));
  host.options.devices = {"late"};
  host.report();
  QCOMPARE(events_of(host), kHostEventsMax + 3);
  // At the end nothing is left untold.
  for (int64_t i = 0; i < kHostEventsMax; ++i) {
    host.options.devices = {"again" + std::to_string(i)};
    host.report();
  }
  world.stop();
  world.start();
  const std::string told = world.events_text();
  QVERIFY(told.find("events_left_out") != told.rfind("events_left_out"));
}

void DoorsTest::strangers_are_bounded() {
  World world;
  const std::string why =
      failure_of([&] { world.add_host("h", {.invite = std::string(100'000, 'x')}); });
  QVERIFY(!why.empty());  // The connection ended at the message's size.
  QCOMPARE(failure_of([&] { world.add_host("i"); }), std::string());
  // Answers that are never let go of stay with the coordinator: a stranger gets so many.
  auto pipe = kj::newTwoWayPipe();
  auto limit = kj::refcounted<rpc::ReceiveLimit>(limits::kLoginMessageBytesMax);
  rpc::Peer peer{"127.0.0.1", kj::addRef(*limit)};
  rpc::Connection server(kj::mv(pipe.ends[0]), true, world.coordinator->host_door(kj::mv(peer)),
                         kj::mv(limit));
  rpc::Connection client(kj::mv(pipe.ends[1]), false, nullptr);
  auto door = client.bootstrap().castAs<rpc::Coordinator>();
  std::vector<capnp::Response<rpc::Coordinator::HelloResults>> kept;
  const std::string end = failure_of([&] {
    while (kept.size() < 10 * limits::kLoginMessagesMax) {
      auto hello = door.helloRequest();
      hello.setProtocolVersion(rpc::PROTOCOL_VERSION);
      kept.push_back(
          world.run(kj::Promise<capnp::Response<rpc::Coordinator::HelloResults>>(hello.send())));
    }
  });
  QVERIFY(!end.empty());
  QVERIFY2(kept.size() >= limits::kLoginMessagesMax / 2 && kept.size() < limits::kLoginMessagesMax,
           std::to_string(kept.size()).c_str());
}

void DoorsTest::protocols_that_do_not_fit_are_told() {
  World world;
  rpc::Peer peer{"here", kj::refcounted<rpc::ReceiveLimit>(1)};
  auto door = world.coordinator->host_door(kj::mv(peer)).castAs<rpc::Coordinator>();
  for (const uint32_t version : {rpc::PROTOCOL_VERSION - 1, rpc::PROTOCOL_VERSION + 1}) {
    const std::string why = failure_of([&] {
      auto request = door.helloRequest();
      request.setProtocolVersion(version);
      world.run(request.send().ignoreResult());
    });
    QVERIFY(has(
        why, version < rpc::PROTOCOL_VERSION ? "the client is older" : "the coordinator is older"));
  }
}

void DoorsTest::a_shard_is_read_only_by_whom_it_was_given_to() {
  World world;
  const ToyModel model = make_toy_model("toy", 1'500'000);
  world.publish(model);
  FakeHost& given = world.add_host("given");
  FakeHost& other = world.add_host("other", {.memory = 1000});
  const Digest digest = digest_of(model.shards[0]);
  QVERIFY(has(failure_of([&] { given.read_shard(digest, 0, 10); }), "not given"));
  given.fault = Fault::kStall;
  {
    kj::Promise<Generated> running = world.generate_promise({.stages_min = 1});
    world.pass_time(Millis{50});
    QCOMPARE(given.stages_open, 1);
    // All of it, in bounded pieces.
    ByteVector whole;
    while (true) {
      const ByteVector piece = given.read_shard(digest, whole.size(), limits::kChunkBytesMax);
      if (piece.empty()) break;
      whole.insert(whole.end(), piece.begin(), piece.end());
    }
    QVERIFY(whole == model.shards[0]);
    QVERIFY(has(failure_of([&] { given.read_shard(digest, 0, limits::kChunkBytesMax + 1); }),
                "length"));
    QVERIFY(has(failure_of([&] { given.read_shard(digest, whole.size() + 1, 1); }), "beyond"));
    QVERIFY(
        has(failure_of([&] { given.read_shard(digest_of(as_bytes("?")), 0, 1); }), "not given"));
    QVERIFY(has(failure_of([&] { other.read_shard(digest, 0, 10); }), "not given"));
  }
  world.settle();
  QVERIFY(has(failure_of([&] { given.read_shard(digest, 0, 10); }),
              "not given"));  // The session is over.
}

void DoorsTest::a_model_is_published_whole_or_not_at_all() {
  World world;
  const ToyModel model = make_toy_model("toy");
  const std::filesystem::path shards = world.folder / "data" / "shards";
  const auto models = [&] {
    return world
        .run(kj::Promise<capnp::Response<rpc::Admin::ListModelsResults>>(
            world.admin().listModelsRequest().send()))
        .getModels()
        .size();
  };
  // A manifest that is wrong, keys that are missing.
  QVERIFY(has(failure_of([&] { begin_upload(world, "{}", model); }), "manifest"));
  const ToyModel keyless{model.manifest, {}, {}};
  QVERIFY(has(failure_of([&] { begin_upload(world, model.manifest, keyless); }), "keys"));
  // Dropped in the middle; ended too early; out of order.
  {
    auto upload = begin_upload(world, model.manifest, model);
    write_shard(world, upload, 0, model.shards[0]);
    write_shard(world, upload, 1, ByteSpan(model.shards[1]).first(10));
    QVERIFY(files_in(shards) > 0);
  }
  world.settle();
  QCOMPARE(files_in(shards), 0);
  {
    auto upload = begin_upload(world, model.manifest, model);
    write_shard(world, upload, 0, model.shards[0]);
    QVERIFY(has(failure_of([&] { world.run(upload.finishRequest().send().ignoreResult()); }),
                "have come"));
  }
  {
    auto upload = begin_upload(world, model.manifest, model);
    QVERIFY(has(failure_of([&] {
                  write_shard(world, upload, 1, model.shards[1]);
                  world.run(upload.finishRequest().send().ignoreResult());
                }),
                "follows"));
  }
  // One corrupt byte in the last shard.
  {
    auto upload = begin_upload(world, model.manifest, model);
    for (uint32_t i = 0; i + 1 < model.shards.size(); ++i)
      write_shard(world, upload, i, model.shards[i]);
    ByteVector wrong = model.shards.back();
    wrong[50] ^= std::byte{1};
    write_shard(world, upload, kToyFragments - 1, wrong);
    QVERIFY(has(failure_of([&] { world.run(upload.finishRequest().send().ignoreResult()); }),
                "digest"));
  }
  world.settle();
  QCOMPARE(files_in(shards), 0);
  QCOMPARE(models(), 0u);

  world.publish(model);
  QCOMPARE(files_in(shards), kToyFragments);
  QCOMPARE(models(), 1u);
  QVERIFY(has(failure_of([&] { world.publish(model); }), "already"));
  QCOMPARE(files_in(shards), kToyFragments);
  auto remove = world.admin().removeModelRequest();
  remove.setName("toy");
  world.run(remove.send().ignoreResult());
  QCOMPARE(files_in(shards), 0);
  QCOMPARE(models(), 0u);
  auto again = world.admin().removeModelRequest();
  again.setName("toy");
  QVERIFY(has(failure_of([&] { world.run(again.send().ignoreResult()); }), "no model toy"));
}

void DoorsTest::a_damaged_manifest_hides_no_other_model() {
  World world;
  world.publish(make_toy_model("first"));
  world.publish(make_toy_model("second"));
  world.stop();
  {
    const auto store = Store::open(world.folder / "data");
    QVERIFY(store.value()
                ->query("UPDATE model SET manifest = CAST('{' AS BLOB) WHERE name = 'first'")
                .run()
                .ok());
  }
  world.start();
  const auto response = world.run(kj::Promise<capnp::Response<rpc::Admin::ListModelsResults>>(
      world.admin().listModelsRequest().send()));
  QCOMPARE(response.getModels().size(), 2u);
  const auto first = response.getModels()[0], second = response.getModels()[1];
  QCOMPARE(std::string(first.getArchitecture().cStr()), std::string("damaged"));
  QCOMPARE(first.getFragments(), uint32_t{kToyFragments});
  QCOMPARE(std::string(second.getArchitecture().cStr()), std::string("toy"));
  QCOMPARE(second.getContext(), uint32_t{kToyContext});
  auto remove = world.admin().removeModelRequest();
  remove.setName("first");
  world.run(remove.send().ignoreResult());
  QCOMPARE(files_in(world.folder / "data" / "shards"), kToyFragments);
}

void DoorsTest::a_model_in_use_is_not_removed() {
  World world;
  world.publish(make_toy_model("toy"));
  FakeHost& host = world.add_host("h");
  host.fault = Fault::kStall;
  const auto remove = [&] {
    return failure_of([&] {
      auto request = world.admin().removeModelRequest();
      request.setName("toy");
      world.run(request.send().ignoreResult());
    });
  };
  {
    kj::Promise<Generated> running = world.generate_promise({.stages_min = 1});
    world.pass_time(Millis{50});
    QVERIFY(has(remove(), "in use by 1 live"));
  }
  world.settle();
  QCOMPARE(remove(), std::string());
}

void DoorsTest::strays_go_at_the_next_start() {
  World world;
  world.publish(make_toy_model("toy"));
  const std::filesystem::path shards = world.folder / "data" / "shards";
  world.stop();
  const Digest stray = digest_of(as_bytes("stray"));
  QVERIFY(write_file_durably(shards / (stray.hex() + ".shard"), as_bytes("x")).ok());
  QVERIFY(write_file_durably(shards / (stray.hex() + ".123.part"), as_bytes("x")).ok());
  world.start();
  QCOMPARE(files_in(shards), kToyFragments);
}

void DoorsTest::the_data_folder_is_made_once() {
  const TempDir folder;
  QCOMPARE(open_data_folder(folder / "d", "").error().code, ErrorCode::kNotFound);
  QCOMPARE(files_in(folder.path()), 0);
  std::string pin;
  {
    const auto made = make_data_folder(folder / "d", "");
    QVERIFY(made.ok());
    pin = made.value().pin;
    QCOMPARE(made.value().settings.listen_port, uint16_t{7410});
  }
  QCOMPARE(make_data_folder(folder / "d", "").error().code, ErrorCode::kExists);
  QCOMPARE(open_data_folder(folder / "d", "").value().pin, pin);
  // Only the owner reads it.
  const auto mode = std::filesystem::status(folder / "d").permissions();
  QCOMPARE(mode, std::filesystem::perms::owner_all);
  // Settings that are wrong are refused by key, and so is a bad --listen.
  QVERIFY(
      write_file_durably(folder / "d" / "coordinator.toml", as_bytes("[listen]\nport = 70000\n"))
          .ok());
  QVERIFY(has(open_data_folder(folder / "d", "").error().message, "listen.port"));
  CoordinatorSettings settings;
  for (const char* text : {"", "7410", ":7410", "host:", "host:x", "host:70000", "host:-1"}) {
    QVERIFY2(!set_listen(settings, text).ok(), text);
  }
  QVERIFY(set_listen(settings, "[::1]:0").ok());
  QCOMPARE(settings.listen_host, std::string("::1"));
}

void DoorsTest::a_wrong_master_key_is_refused() {
  const TempDir folder;
  const std::filesystem::path data = folder / "d", key = data / "master.key";
  QVERIFY(make_data_folder(data, "").ok());
  const ByteVector right = read_file(key, kMebibyte).value();
  ByteVector wrong = right;
  wrong[7] ^= std::byte{1};
  QVERIFY(write_file_durably(key, wrong, 0600).ok());
  const auto refused = open_data_folder(data, "");
  QVERIFY(!refused.ok());
  QCOMPARE(refused.error().code, ErrorCode::kDenied);
  QVERIFY(has(refused.error().message, "put the right master.key back"));
  QVERIFY(write_file_durably(key, right, 0600).ok());
  QVERIFY(open_data_folder(data, "").ok());

  // A store from before there was a check: the keys of its models tell, and then it has one.
  const auto forget_check = [&](bool with_model) {
    const auto store = Store::open(data);
    QVERIFY(store.value()->query("DELETE FROM setting WHERE key = 'master_check'").run().ok());
    if (!with_model) return;
    ModelRow model;
    model.name = "m";
    model.manifest = "{}";
    model.shards.push_back(
        {digest_of(as_bytes("x")), 1, wrap_key(SecretBytes(ByteSpan(right)), random_key())});
    QVERIFY(ModelTable(*store.value()).add(model).ok());
  };
  forget_check(/*with_model=*/true);
  QVERIFY(write_file_durably(key, wrong, 0600).ok());
  QCOMPARE(open_data_folder(data, "").error().code, ErrorCode::kDenied);
  QVERIFY(write_file_durably(key, right, 0600).ok());
  QVERIFY(open_data_folder(data, "").ok());
  {
    const auto store = Store::open(data);
    QVERIFY(store.value()->query("DELETE FROM model").run().ok());
  }
  QVERIFY(write_file_durably(key, wrong, 0600).ok());
  QCOMPARE(open_data_folder(data, "").error().code, ErrorCode::kDenied);
}

QTEST_GUILESS_MAIN(DoorsTest)
#include "doors_test.moc"
