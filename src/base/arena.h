#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace postflight {

// A bump allocator: memory is allocated piece by piece and freed all at once.
// Allocating is an inline pointer bump instead of the virtual call of a pmr
// resource; bench/pickle_bench shows the difference.
class Arena {
 public:
  Arena() = default;
  Arena(Arena&&) = default;
  Arena& operator=(Arena&&) = default;

  // Uninitialised memory for `count` values.
  template <class T>
  T* allocate(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    static_assert(alignof(T) <= kAlignment && sizeof(T) % kAlignment == 0);
    const std::size_t bytes = count * sizeof(T);
    if (bytes > static_cast<std::size_t>(end_ - next_)) [[unlikely]]
      return static_cast<T*>(allocate_elsewhere(bytes));
    T* const room = reinterpret_cast<T*>(next_);
    next_ += bytes;
    return room;
  }

  template <class T>
  T* make(const T& value = {}) {
    return new (allocate<T>(1)) T(value);
  }

  // Uninitialised memory for text.
  char* allocate_text(std::size_t size);

  // A size hint: an empty arena starts with one chunk of about that size.
  // malloc hands a freed large block to the next arena with its pages still
  // mapped, but returns many small ones to the kernel, and faulting in fresh
  // pages costs more than all the parsing.
  void expect(std::size_t bytes);

  // Frees everything allocated so far but keeps the memory for reuse.
  void reset();

  // Bytes held by the arena, whether allocated from it or not.
  std::uint64_t reserved_bytes() const { return reserved_; }

 private:
  static constexpr std::size_t kAlignment = 8;

  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  struct Chunk {
    explicit Chunk(std::size_t bytes);

    std::unique_ptr<std::byte, Free> memory;
    std::size_t size;
  };

  void* allocate_elsewhere(std::size_t bytes);
  void add_chunk(std::size_t bytes);

  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
  std::vector<Chunk> chunks_;
  std::size_t used_chunks_ = 0;
  std::vector<Chunk> large_;  // one allocation each; not kept by reset()
  std::uint64_t reserved_ = 0;
};

}  // namespace postflight
