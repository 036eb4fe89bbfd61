// Files that are replaced whole, state with a last good copy, mapped files and locks.

#include <QProcess>
#include <QTest>
#include <fstream>
#include <thread>

#include "base/digest.h"
#include "base/files.h"

using namespace shoal;

namespace {

void spoil(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

std::string text_of(const std::filesystem::path& path) {
  return std::string(as_text(read_file(path, kMebibyte).value()));
}

size_t files_in(const std::filesystem::path& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

}  // namespace

class FilesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void reads_up_to_its_limit();
  void absent_files_and_folders_have_their_own_errors();
  void replaces_a_file_and_leaves_nothing_beside_it();
  void mode_is_as_asked();
  void full_disk_is_named_and_the_old_file_stays();
  void what_is_no_file_is_named_and_holds_nobody();
  void unwritable_folder_is_named();
  void readers_see_old_or_new_but_no_mixture();
  void state_comes_back();
  void state_falls_back_from_every_cut_and_every_changed_byte();
  void state_saved_once_has_its_copy_and_a_damaged_one_is_mended_by_the_next_save();
  void state_that_cannot_keep_its_copy_is_not_changed();
  void state_whose_copy_alone_could_be_written_is_as_it_was();
  void state_absent_is_not_found_and_both_corrupt_is_corrupt();
  void digest_of_a_file_is_that_of_its_bytes();
  void maps_a_file();
  void lock_is_held_once();
  void folders_are_made_for_the_owner_alone();
};

void FilesTest::reads_up_to_its_limit() {
  const TempDir folder;
  QVERIFY(write_file_durably(folder / "f", as_bytes("12345")).ok());
  QVERIFY(read_file(folder / "f", Bytes{5}).ok());
  const auto refused = read_file(folder / "f", Bytes{4});
  QVERIFY(!refused.ok());
  QVERIFY(refused.error().code == ErrorCode::kNoSpace);
}

void FilesTest::absent_files_and_folders_have_their_own_errors() {
  const TempDir folder;
  const auto absent = read_file(folder / "none", kMebibyte);
  QVERIFY(absent.error().code == ErrorCode::kNotFound);
  QVERIFY(absent.error().message.find("none") != std::string::npos);
  QVERIFY(read_file(folder.path(), kMebibyte).error().code == ErrorCode::kInvalid);
  QVERIFY(MappedFile::open(folder.path()).error().code == ErrorCode::kInvalid);
}

void FilesTest::replaces_a_file_and_leaves_nothing_beside_it() {
  const TempDir folder;
  QVERIFY(write_file_durably(folder / "f", as_bytes("old")).ok());
  QVERIFY(write_file_durably(folder / "f", as_bytes("new")).ok());
  QCOMPARE(text_of(folder / "f"), std::string("new"));
  QCOMPARE(files_in(folder.path()), size_t{1});
}

void FilesTest::mode_is_as_asked() {
  const TempDir folder;
  QVERIFY(write_file_durably(folder / "secret", as_bytes("x"), 0600).ok());
  const auto mode = std::filesystem::status(folder / "secret").permissions();
  QCOMPARE(static_cast<unsigned>(mode), 0600u);
}

// Goal: a full disk is said so. Method: /dev/full refuses every byte, but a file in /dev cannot be
// made; so a file of more bytes than the disk has is asked for through a sparse limit:
// RLIMIT_FSIZE.
void FilesTest::full_disk_is_named_and_the_old_file_stays() {
  const TempDir folder;
  QVERIFY(write_file_durably(folder / "f", as_bytes("old")).ok());
  QProcess shell;  // In a process of its own, as the limit lasts.
  shell.start("/bin/sh", {"-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" -child \"$1\"",
                          QCoreApplication::applicationFilePath(),
                          QString::fromStdString((folder / "f").string())});
  QVERIFY(shell.waitForFinished());
  const QByteArray said = shell.readAllStandardOutput();
  QVERIFY2(said.startsWith("no_space cannot write ") && said.contains("/f: "), said);
  QCOMPARE(text_of(folder / "f"), std::string("old"));
  QCOMPARE(files_in(folder.path()), size_t{1});
}

void FilesTest::what_is_no_file_is_named_and_holds_nobody() {
  const TempDir folder;
  const std::string pipe = (folder / "pipe").string();
  QCOMPARE(QProcess::execute("mkfifo", {QString::fromStdString(pipe)}), 0);
  const auto names = [](const Error& error, const std::string& path, const char* kind) {
    return error.code == ErrorCode::kInvalid &&
           error.message == path + " is a " + kind + ", not a file";
  };
  QVERIFY(names(read_file(pipe, Bytes{100}).error(), pipe, "pipe"));
  QVERIFY(names(InputFile::open(pipe).error(), pipe, "pipe"));
  QVERIFY(names(MappedFile::open(pipe).error(), pipe, "pipe"));
  QVERIFY(names(read_file(folder.path(), Bytes{100}).error(), folder.path().string(), "folder"));
}

void FilesTest::unwritable_folder_is_named() {
  const auto refused = write_file_durably("/proc/shoal-state", as_bytes("x"));
  QVERIFY(!refused.ok());
  QVERIFY(refused.error().message.find("/proc/shoal-state") != std::string::npos);
  QVERIFY(!make_folder("/proc/shoal").ok());
  const TempDir folder;
  spoil(folder / "file", "x");
  QVERIFY(!make_folder(folder / "file/below").ok());
}

void FilesTest::readers_see_old_or_new_but_no_mixture() {
  const TempDir folder;
  const std::string a(200'000, 'a'), b(300'000, 'b');
  QVERIFY(write_file_durably(folder / "f", as_bytes(a)).ok());
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 0; i < 20; ++i) {
      if (!write_file_durably(folder / "f", as_bytes(i % 2 == 0 ? b : a)).ok()) break;
    }
    done = true;
  });
  bool mixed = false;
  while (!done) {
    const std::string seen = text_of(folder / "f");
    mixed |= seen != a && seen != b;
  }
  writer.join();
  QVERIFY(!mixed);
}

void FilesTest::state_comes_back() {
  const TempDir folder;
  const StateFile state(folder / "s");
  QVERIFY(state.save(as_bytes("one")).ok());
  QVERIFY(state.save({}).ok());
  QVERIFY(state.load().value().bytes.empty());
  QVERIFY(state.save(as_bytes("three")).ok());
  const auto loaded = state.load();
  QVERIFY(loaded.ok() && !loaded.value().fell_back_because);
  QVERIFY(as_text(loaded.value().bytes) == "three");
}

void FilesTest::state_falls_back_from_every_cut_and_every_changed_byte() {
  const TempDir folder;
  const StateFile state(folder / "s");
  QVERIFY(state.save(as_bytes("first")).ok());
  QVERIFY(state.save(as_bytes("second")).ok());
  const std::string whole = text_of(folder / "s");
  // Another file, not another name: what damages one leaves the other.
  QVERIFY(!std::filesystem::equivalent(folder / "s", folder / "s.good"));
  const auto check_falls_back = [&](const std::string& content) {
    spoil(folder / "s", content);
    const auto loaded = state.load();
    return loaded.ok() && loaded.value().fell_back_because.has_value() &&
           as_text(loaded.value().bytes) == "second";
  };
  for (size_t cut = 0; cut < whole.size(); ++cut) QVERIFY(check_falls_back(whole.substr(0, cut)));
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    QVERIFY(check_falls_back(changed));
  }
  QVERIFY(check_falls_back(whole + "x"));
  std::filesystem::remove(folder / "s");
  QVERIFY(state.load().value().fell_back_because->code == ErrorCode::kNotFound);
}

void FilesTest::state_saved_once_has_its_copy_and_a_damaged_one_is_mended_by_the_next_save() {
  const TempDir folder;
  const StateFile state(folder / "s");
  QVERIFY(state.save(as_bytes("first")).ok());
  spoil(folder / "s", "rubbish");
  QVERIFY(as_text(state.load().value().bytes) == "first");
  QVERIFY(state.save(as_bytes("second")).ok());
  QVERIFY(!state.load().value().fell_back_because);
  spoil(folder / "s.good", "rubbish");
  QVERIFY(as_text(state.load().value().bytes) == "second");
}

void FilesTest::state_that_cannot_keep_its_copy_is_not_changed() {
  const TempDir folder;
  const StateFile state(folder / "s");
  QVERIFY(state.save(as_bytes("first")).ok());
  std::filesystem::remove(folder / "s.good");
  std::filesystem::create_directory(folder / "s.good");
  QVERIFY(!state.save(as_bytes("second")).ok());
  QVERIFY(as_text(state.load().value().bytes) == "first");
}

// Method: a folder in the file's place, so that the copy can be written and the file cannot.
void FilesTest::state_whose_copy_alone_could_be_written_is_as_it_was() {
  const TempDir folder;
  const StateFile state(folder / "s");
  QVERIFY(state.save(as_bytes("first")).ok());
  std::filesystem::remove(folder / "s");
  std::filesystem::create_directory(folder / "s");
  QVERIFY(!state.save(as_bytes("second")).ok());
  QVERIFY(as_text(state.load().value().bytes) == "first");
  QVERIFY(!state.save(as_bytes("third")).ok());
  QVERIFY(as_text(state.load().value().bytes) == "first");
  std::filesystem::remove(folder / "s");
  QVERIFY(state.save(as_bytes("fourth")).ok());
  QVERIFY(!state.load().value().fell_back_because);
  spoil(folder / "s", "rubbish");
  QVERIFY(as_text(state.load().value().bytes) == "fourth");
  // And nothing else is left behind.
  const auto left = std::filesystem::directory_iterator(folder.path());
  QCOMPARE(std::distance(begin(left), end(left)), 2);
  // One that there never was is not there afterwards.
  const StateFile other(folder / "t");
  std::filesystem::create_directory(folder / "t");
  QVERIFY(!other.save(as_bytes("first")).ok());
  std::filesystem::remove(folder / "t");
  QVERIFY(other.load().error().code == ErrorCode::kNotFound);
}

void FilesTest::state_absent_is_not_found_and_both_corrupt_is_corrupt() {
  const TempDir folder;
  const StateFile state(folder / "s");
  QVERIFY(state.load().error().code == ErrorCode::kNotFound);
  spoil(folder / "s", "rubbish");
  spoil(folder / "s.good", "rubbish");
  QVERIFY(state.load().error().code == ErrorCode::kCorrupt);
}

void FilesTest::digest_of_a_file_is_that_of_its_bytes() {
  const TempDir folder;
  const std::string content(3'000'000, 'q');
  QVERIFY(write_file_durably(folder / "f", as_bytes(content)).ok());
  QVERIFY(digest_of_file(folder / "f").value() == digest_of(as_bytes(content)));
  QVERIFY(digest_of_file(folder / "none").error().code == ErrorCode::kNotFound);
}

void FilesTest::maps_a_file() {
  const TempDir folder;
  QVERIFY(write_file_durably(folder / "f", as_bytes("mapped")).ok());
  auto opened = MappedFile::open(folder / "f");
  QVERIFY(opened.ok());
  MappedFile file = std::move(opened).value();
  // What replaces the file leaves the mapping whole.
  QVERIFY(write_file_durably(folder / "f", as_bytes("x")).ok());
  QVERIFY(as_text(file.bytes()) == "mapped");
  MappedFile moved = std::move(file);
  QVERIFY(as_text(moved.bytes()) == "mapped" && file.size() == 0);
  spoil(folder / "empty", "");
  QVERIFY(MappedFile::open(folder / "empty").value().size() == 0);
}

void FilesTest::lock_is_held_once() {
  const TempDir folder;
  {
    const auto first = FileLock::acquire(folder / "lock");
    QVERIFY(first.ok());
    const auto second = FileLock::acquire(folder / "lock");
    QVERIFY(!second.ok());
    QVERIFY(second.error().code == ErrorCode::kUnavailable);
  }
  QVERIFY(FileLock::acquire(folder / "lock").ok());
}

void FilesTest::folders_are_made_for_the_owner_alone() {
  const TempDir folder;
  QVERIFY(make_folder(folder / "a/b/c").ok());
  QVERIFY(make_folder(folder / "a/b/c").ok());
  QCOMPARE(static_cast<unsigned>(std::filesystem::status(folder / "a/b").permissions()), 0700u);
  QVERIFY(free_space(folder.path()).value() > Bytes{0});
  QVERIFY(!free_space(folder / "none").ok());
}

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "-child") {
    const auto written = write_file_durably(argv[2], ByteVector(5'000'000));
    if (!written.ok()) {
      std::printf("%s %s\n", std::string(error_code_name(written.error().code)).c_str(),
                  written.error().message.c_str());
    }
    return 0;
  }
  QCoreApplication app(argc, argv);
  FilesTest test;
  return QTest::qExec(&test, argc, argv);
}
#include "files_test.moc"
