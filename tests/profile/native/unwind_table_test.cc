#include "profile/native/unwind_table.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/file.h"
#include "profile/engine/agent_ring.h"
#include "profile/native/unwinder.h"

#include <pthread.h>
#include <ucontext.h>

namespace postflight {
namespace {

// What the agent would hand over of this very place.
struct Captured {
  std::array<std::uint64_t, 8> registers;
  std::vector<std::byte> stack;
};

// How much of this thread's stack lies above an address.
std::size_t stack_above(std::uint64_t address) {
  pthread_attr_t attributes;
  void* bottom = nullptr;
  std::size_t size = 0;
  ::pthread_getattr_np(::pthread_self(), &attributes);
  ::pthread_attr_getstack(&attributes, &bottom, &size);
  ::pthread_attr_destroy(&attributes);
  return reinterpret_cast<std::uint64_t>(bottom) + size - address;
}

// Copies all of the stack, what the sanitizer put between variables included.
[[gnu::noinline, gnu::no_sanitize_address]] Captured capture() {
  ucontext_t context;
  ::getcontext(&context);
  const greg_t* const r = context.uc_mcontext.gregs;
  Captured captured;
  std::size_t i = 0;
  for (const int number :
       {REG_RIP, REG_RSP, REG_RBP, REG_RBX, REG_R12, REG_R13, REG_R14, REG_R15})
    captured.registers[i++] = static_cast<std::uint64_t>(r[number]);
  const auto* const from =
      reinterpret_cast<const std::byte*>(captured.registers[1]);
  captured.stack.resize(
      std::min<std::size_t>(8 << 10, stack_above(captured.registers[1])));
  for (std::size_t j = 0; j < captured.stack.size(); ++j)
    captured.stack[j] = static_cast<const volatile std::byte*>(from)[j];
  return captured;
}

}  // namespace

// Not static, so that they have names.
[[gnu::noinline]] Captured inner_function(int depth) {
  Captured captured = capture();
  captured.stack[0] = static_cast<std::byte>(depth);
  return captured;
}
[[gnu::noinline]] Captured outer_function(int depth) {
  Captured captured = inner_function(depth + 1);
  captured.stack[0] = static_cast<std::byte>(depth);
  return captured;
}

namespace {

TEST(NativeUnwinder, FindsItsOwnCallers) {
  const Captured captured = outer_function(1);
  NativeModules modules;
  NativeUnwinder unwinder(::getpid(), modules);
  const std::vector<std::uint64_t> found =
      unwinder.unwind(captured.registers, captured.stack).frames;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < found.size(); ++i)
    names.push_back(
        unwinder.frames(i == 0 ? found[i] : found[i] - 1).back().function);
  ASSERT_GE(names.size(), 4U);
  EXPECT_EQ(names[0], "postflight::(anonymous namespace)::capture()");
  EXPECT_EQ(names[1], "postflight::inner_function(int)");
  EXPECT_EQ(names[2], "postflight::outer_function(int)");
  // The library, or with debug information the source.
  const std::string file = unwinder.frames(found[0]).back().file;
  EXPECT_TRUE(file == "profile_test" || file.ends_with("unwind_table_test.cc"))
      << file;
}

TEST(NativeUnwinder, EndsWithTheCopy) {
  const Captured captured = outer_function(1);
  NativeModules modules;
  NativeUnwinder unwinder(::getpid(), modules);
  const std::size_t whole =
      unwinder.unwind(captured.registers, captured.stack).frames.size();
  for (std::size_t size = 0; size < captured.stack.size(); size += 8) {
    const NativeStack stack =
        unwinder.unwind(captured.registers, Bytes(captured.stack).first(size));
    EXPECT_LE(stack.frames.size(), whole);
    EXPECT_TRUE(stack.cut || stack.frames.size() == whole) << size;
  }
  EXPECT_TRUE(unwinder.unwind(std::span<const std::uint64_t>(), captured.stack)
                  .frames.empty());
}

TEST(NativeUnwinder, TakesAnyStack) {
  Captured captured = outer_function(1);
  NativeModules modules;
  NativeUnwinder unwinder(::getpid(), modules);
  std::uint32_t state = 1;
  for (int round = 0; round < 200; ++round) {
    for (std::size_t i = 0; i < 600; ++i) {
      state = state * 1664525 + 1013904223;
      captured.stack[state % captured.stack.size()] =
          static_cast<std::byte>(state >> 24);
    }
    EXPECT_LE(unwinder.unwind(captured.registers, captured.stack).frames.size(),
              512U);
  }
}

TEST(UnwindTable, KnowsEveryFunctionOfPython) {
  const Result<MappedFile> file = MappedFile::open("/usr/bin/python3");
  ASSERT_TRUE(file);
  const Result<ElfImage> image = ElfImage::parse(file->bytes());
  ASSERT_TRUE(image);
  const UnwindTable table = UnwindTable::parse(*image);
  EXPECT_GT(table.size(), 1000U);
  std::size_t functions = 0;
  std::size_t known = 0;
  for (const ElfFunction& function : image->functions()) {
    if (function.size == 0)
      continue;
    ++functions;
    const auto row = table.row(function.address);
    // Upon entry, there is nothing on the stack but the return address.
    known += row && row->frame == UnwindRow::Frame::kRegister &&
                     row->frame_register == kRsp && row->frame_offset == 8
                 ? 1
                 : 0;
  }
  EXPECT_GT(functions, 1000U);
  EXPECT_GE(known * 100, functions * 99);
}

TEST(UnwindTable, SurvivesEveryFlippedByte) {
  const Result<MappedFile> file = MappedFile::open("/usr/bin/true");
  ASSERT_TRUE(file);
  std::vector<std::byte> bytes(file->bytes().begin(), file->bytes().end());
  std::size_t first = 0;
  std::size_t last = 0;
  {
    const Result<ElfImage> image = ElfImage::parse(bytes);
    ASSERT_TRUE(image);
    const ElfSection* const section = image->section(".eh_frame");
    ASSERT_NE(section, nullptr);
    first = static_cast<std::size_t>(section->bytes.data() - bytes.data());
    last = first + std::min<std::size_t>(section->bytes.size(), 600);
  }
  for (std::size_t at = first; at < last; ++at) {
    bytes[at] ^= std::byte{0xff};
    const Result<ElfImage> image = ElfImage::parse(bytes);
    ASSERT_TRUE(image);
    const UnwindTable table = UnwindTable::parse(*image);
    for (std::uint64_t address = 0x2000; address < 0x4000; address += 64)
      static_cast<void>(table.row(address));
    bytes[at] ^= std::byte{0xff};
  }
}

}  // namespace
}  // namespace postflight
