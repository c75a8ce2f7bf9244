// Prints a Markdown table of the throughput of our streams and of the
// underlying libraries: the best of several alternating rounds, in CPU time of
// one thread.

#include "must.h"
#include "stream/codec/built_in.h"
#include "stream/codec/compression.h"
#include "stream/extension/transform_chain.h"
#include "stream/memory_stream.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <zstd.h>

using namespace postflight;

namespace {

constexpr std::size_t kSize = 64 << 20;
constexpr std::size_t kPiece = 1 << 20;
// Decoders may need room for one block more than they output.
constexpr std::size_t kSpare = 256 << 10;
constexpr int kRounds = 9;

using Work = std::function<void()>;

double seconds(const Work& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double start = now();
  work();
  return now() - start;
}

std::vector<double> best(const std::vector<Work>& works) {
  std::vector<double> best(works.size(),
                           std::numeric_limits<double>::infinity());
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t i = 0; i < works.size(); ++i)
      best[i] = std::min(best[i], seconds(works[i]));
  return best;
}

// Like weights: the high bytes repeat, the low ones do not.
std::string weights() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.02f);
  std::string bytes(kSize, '\0');
  for (std::size_t at = 0; at < kSize; at += 2) {
    const float value = normal(random);
    std::memcpy(bytes.data() + at, reinterpret_cast<const char*>(&value) + 2,
                2);  // bfloat16
  }
  return bytes;
}

// Discards what is written.
class NoSink : public Sink {
 public:
  Result<> write(Bytes bytes) override {
    position_ += bytes.size();
    return {};
  }
  Result<> flush() override { return {}; }
  std::uint64_t tell() const override { return position_; }

 private:
  std::uint64_t position_ = 0;
};

class Streams {
 public:
  TransformChain chain(const std::vector<std::string>& texts) const {
    std::vector<TransformRequest> requests;
    for (const std::string& text : texts)
      for (TransformRequest& request : must(parse_transforms(text)))
        requests.push_back(std::move(request));
    TransformSettings settings;
    settings.key = &key_;
    return must(TransformChain::make(registry_, requests, settings));
  }

 private:
  ExtensionRegistry registry_ = built_in_registry();
  SecretKey key_ = must(SecretKey::from_hex(std::string(64, '5')));
};

void write_all(const TransformChain& chain, Bytes bytes, Sink& to) {
  const std::unique_ptr<Sink> sink = must(chain.transform_to(to));
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), kPiece);
    must(sink->write(bytes.first(size)));
    bytes = bytes.subspan(size);
  }
  must(sink->finish());
}

std::string encoded(const TransformChain& chain, Bytes bytes) {
  MemorySink sink;
  write_all(chain, bytes, sink);
  return sink.take();
}

void read_all(const TransformChain& chain, std::string_view data,
              std::vector<std::byte>& to, std::size_t piece = kSize * 2) {
  MemorySource below(as_bytes(data));
  const std::unique_ptr<Source> source = must(chain.transform_from(below));
  std::span<std::byte> room(to);
  while (!room.empty()) {
    const Taken taken =
        must(source->read(room.first(std::min(room.size(), piece))));
    if (taken.at_end)
      break;
    room = room.subspan(taken.count);
  }
}

// OpenSSL on blocks of 64 KiB, as measured by `openssl speed -evp`.
void encrypt_blocks(const EVP_CIPHER* cipher, Bytes bytes,
                    std::vector<std::byte>& to) {
  EVP_CIPHER_CTX* const context = EVP_CIPHER_CTX_new();
  const unsigned char key[32] = {};
  unsigned char nonce[12] = {};
  unsigned char tag[16];
  EVP_EncryptInit_ex(context, cipher, nullptr, key, nonce);
  constexpr std::size_t kBlock = 64 << 10;
  for (std::size_t at = 0; at < bytes.size(); at += kBlock) {
    int made = 0;
    ++nonce[at / kBlock % 12];
    EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, nonce);
    EVP_EncryptUpdate(context, reinterpret_cast<unsigned char*>(&to[at]), &made,
                      reinterpret_cast<const unsigned char*>(&bytes[at]),
                      kBlock);
    EVP_EncryptFinal_ex(context, tag, &made);
    EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag);
  }
  EVP_CIPHER_CTX_free(context);
}

double rate(double time) {
  return static_cast<double>(kSize) / time / 1e9;
}

void row(std::string_view what, double theirs, double ours) {
  fmt::print("| {} | {:.2f} GB/s | {:.2f} GB/s | **{:.2f}** |\n", what,
             rate(theirs), rate(ours), theirs / ours);
}

}  // namespace

int main() {
  const Streams streams;
  const std::string plain = weights();
  std::vector<std::byte> room(kSize + kSpare);
  fmt::print(
      "| what | library alone | through our stream | ratio |\n"
      "|---|---|---|---|\n");

  const TransformChain zstd = streams.chain({"stream.zstd/1:checksum=0"});
  const std::string frame = encoded(zstd, as_bytes(plain));
  const auto decode = best({[&] {
                              ZSTD_decompress(room.data(), room.size(),
                                              frame.data(), frame.size());
                            },
                            [&] { read_all(zstd, frame, room); },
                            [&] { read_all(zstd, frame, room, kPiece); }});
  row("zstd decode of an item, against one call of libzstd", decode[0],
      decode[1]);
  row("zstd decode in pieces of 1 MiB, likewise", decode[0], decode[2]);

  for (const auto& [name, cipher] :
       {std::pair("aes-256-gcm", EVP_aes_256_gcm()),
        std::pair("chacha20-poly1305", EVP_chacha20_poly1305())}) {
    const TransformChain aead = streams.chain(
        {fmt::format("stream.aead@postflight/1:cipher={}", name)});
    const std::string sealed = encoded(aead, as_bytes(plain));
    const auto times =
        best({[&] { encrypt_blocks(cipher, as_bytes(plain), room); },
              [&] {
                NoSink sink;
                write_all(aead, as_bytes(plain), sink);
              },
              [&] { read_all(aead, sealed, room); }});
    row(fmt::format("{} encrypt, against OpenSSL", name), times[0], times[1]);
    row(fmt::format("{} decrypt, against OpenSSL's encryption", name), times[0],
        times[2]);
  }

  // Each alone, and all in one chain: the overhead of the chain.
  const std::vector<std::string> all = {"stream.zstd/1",
                                        "stream.checksum@postflight/1",
                                        "stream.aead@postflight/1"};
  std::vector<std::string> data = {plain};
  for (const std::string& one : all)
    data.push_back(encoded(streams.chain({one}), as_bytes(data.back())));
  std::vector<std::vector<std::byte>> rooms;
  for (const std::string& one : data)
    rooms.emplace_back(one.size() + kSpare);
  std::vector<Work> works;
  for (std::size_t i = 0; i < all.size(); ++i)
    works.push_back(
        [&, i] { read_all(streams.chain({all[i]}), data[i + 1], rooms[i]); });
  works.push_back([&] { read_all(streams.chain(all), data.back(), rooms[0]); });
  const auto times = best(works);
  row("zstd, checksum and AEAD decoded in a chain, against one by one",
      times[0] + times[1] + times[2], times[3]);
  return 0;
}
