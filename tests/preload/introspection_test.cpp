// mallinfo, mallinfo2, malloc_info, malloc_stats, malloc_trim and mallopt speak of the heap that serves the
// program. Open it when one of them reports zeros, or figures of another heap.
#include <gtest/gtest.h>
#include <malloc.h>

#include <string>
#include <vector>

#include "subject.hpp"

namespace {

using namespace subject;

// Bytes that the program holds, by mallinfo2: those of the arenas and those of blocks with a mapping of their
// own.
size_t held() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

class Blocks {
 public:
  Blocks(size_t count, size_t size) {
    blocks_.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      blocks_.push_back(malloc(size));
      memset(hide(blocks_.back()), 1, size);
    }
  }
  ~Blocks() { release(); }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  void release() {
    for (void* const block : blocks_)
      free(block);
    blocks_.clear();
  }

 private:
  std::vector<void*> blocks_;
};

TEST(Mallinfo2, GrowsAndFallsWithWhatTheProgramHolds) {
  struct {
    size_t count, size;
  } const cases[] = {{20000, 48}, {10000, 1000}, {1000, 20000}, {100, 200000}, {4, 9000000}};
  for (const auto& each : cases) {
    const size_t asked = each.count * each.size;
    const size_t before = held();
    Blocks blocks(each.count, each.size);
    const size_t during = held();
    EXPECT_GE(during, before + asked) << each.size;
    EXPECT_LE(during, before + asked + asked / 3 + 300 * KiB) << each.size;
    blocks.release();
    EXPECT_LE(held(), before + asked / 50 + 300 * KiB) << each.size;
  }
}

// Programs that watch their heap read uordblks: what glibc would not give a mapping of its own is counted there, also
// where SLUICE_GUARD_RATE gives it pages of its own.
TEST(Mallinfo2, CountsSmallBlocksWhereGlibcDoes) {
  const struct mallinfo2 before = mallinfo2();
  Blocks blocks(300, 1000);
  const struct mallinfo2 during = mallinfo2();
  EXPECT_GE(during.uordblks, before.uordblks + 300 * 1000);
  EXPECT_LE(during.hblkhd, before.hblkhd + 8 * KiB) << "the vector of the blocks alone";
  EXPECT_LE(during.hblks, before.hblks + 1);
  EXPECT_EQ(during.uordblks + during.fordblks, during.arena);
  blocks.release();
  EXPECT_LE(mallinfo2().uordblks, during.uordblks - 300 * 1000 + 8 * KiB);
}

TEST(Mallinfo2, PartsAddUp) {
  const Blocks blocks(1000, 5000);
  const struct mallinfo2 info = mallinfo2();
  EXPECT_GT(info.uordblks, 0u);
  EXPECT_GE(info.arena, info.uordblks);
  EXPECT_LE(info.uordblks + info.fordblks, info.arena);
}

TEST(Mallinfo, AgreesWithMallinfo2WhileTheFiguresFit) {
  using Mallinfo = struct mallinfo();
  auto* const old = reinterpret_cast<Mallinfo*>(dlsym(RTLD_DEFAULT, "mallinfo"));
  ASSERT_NE(old, nullptr);
  const Blocks blocks(1000, 5000);
  const struct mallinfo narrow = old();
  const struct mallinfo2 wide = mallinfo2();
  EXPECT_EQ(static_cast<size_t>(narrow.uordblks), wide.uordblks);
  EXPECT_EQ(static_cast<size_t>(narrow.hblkhd), wide.hblkhd);
}

// Returns: "" when every tag of the text is closed in order and there is one root, else what is wrong.
std::string fault_of_xml(const std::string& text) {
  std::vector<std::string> open;
  size_t roots = 0;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '>') return "stray >";
    if (text[at] != '<') {
      if (open.empty() && std::isspace(static_cast<unsigned char>(text[at])) == 0) return "text outside the root";
      ++at;
      continue;
    }
    const size_t end = text.find('>', at);
    if (end == std::string::npos) return "unclosed tag";
    const std::string tag = text.substr(at + 1, end - at - 1);
    at = end + 1;
    if (tag.empty() || tag.find('<') != std::string::npos) return "bad tag <" + tag + ">";
    size_t quotes = 0;
    for (const char c : tag)
      quotes += c == '"' ? 1 : 0;
    if (quotes % 2 != 0) return "unbalanced quotes in <" + tag + ">";
    if (tag[0] == '?') continue;
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return "unexpected <" + tag + ">";
      open.pop_back();
      continue;
    }
    if (open.empty()) ++roots;
    if (tag.back() != '/') open.push_back(tag.substr(0, tag.find(' ')));
  }
  if (!open.empty()) return "<" + open.back() + "> is not closed";
  return roots == 1 ? "" : "not exactly one root";
}

std::string malloc_info_text() {
  std::FILE* const file = std::tmpfile();
  EXPECT_EQ(malloc_info(0, file), 0);
  std::rewind(file);
  std::string text(1 << 20, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

TEST(MallocInfo, WritesWellFormedXml) {
  const Blocks blocks(1000, 500);
  const std::string text = malloc_info_text();
  EXPECT_NE(text.find("<malloc"), std::string::npos) << text;
  EXPECT_EQ(fault_of_xml(text), "") << text;
}

TEST(MallocInfo, ChangesWithTheHeap) {
  const std::string before = malloc_info_text();
  const Blocks blocks(5000, 500);
  EXPECT_NE(malloc_info_text(), before);
}

TEST(MallocInfo, RefusesUnknownOptions) {
  std::FILE* const file = std::tmpfile();
  EXPECT_NE(malloc_info(1, file), 0);
  EXPECT_EQ(std::ftell(file), 0);
  std::fclose(file);
}

std::string malloc_stats_text() {
  std::fflush(stderr);
  const int kept = dup(STDERR_FILENO);
  std::FILE* const file = std::tmpfile();
  dup2(fileno(file), STDERR_FILENO);
  malloc_stats();
  std::fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
  std::rewind(file);
  std::string text(1 << 20, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

TEST(MallocStats, WritesFiguresOfThisHeapToStandardError) {
  const std::string before = malloc_stats_text();
  EXPECT_NE(before, "");
  const Blocks blocks(5000, 2000);
  EXPECT_NE(malloc_stats_text(), before);
}

TEST(MallocTrim, GivesFreePagesBack) {
  { const Blocks warm(100, 100000); }
  malloc_trim(0);
  const size_t before = resident_bytes();
  {
    const Blocks small(100000, 600);
    const Blocks large(100, 600000);
    EXPECT_GT(resident_bytes(), before + 100 * MiB);
  }
  const int result = malloc_trim(0);
  EXPECT_TRUE(result == 0 || result == 1) << result;
  EXPECT_LT(resident_bytes(), before + 24 * MiB);
}

TEST(Mallopt, AnswersAndHarmsNothing) {
  for (const int parameter : {M_MXFAST, M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX}) {
    const int result = mallopt(parameter, 64 * 1024);
    EXPECT_TRUE(result == 0 || result == 1) << parameter << ": " << result;
  }
  const Blocks small(1000, 100);
  const Blocks large(10, 1000000);
}

}  // namespace
