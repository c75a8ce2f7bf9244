// torch hashes the names of an archive's records by std::hash, in the order in
// which a std::unordered_set has them. Neither is the same in any two C++
// libraries, and so archives of Linux, macOS and Windows with the same records
// have different ids:
//
//             hash                   order of the set
//   libstdc++ Murmur (the one that   (the one that we are built with)
//             we are built with)
//   libc++    CityHash64 of 2011     a new bucket goes to the front of the list
//   MSVC      FNV-1a                 a new bucket goes to its end
//
// Both keep one list, in which the names of a bucket are together, and put a
// name at the front of a bucket that is not new. When they grow they go through
// the list and move each name to the front of its new bucket, if that has a
// name already. The hash of libc++ is part of its ABI, quirks included: where
// CityHash shifts 64 bits it shifts 32.

#include "checkpoint/verification/record_names.h"

#include <bit>
#include <functional>
#include <list>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace postflight {
namespace {

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// CityHash64, version 1.0.
class CityHash {
 public:
  explicit CityHash(std::string_view text) : text_(text) {}

  std::uint64_t hash() const {
    if (text_.size() <= 16)
      return upto_16();
    if (text_.size() <= 32)
      return upto_32();
    return text_.size() <= 64 ? upto_64() : longer();
  }

 private:
  using Word = std::uint64_t;
  using Two = std::pair<Word, Word>;

  static constexpr Word kPrime0 = 0xc3a5c85c97cb3127;
  static constexpr Word kPrime1 = 0xb492b66fbe98f273;
  static constexpr Word kPrime2 = 0x9ae16a3b2f90404f;
  static constexpr Word kPrime3 = 0xc949d7c7509e6557;

  Word word(std::size_t at) const {
    return load_little_endian<std::uint64_t>(as_bytes(text_).data() + at);
  }
  std::uint32_t half(std::size_t at) const {
    return load_little_endian<std::uint32_t>(as_bytes(text_).data() + at);
  }
  std::uint32_t byte(std::size_t at) const {
    return static_cast<unsigned char>(text_[at]);
  }
  // Of the last bytes.
  Word from_end(std::size_t count) const { return word(text_.size() - count); }

  static Word turned(Word word, std::size_t by) {
    return std::rotr(word, static_cast<int>(by % 64));
  }
  static Word mixed(Word word) { return word ^ (word >> 47); }
  static Word joined(Word u, Word v) {
    constexpr Word kFactor = 0x9ddfea08eb382d69;
    const Word first = mixed((u ^ v) * kFactor);
    return mixed((v ^ first) * kFactor) * kFactor;
  }

  Word upto_16() const {
    const std::size_t size = text_.size();
    if (size > 8)
      return joined(word(0), turned(from_end(8) + size, size)) ^ from_end(8);
    if (size >= 4)
      return joined(size + (half(0) << 3), half(size - 4));
    if (size == 0)
      return kPrime2;
    const Word front = byte(0) + (byte(size / 2) << 8);
    const Word back = size + (byte(size - 1) << 2);
    return mixed(front * kPrime2 ^ back * kPrime3) * kPrime2;
  }

  Word upto_32() const {
    const Word a = word(0) * kPrime1;
    const Word b = word(8);
    const Word c = from_end(8) * kPrime2;
    const Word d = from_end(16) * kPrime0;
    return joined(turned(a - b, 43) + turned(c, 30) + d,
                  a + turned(b ^ kPrime3, 20) - c + text_.size());
  }

  Word upto_64() const {
    const auto half_of = [](Word first, Word second, Word third, Word fourth) {
      Word a = first;
      const Word b = turned(a + fourth, 52);
      Word c = turned(a, 37);
      a += second;
      c += turned(a, 7);
      a += third;
      return Two{a + fourth, b + turned(a, 31) + c};
    };
    const Two front = half_of(word(0) + (text_.size() + from_end(16)) * kPrime0,
                              word(8), word(16), word(24));
    const Two back = half_of(word(16) + from_end(32), from_end(24),
                             from_end(16), word(24) + from_end(8));
    const Word both = mixed((front.first + back.second) * kPrime2 +
                            (back.first + front.second) * kPrime0);
    return mixed(both * kPrime0 + front.second) * kPrime2;
  }

  // 32 bytes, and two seeds.
  Two weak(std::size_t at, Word a, Word b) const {
    a += word(at);
    b = turned(b + a + word(at + 24), 21);
    const Word first = a;
    a += word(at + 8) + word(at + 16);
    return {a + word(at + 24), b + turned(a, 44) + first};
  }

  Word longer() const {
    const std::size_t size = text_.size();
    Word x = from_end(40);
    Word y = from_end(16) + from_end(56);
    Word z = joined(from_end(48) + size, from_end(24));
    Two v = weak(size - 64, size, z);
    Two w = weak(size - 32, y + kPrime1, x);
    x = x * kPrime1 + word(0);
    const std::size_t end = (size - 1) / 64 * 64;
    for (std::size_t at = 0; at < end; at += 64) {
      x = turned(x + y + v.first + word(at + 8), 37) * kPrime1;
      y = turned(y + v.second + word(at + 48), 42) * kPrime1;
      x ^= w.second;
      y += v.first + word(at + 40);
      z = turned(z + w.first, 33) * kPrime1;
      v = weak(at, v.second * kPrime1, x + w.first);
      w = weak(at + 32, z + w.second, y + word(at + 16));
      std::swap(z, x);
    }
    return joined(joined(v.first, w.first) + mixed(y) * kPrime1 + z,
                  joined(v.second, w.second) + x);
  }

  std::string_view text_;
};

bool is_prime(std::uint64_t number) {
  for (std::uint64_t factor = 2; factor * factor <= number; ++factor)
    if (number % factor == 0)
      return false;
  return number > 1;
}

// The hashes of a std::unordered_set<std::string> in the order in which it
// would go through its elements.
class HashSetOrder {
 public:
  explicit HashSetOrder(CppLibrary library) : library_(library) {
    if (library == CppLibrary::kMsvc)
      buckets_.resize(8);
  }

  void add(std::uint64_t hash) {
    if (hashes_.size() + 1 > buckets_.size())
      grow();
    put(hashes_, hashes_.insert(hashes_.end(), hash));
  }

  const std::list<std::uint64_t>& hashes() const { return hashes_; }

 private:
  using Place = std::list<std::uint64_t>::iterator;

  std::size_t bucket_of(std::uint64_t hash) const {
    return hash % buckets_.size();
  }

  // Moves the last one to where a new one would be.
  void put(std::list<std::uint64_t>& all, Place last) {
    std::optional<Place>& front = buckets_[bucket_of(*last)];
    if (front)
      all.splice(*front, all, last);
    else if (library_ == CppLibrary::kLibcxx)
      all.splice(all.begin(), all, last);
    front = last;
  }

  void grow() {
    buckets_.assign(
        library_ == CppLibrary::kMsvc ? grown_msvc() : grown_libcxx(),
        std::nullopt);
    std::optional<std::size_t> before;  // the bucket of the one before
    for (auto next = hashes_.begin(); next != hashes_.end();) {
      const Place place = next++;
      const std::size_t bucket = bucket_of(*place);
      std::optional<Place>& front = buckets_[bucket];
      if (!front) {
        front = place;
        before = bucket;
      } else if (library_ == CppLibrary::kMsvc || bucket != before) {
        hashes_.splice(*front, hashes_, place);
        front = place;
      }
    }
  }

  std::size_t grown_libcxx() const {
    const std::size_t now = buckets_.size();
    if (now == 0)
      return 2;
    std::size_t next = 2 * now + (now > 2 && std::has_single_bit(now) ? 0 : 1);
    if (!std::has_single_bit(next))
      while (!is_prime(next))
        ++next;
    return next;
  }

  std::size_t grown_msvc() const {
    constexpr std::size_t kQuickly = 512;
    return buckets_.size() * (buckets_.size() < kQuickly ? 8 : 2);
  }

  CppLibrary library_;
  std::list<std::uint64_t> hashes_;
  std::vector<std::optional<Place>> buckets_;  // the first one of each
};

}  // namespace

std::uint64_t string_hash(std::string_view text, CppLibrary library) {
  switch (library) {
    case CppLibrary::kLibstdcxx:
      return std::hash<std::string_view>()(text);
    case CppLibrary::kLibcxx:
      return CityHash(text).hash();
    case CppLibrary::kMsvc:
      return fnv1a(text);
  }
  return 0;
}

std::uint64_t hash_of_names(std::span<const std::string> names,
                            CppLibrary library) {
  std::uint64_t hash = 0;
  if (library == CppLibrary::kLibstdcxx) {
    // One by one, as a set that is given them all at once has other buckets.
    std::unordered_set<std::string> set;
    for (const std::string& name : names)
      set.insert(name);
    for (const std::string& name : set)
      hash = hash_joined(hash, string_hash(name, library));
    return hash;
  }
  HashSetOrder order(library);
  std::unordered_set<std::string_view> met;
  for (const std::string& name : names)
    if (met.insert(name).second)
      order.add(string_hash(name, library));
  for (const std::uint64_t one : order.hashes())
    hash = hash_joined(hash, one);
  return hash;
}

}  // namespace postflight
