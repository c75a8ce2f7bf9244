#include "stream/codec/built_in.h"
#include "stream/codec/sealed_blocks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>

namespace postflight {
namespace {

// Each stream has its own key, derived from the user's key and a random salt in
// its header, so that a block's number can be its nonce: no two blocks under
// one key share a nonce. The nonce also encodes whether the block is the last.

struct FreeOpenSsl {
  void operator()(EVP_CIPHER_CTX* context) const {
    EVP_CIPHER_CTX_free(context);
  }
  void operator()(EVP_KDF* kdf) const { EVP_KDF_free(kdf); }
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};
template <class T>
using Owned = std::unique_ptr<T, FreeOpenSsl>;

constexpr std::string_view kAeadMagic = "PFa1";
constexpr std::size_t kCipherAt = 4;
constexpr std::size_t kSaltAt = 8;
constexpr std::size_t kSaltSize = 32;
constexpr std::size_t kFrontSize = kSaltAt + kSaltSize;
constexpr std::size_t kTagSize = 16;
constexpr std::size_t kNonceSize = 12;
constexpr std::string_view kInfo = "postflight stream.aead/1 ";

constexpr std::array<std::string_view, 2> kCiphers = {"aes-256-gcm",
                                                      "chacha20-poly1305"};

const EVP_CIPHER* cipher_of(std::uint8_t number) {
  switch (number) {
    case 1:
      return EVP_aes_256_gcm();
    case 2:
      return EVP_chacha20_poly1305();
    default:
      return nullptr;
  }
}

tl::unexpected<Error> library_failed() {
  return fail(ErrorKind::kIo, "OpenSSL failed");
}

unsigned char* raw(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

const unsigned char* raw(Bytes bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

struct StreamKey {
  std::array<std::byte, SecretKey::kSize> bytes{};
  StreamKey() = default;
  StreamKey(const StreamKey&) = delete;
  StreamKey& operator=(const StreamKey&) = delete;
  ~StreamKey() { OPENSSL_cleanse(bytes.data(), bytes.size()); }
};

// HKDF-SHA-256. The whole header is part of the info, which authenticates it.
Result<> derive(const SecretKey& key, Bytes front, StreamKey& out) {
  const Owned<EVP_KDF> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  const Owned<EVP_KDF_CTX> context(kdf == nullptr ? nullptr
                                                  : EVP_KDF_CTX_new(kdf.get()));
  std::string digest = "SHA256";
  std::string info = std::string(kInfo) + std::string(as_text(front));
  std::array<std::byte, SecretKey::kSize> secret;
  copy_bytes(key.bytes(), secret);
  std::array<std::byte, kSaltSize> salt;
  copy_bytes(front.subspan(kSaltAt, kSaltSize), salt);
  const std::array<OSSL_PARAM, 5> parameters = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(),
                                       digest.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret.data(),
                                        secret.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, salt.data(),
                                        salt.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(),
                                        info.size()),
      OSSL_PARAM_construct_end()};
  const bool derived =
      context != nullptr &&
      EVP_KDF_derive(context.get(), raw(std::span<std::byte>(out.bytes)),
                     out.bytes.size(), parameters.data()) > 0;
  OPENSSL_cleanse(secret.data(), secret.size());
  if (!derived)
    return library_failed();
  return {};
}

class AeadSeal : public Seal {
 public:
  // `key` must outlive it. `cipher` is for writing.
  AeadSeal(const SecretKey& key, std::uint8_t cipher)
      : key_(key), cipher_(cipher), context_(EVP_CIPHER_CTX_new()) {}

  std::size_t front_size() const override { return kFrontSize; }
  std::size_t tag_size() const override { return kTagSize; }

  Result<> write_front(std::span<std::byte> front) override {
    std::ranges::fill(front, std::byte{0});
    copy_bytes(as_bytes(kAeadMagic), front);
    front[kCipherAt] = std::byte{cipher_};
    if (RAND_bytes(raw(front.subspan(kSaltAt)), kSaltSize) != 1)
      return library_failed();
    return begin(front, /*writing=*/true);
  }

  Result<> read_front(Bytes front) override {
    if (!as_text(front).starts_with(kAeadMagic))
      return fail(ErrorKind::kCorrupt,
                  "not an encrypted stream: it does not begin with \"{}\"",
                  kAeadMagic);
    cipher_ = static_cast<std::uint8_t>(front[kCipherAt]);
    if (cipher_of(cipher_) == nullptr)
      return fail(ErrorKind::kUnsupported,
                  "the stream is encrypted with an unknown cipher, number {}",
                  cipher_);
    return begin(front, /*writing=*/false);
  }

  Result<> close(BlockPlace place, Bytes plain, std::span<std::byte> sealed,
                 std::span<std::byte> tag) override {
    if (!set_nonce(place) || !update(plain, sealed) || !final() ||
        EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, kTagSize,
                            tag.data()) != 1)
      return library_failed();
    return {};
  }

  Result<> open(BlockPlace place, Bytes sealed, Bytes tag,
                std::span<std::byte> plain) override {
    std::array<std::byte, kTagSize> expected;
    copy_bytes(tag, expected);
    if (!set_nonce(place) || !update(sealed, plain) ||
        EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, kTagSize,
                            expected.data()) != 1)
      return library_failed();
    if (final())
      return {};
    OPENSSL_cleanse(plain.data(), plain.size());
    return fail(ErrorKind::kCorrupt,
                "authentication failed: {}it was damaged or moved",
                place.index == 0 ? "the key is wrong, or " : "");
  }

 private:
  Result<> begin(Bytes front, bool writing) {
    StreamKey stream_key;
    TRY(derive(key_, front, stream_key));
    if (context_ == nullptr ||
        EVP_CipherInit_ex(context_.get(), cipher_of(cipher_), nullptr,
                          raw(Bytes(stream_key.bytes)), nullptr,
                          writing ? 1 : 0) != 1)
      return library_failed();
    return {};
  }

  // 3 zero bytes, 1 byte that is 1 in the last block, the block's number.
  bool set_nonce(BlockPlace place) {
    std::array<std::byte, kNonceSize> nonce{};
    nonce[3] = std::byte{place.last};
    std::memcpy(nonce.data() + 4, &place.index, sizeof(place.index));
    return EVP_CipherInit_ex(context_.get(), nullptr, nullptr, nullptr,
                             raw(Bytes(nonce)), /*enc=*/-1) == 1;
  }

  bool update(Bytes from, std::span<std::byte> to) {
    int made = 0;
    return from.empty() ||
           EVP_CipherUpdate(context_.get(), raw(to), &made, raw(from),
                            static_cast<int>(from.size())) == 1;
  }

  // Neither cipher has buffered output at this point.
  bool final() {
    int made = 0;
    unsigned char nothing[EVP_MAX_BLOCK_LENGTH];
    return EVP_CipherFinal_ex(context_.get(), nothing, &made) == 1;
  }

  const SecretKey& key_;
  std::uint8_t cipher_;
  Owned<EVP_CIPHER_CTX> context_;
};

}  // namespace

ExtensionType aead_extension() {
  return {
      .registry_name = "stream.aead@postflight",
      .summary = "authenticated encryption",
      .parameters = {{"cipher", fmt::format("{}", fmt::join(kCiphers, " or "))},
                     {"block", "bytes per block; default 65536"}},
      .needs_key = true,
      .from_descriptor = [](const std::string& descriptor,
                            const TransformSettings& settings)
          -> Result<std::unique_ptr<Extension>> {
        // Otherwise OpenSSL would read the system's configuration file, which
        // may load modules.
        OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
        const SecretKey* const key = settings.key;
        const Limits limits = settings.limits;
        const std::string_view name =
            TRY(settings.parameters.choice("cipher", kCiphers));
        const std::uint8_t cipher = name == kCiphers[0] ? 1 : 2;
        const auto block =
            static_cast<std::size_t>(TRY(settings.parameters.integer(
                "block", kDefaultBlock, 1,
                static_cast<std::int64_t>(limits.max_stream_block_bytes))));
        return std::make_unique<StreamTransform>(
            descriptor,
            [key, cipher, block] {
              return make_sealing_filter(
                  std::make_unique<AeadSeal>(*key, cipher), block);
            },
            [key, cipher, limits] {
              return make_opening_filter(
                  std::make_unique<AeadSeal>(*key, cipher), limits);
            });
      }};
}

}  // namespace postflight
