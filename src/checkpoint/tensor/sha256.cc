#include "checkpoint/tensor/sha256.h"

#include <array>

#include <fmt/format.h>

// The plain functions: the newer interface would link all of OpenSSL's
// providers into the program.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

namespace postflight {

struct Sha256::State {
  SHA256_CTX context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  SHA256_Init(&state_->context);
}
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::add(Bytes bytes) {
  SHA256_Update(&state_->context, bytes.data(), bytes.size());
}

std::string Sha256::digest() {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> raw;
  SHA256_Final(raw.data(), &state_->context);
  std::string text;
  for (const unsigned char byte : raw)
    text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace postflight
