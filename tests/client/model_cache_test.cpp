// Goal: what the cache hands out is what its name says, it keeps its limit, and nothing that
// happens to its files, to the disk or to this process loses more than a download.

#include <sys/resource.h>

#include <QTest>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/random.h"
#include "client/model_cache.h"

using namespace shoal;
using namespace shoal::client;

namespace {

constexpr CacheLimits kWide{Bytes{100 << 20}, Bytes{0}};

struct Shard {
  ByteVector bytes;
  Digest digest;
};

Shard shard(size_t size, uint64_t seed) {
  Shard made{ByteVector(size)};
  Random(seed).fill(made.bytes);
  made.digest = digest_of(made.bytes);
  return made;
}

Result<void> put(ModelCache& cache, const Shard& shard) {
  Result<ModelCache::Download> download = cache.download(shard.digest, shard.bytes.size());
  if (!download.ok()) return download.error();
  while (true) {
    const Result<bool> done = download.value().catch_up();
    if (!done.ok()) return done.error();
    if (done.value()) break;
  }
  SHOAL_TRY(download.value().append(ByteSpan(shard.bytes).subspan(download.value().have())));
  return download.value().finish();
}

Result<void> prove(ModelCache& cache, const Shard& shard) {
  Result<ModelCache::Proof> proof = cache.prove(shard.digest);
  if (!proof.ok()) return proof.error();
  while (true) {
    const Result<bool> step = proof.value().step();
    if (!step.ok()) return step.error();
    if (step.value()) return {};
  }
}

ByteVector content(ModelCache& cache, const Shard& shard) {
  const InputFile file = cache.read(shard.digest).value();
  ByteVector bytes(file.size());
  SHOAL_CHECK(file.read_at(0, bytes).value() == bytes.size());
  return bytes;
}

void flip_byte(const std::filesystem::path& path, int64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const char old = static_cast<char>(file.get());
  file.seekp(at);
  file.put(static_cast<char>(old ^ 1));
}

}  // namespace

class ModelCacheTest : public QObject {
  Q_OBJECT

 private:
  ManualClock clock_;

  std::unique_ptr<ModelCache> open(const TempDir& dir, CacheLimits limits = kWide) {
    clock_.advance(Millis{1000});
    return ModelCache::open(dir / "shards", limits, clock_).value();
  }

 private Q_SLOTS:
  void keeps_what_it_was_given() {
    const TempDir dir;
    const Shard one = shard(3 << 20, 1);
    auto cache = open(dir);
    QVERIFY(!cache->has(one.digest));
    QVERIFY(put(*cache, one).ok());
    QVERIFY(cache->has(one.digest) && cache->proved(one.digest));
    QVERIFY(content(*cache, one) == one.bytes);
    QCOMPARE(cache->used().count, int64_t(3 << 20));
    QVERIFY(std::filesystem::exists(dir / "shards/CACHEDIR.TAG"));

    // Another run does not take the disk's word for it.
    cache = open(dir);
    QVERIFY(cache->has(one.digest) && !cache->proved(one.digest));
    QVERIFY(prove(*cache, one).ok());
    QVERIFY(cache->proved(one.digest));
    QVERIFY(content(*cache, one) == one.bytes);
    QVERIFY(cache->proved(one.digest));  // Its own touch of the file casts no doubt.
  }

  void goes_on_after_a_crash() {
    const TempDir dir;
    const Shard one = shard(9 << 20, 2);
    {
      auto cache = open(dir);
      auto download = cache->download(one.digest, one.bytes.size()).value();
      QVERIFY(download.catch_up().value());
      QVERIFY(download.append(ByteSpan(one.bytes).first(5 << 20)).ok());
    }  // What a killed process leaves is the same file.
    QCOMPARE(std::filesystem::file_size(dir / ("shards/" + one.digest.hex() + ".part")),
             uintmax_t(5 << 20));
    auto cache = open(dir);
    QCOMPARE(cache->used().count, int64_t(5 << 20));
    auto download = cache->download(one.digest, one.bytes.size()).value();
    QCOMPARE(download.have(), uint64_t(5 << 20));
    QVERIFY(!download.catch_up().value());  // In pieces.
    QVERIFY(download.catch_up().value());
    QVERIFY(download.append(ByteSpan(one.bytes).subspan(5 << 20)).ok());
    QVERIFY(download.finish().ok());
    QVERIFY(content(*cache, one) == one.bytes);
  }

  void begins_again_after_a_damaged_part() {
    const TempDir dir;
    const Shard one = shard(1 << 20, 3);
    auto cache = open(dir);
    {
      auto download = cache->download(one.digest, one.bytes.size()).value();
      QVERIFY(download.append(ByteSpan(one.bytes).first(1 << 19)).ok());
    }
    flip_byte(dir / ("shards/" + one.digest.hex() + ".part"), 1000);
    const Result<void> wrong = put(*cache, one);
    QVERIFY(!wrong.ok());
    QCOMPARE(wrong.error().code, ErrorCode::kCorrupt);
    QVERIFY(!cache->has(one.digest));
    QCOMPARE(cache->used().count, int64_t(0));
    QVERIFY(put(*cache, one).ok());  // From the start.
  }

  void refuses_what_is_not_the_shard() {
    const TempDir dir;
    const Shard one = shard(1000, 4);
    auto cache = open(dir);
    auto download = cache->download(one.digest, 1000).value();
    QVERIFY(download.append(ByteSpan(one.bytes).first(999)).ok());
    QCOMPARE(download.append(ByteSpan(one.bytes).first(2)).error().code,
             ErrorCode::kCorrupt);                                  // Too long.
    QCOMPARE(download.finish().error().code, ErrorCode::kCorrupt);  // Too short.
  }

  void finds_damage_at_rest() {
    const TempDir dir;
    const Shard one = shard(1 << 20, 5);
    auto cache = open(dir);
    QVERIFY(put(*cache, one).ok());
    flip_byte(dir / ("shards/" + one.digest.hex()), 77);
    // The file's time shows that another program wrote to it, even to the process that proved it.
    QVERIFY(!cache->proved(one.digest));
    const Result<void> proof = prove(*cache, one);
    QVERIFY(!proof.ok());
    QCOMPARE(proof.error().code, ErrorCode::kCorrupt);
    QVERIFY(!cache->has(one.digest));  // Gone, so that it is fetched again.
    QVERIFY(put(*cache, one).ok());

    std::filesystem::resize_file(dir / ("shards/" + one.digest.hex()), 100);
    QCOMPARE(prove(*cache, one).error().code, ErrorCode::kCorrupt);
    QVERIFY(put(*cache, one).ok());
    std::filesystem::remove(dir / ("shards/" + one.digest.hex()));
    QCOMPARE(prove(*cache, one).error().code, ErrorCode::kCorrupt);
    QVERIFY(!cache->has(one.digest));
  }

  void a_doubted_shard_must_prove_itself() {
    const TempDir dir;
    const Shard one = shard(1000, 6);
    auto cache = open(dir);
    QVERIFY(put(*cache, one).ok());
    cache->doubt(one.digest);
    QVERIFY(cache->has(one.digest) && !cache->proved(one.digest));
    QVERIFY(prove(*cache, one).ok());
  }

  void evicts_the_least_recently_used() {
    const TempDir dir;
    const CacheLimits limits{Bytes{3000}, Bytes{0}};
    const Shard a = shard(1000, 10), b = shard(1000, 11), c = shard(1000, 12), d = shard(1000, 13),
                e = shard(2000, 14);
    auto cache = open(dir, limits);
    for (const Shard* one : {&a, &b, &c}) {
      clock_.advance(Millis{1000});
      QVERIFY(put(*cache, *one).ok());
    }
    clock_.advance(Millis{1000});
    (void)content(*cache, a);  // Now b is the oldest.
    clock_.advance(Millis{1000});
    QVERIFY(put(*cache, d).ok());
    QVERIFY(cache->has(a.digest) && !cache->has(b.digest) && cache->has(c.digest) &&
            cache->has(d.digest));

    cache = open(dir, limits);  // The order outlives the process: c, a, d.
    QVERIFY(put(*cache, e).ok());
    QVERIFY(!cache->has(c.digest) && !cache->has(a.digest) && cache->has(d.digest) &&
            cache->has(e.digest));
    QVERIFY(cache->used() <= limits.bytes_max);

    cache = open(dir, {Bytes{2000}, Bytes{0}});  // The owner lowered the limit.
    QVERIFY(!cache->has(d.digest) && cache->has(e.digest));
  }

  void never_evicts_what_is_in_use() {
    const TempDir dir;
    const Shard a = shard(1000, 20), b = shard(1000, 21), c = shard(1000, 22);
    auto cache = open(dir, {Bytes{2000}, Bytes{0}});
    QVERIFY(put(*cache, a).ok());
    QVERIFY(put(*cache, b).ok());
    {
      const ModelCache::Hold hold_a(*cache, a.digest);
      ModelCache::Hold hold_b(*cache, b.digest);
      const Result<void> refused = put(*cache, c);
      QVERIFY(!refused.ok());
      QCOMPARE(refused.error().code, ErrorCode::kNoSpace);
      QVERIFY2(refused.error().message.find("shard cache is full") != std::string::npos,
               refused.error().message.c_str());
      QVERIFY(cache->has(a.digest) && cache->has(b.digest));
      {
        const ModelCache::Hold moved(std::move(hold_b));
        QVERIFY(!put(*cache, c).ok());
      }
      QVERIFY(put(*cache, c).ok());  // b was let go, and went.
      QVERIFY(cache->has(a.digest) && !cache->has(b.digest));
    }
    // A download in progress is in use as well, at its whole size.
    auto download = cache->download(b.digest, 1000).value();
    const Shard d = shard(1500, 23);
    QCOMPARE(put(*cache, d).error().code, ErrorCode::kNoSpace);
  }

  void a_shard_beyond_the_limit_is_refused_before_it_is_fetched() {
    const TempDir dir;
    const Shard big = shard(5000, 30);
    auto cache = open(dir, {Bytes{4999}, Bytes{0}});
    const auto refused = cache->download(big.digest, 5000);
    QVERIFY(!refused.ok());
    QCOMPARE(refused.error().code, ErrorCode::kNoSpace);
    QVERIFY2(refused.error().message.find("5000") != std::string::npos,
             refused.error().message.c_str());
    QVERIFY(!std::filesystem::exists(dir / ("shards/" + big.digest.hex() + ".part")));
  }

  void keeps_the_disk_free() {
    const TempDir dir;
    const Shard one = shard(1000, 31);
    auto cache = open(dir, {Bytes{1 << 20}, Bytes{int64_t{1} << 60}});
    const auto refused = cache->download(one.digest, 1000);
    QCOMPARE(refused.error().code, ErrorCode::kNoSpace);
    QVERIFY2(refused.error().message.find("nearly full") != std::string::npos,
             refused.error().message.c_str());
  }

  // Method: the kernel's limit on file sizes fails a write as a full disk does, in the same place.
  void a_write_that_fails_gives_the_space_back() {
    const TempDir dir;
    const Shard old = shard(1000, 40), one = shard(3 << 20, 41);
    auto cache = open(dir);
    QVERIFY(put(*cache, old).ok());
    const ModelCache::Hold hold(*cache, old.digest);
    auto download = cache->download(one.digest, one.bytes.size()).value();
    QVERIFY(download.append(ByteSpan(one.bytes).first(1 << 20)).ok());

    struct rlimit before {};
    getrlimit(RLIMIT_FSIZE, &before);
    struct sigaction ignore {
    }, was{};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &ignore, &was);
    struct rlimit tight = before;
    tight.rlim_cur = 2 << 20;
    setrlimit(RLIMIT_FSIZE, &tight);
    const Result<void> failed = download.append(ByteSpan(one.bytes).subspan(1 << 20, 1536 << 10));
    setrlimit(RLIMIT_FSIZE, &before);
    sigaction(SIGXFSZ, &was, nullptr);

    QVERIFY(!failed.ok());
    QCOMPARE(failed.error().code, ErrorCode::kNoSpace);
    QVERIFY2(failed.error().message.find("the shard cache") != std::string::npos,
             failed.error().message.c_str());
    QVERIFY(!std::filesystem::exists(dir / ("shards/" + one.digest.hex() + ".part")));
    QVERIFY(cache->has(old.digest));  // In use: it did not have to go.
    QCOMPARE(cache->used().count, int64_t(1000));
  }

  void a_folder_that_cannot_be_made_is_named() {
    const TempDir dir;
    std::ofstream(dir / "file") << "in the way";
    const auto refused = ModelCache::open(dir / "file/shards", kWide, clock_);
    QVERIFY(!refused.ok());
    QVERIFY2(refused.error().message.find((dir / "file").string()) != std::string::npos,
             refused.error().message.c_str());
    // As root permissions refuse nothing; a folder of the kernel's refuses everyone.
    const auto kernel = ModelCache::open("/proc/shoal", kWide, clock_);
    QVERIFY(!kernel.ok());
    QVERIFY(kernel.error().message.find("/proc/shoal") != std::string::npos);
  }

  void others_files_are_left_alone() {
    const TempDir dir;
    std::filesystem::create_directories(dir / "shards");
    std::ofstream(dir / "shards/notes.txt") << "mine";
    std::ofstream(dir / ("shards/" + std::string(64, 'z'))) << "mine";
    auto cache = open(dir, {Bytes{1}, Bytes{0}});
    QCOMPARE(cache->used().count, int64_t(0));
    QVERIFY(std::filesystem::exists(dir / "shards/notes.txt"));
    // A link in a part's place is not followed.
    const Shard one = shard(1, 50);
    std::filesystem::create_symlink(dir / "elsewhere",
                                    dir / ("shards/" + one.digest.hex() + ".part"));
    QVERIFY(!cache->download(one.digest, 1).ok());
    QVERIFY(!std::filesystem::exists(dir / "elsewhere"));
  }
};

QTEST_GUILESS_MAIN(ModelCacheTest)
#include "model_cache_test.moc"
