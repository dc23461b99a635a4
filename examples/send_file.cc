// Sends a file of any size to another machine, and compares its SHA-256 there.
//
//   send_file receive COPY                  waits, says where it is, writes COPY
//   send_file send FILE 10.0.0.1:7100       sends FILE there
//
// The file travels in blocks of 1 MiB, four of them under way at a time.
#include <openssl/evp.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "pullman/pullman.h"

namespace {

constexpr std::size_t kBlockBytes = 1 << 20;
constexpr std::size_t kBlocks = 4;    // under way
constexpr pullman::Tag kData = 1;     // a block; one shorter than kBlockBytes is the last
constexpr pullman::Tag kSum = 2;      // sender: the SHA-256 of all
constexpr pullman::Tag kVerdict = 3;  // receiver: "ok", or what is wrong
constexpr std::size_t kSumBytes = 32;

class Sha256 {
 public:
  Sha256() { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }
  void add(std::span<const std::byte> bytes) {
    EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
  }
  std::vector<std::byte> sum() {
    std::vector<std::byte> sum(kSumBytes);
    EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(sum.data()), nullptr);
    return sum;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_{EVP_MD_CTX_new(),
                                                                   EVP_MD_CTX_free};
};

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text += "0123456789abcdef"[static_cast<unsigned>(byte) >> 4];
    text += "0123456789abcdef"[static_cast<unsigned>(byte) & 15];
  }
  return text;
}

// A buffer and its request. Reused in turn.
struct Block {
  std::vector<std::byte> buffer = std::vector<std::byte>(kBlockBytes);
  pullman::Request request;
};
using Blocks = std::array<Block, kBlocks>;

void finish(pullman::Context& context, pullman::Request& request) {
  const pullman::Status status = context.wait(request);
  if (status == pullman::Status::kOk) return;
  context.close(std::chrono::seconds(0));  // ends the other requests, so that they may be destroyed
  throw pullman::Error(status, pullman::to_sentence(status));
}

void send_file(const char* path, const char* address) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  Blocks blocks;
  pullman::Context context;
  const pullman::PeerId peer = context.connect(address);
  Sha256 hash;
  std::size_t length = kBlockBytes;
  for (std::size_t i = 0; length == kBlockBytes; ++i) {
    Block& block = blocks[i % kBlocks];
    finish(context, block.request);
    file.read(reinterpret_cast<char*>(block.buffer.data()), kBlockBytes);
    length = static_cast<std::size_t>(file.gcount());
    const auto bytes = std::span(block.buffer).first(length);
    hash.add(bytes);
    context.send(peer, kData, bytes, block.request);
  }
  for (Block& block : blocks) finish(context, block.request);

  const std::vector<std::byte> sum = hash.sum();
  std::array<std::byte, 64> verdict{};
  pullman::Request request;
  context.send(peer, kSum, sum, request);
  finish(context, request);
  context.receive(peer, kVerdict, 0, verdict, request);
  finish(context, request);
  std::printf("%s  %s\n", hex(sum).c_str(), path);
  const std::string text(reinterpret_cast<const char*>(verdict.data()), request.length());
  if (text != "ok") throw std::runtime_error("the receiver says: " + text);
  context.close();
}

void receive_file(const char* path) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) throw std::runtime_error(std::string("cannot write ") + path);
  Blocks blocks;
  pullman::Context context;
  std::printf("on the other machine: send_file send FILE %s\n", context.address().c_str());
  std::fflush(stdout);

  // The sender is known from the first block; the others are posted ahead, so that they land in
  // their buffers.
  Sha256 hash;
  context.receive(pullman::kAnyPeer, kData, 0, blocks[0].buffer, blocks[0].request);
  finish(context, blocks[0].request);
  const pullman::PeerId peer = blocks[0].request.source();
  for (std::size_t i = 1; i < kBlocks; ++i) {
    context.receive(peer, kData, 0, blocks[i].buffer, blocks[i].request);
  }
  std::size_t length = kBlockBytes;
  for (std::size_t i = 0; length == kBlockBytes; ++i) {
    Block& block = blocks[i % kBlocks];
    finish(context, block.request);
    length = block.request.length();
    const auto bytes = std::span(block.buffer).first(length);
    hash.add(bytes);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(length));
    if (length == kBlockBytes) context.receive(peer, kData, 0, block.buffer, block.request);
  }
  for (Block& block : blocks) context.cancel(block.request);

  std::vector<std::byte> theirs(kSumBytes);
  pullman::Request request;
  context.receive(peer, kSum, 0, theirs, request);
  finish(context, request);
  const std::vector<std::byte> ours = hash.sum();
  file.close();
  const std::string verdict = !file            ? "the copy could not be written"
                              : ours != theirs ? "the SHA-256 differs"
                                               : "ok";
  context.send(peer, kVerdict, std::as_bytes(std::span(verdict)), request);
  finish(context, request);
  context.close();  // delivers the verdict
  std::printf("%s  %s\n", hex(ours).c_str(), path);
  if (verdict != "ok") throw std::runtime_error(verdict);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  try {
    if (verb == "receive" && argc == 3) {
      receive_file(argv[2]);
    } else if (verb == "send" && argc == 4) {
      send_file(argv[2], argv[3]);
    } else {
      std::fprintf(stderr, "usage: send_file receive COPY | send_file send FILE ADDRESS\n");
      return 2;
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "send_file: %s\n", error.what());
    return 1;
  }
}
