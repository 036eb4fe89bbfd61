#pragma once
// A SQLite file layer whose writes fail on demand, over the system's own.

namespace shoal::test {

// Registers the layer on its first call. Its name is for Store::Options::vfs.
const char* faulty_vfs();

// Lets `count` more writes and syncs succeed, then fails all that follow as a full disk; -1: none
// fails.
void fail_writes_after(int count);
int writes_so_far();
// Kills this process at the write or sync after `count` more; -1: none does.
void die_at_write(int count);

}  // namespace shoal::test
