#include "message/send_descriptor.h"

#include <cstring>

#include "base/check.h"

namespace pullman::message {

namespace {

std::span<const Piece> pieces_of(const Operation& op) {
  return {op.pieces->data(), op.special.piece_count};
}

// Calls visit(piece, bytes before it) for each piece.
template <typename Visit>
void for_each_piece(const Operation& op, Visit visit) {
  std::uint64_t before = 0;
  for (const Piece& piece : pieces_of(op)) {
    visit(piece, before);
    before += piece.size;
  }
}

// Returns the piece that holds byte `at`, from there on; empty behind the last piece.
std::span<std::byte> rest_of_piece(const Operation& op, std::uint64_t at) {
  std::span<std::byte> rest;
  for_each_piece(op, [&](const Piece& piece, std::uint64_t before) {
    if (at < before || at - before >= piece.size) return;
    rest = std::span(piece.at, piece.size).subspan(at - before);
  });
  return rest;
}

template <typename Bytes>
void note_pieces(Operation& op, std::span<const std::span<Bytes>> pieces) {
  op.special.piece_count = 0;
  op.buffer = pieces.empty() ? nullptr : const_cast<std::byte*>(pieces.front().data());
  if (pieces.size() < 2) return;
  PULLMAN_CHECK(op.pieces != nullptr);
  for (const auto& piece : pieces) {
    if (piece.empty()) continue;
    (*op.pieces)[op.special.piece_count++] = {const_cast<std::byte*>(piece.data()), piece.size()};
  }
}

}  // namespace

void make_room(Operation& op, std::size_t pieces) {
  if (pieces < 2 || op.pieces != nullptr) return;
  op.pieces = std::make_unique<std::array<Piece, kMaxSegments>>();
}

void describe(Operation& op, const SendDescriptor& descriptor) {
  note_pieces(op, descriptor.pieces);
  op.size = descriptor.total();
  op.special.is_special = true;
  op.lead = descriptor.lead;
  op.special.wire_kind = descriptor.kind;
  op.special.lead_bytes = descriptor.lead_bytes;
  op.special.wants_result = descriptor.wants_result;
  op.special.has_result = false;
  op.special.wants_arrival = descriptor.wants_arrival;
  op.special.is_own_copy = descriptor.is_own_copy;
  op.special.has_priority = descriptor.has_priority;
  op.special.is_solicited = descriptor.is_solicited;
  op.asker = descriptor.asker;
  op.special.packs = descriptor.packer != nullptr;
  if (descriptor.packer != nullptr) op.packer = *descriptor.packer;
}

void copy_out(const Operation& op, std::uint64_t at, std::span<std::byte> out) {
  const std::size_t lead = op.special.lead_bytes;
  if (at < lead && !out.empty()) {
    const std::size_t of_lead = std::min<std::size_t>(lead - at, out.size());
    std::memcpy(out.data(), op.lead.data() + at, of_lead);
    out = out.subspan(of_lead);
    at += of_lead;
  }
  if (out.empty()) return;
  at -= lead;
  if (op.special.packs) return op.packer.pack(op.packer.user, at, out);
  if (op.special.piece_count == 0) {
    std::memcpy(out.data(), op.buffer + at, out.size());
    return;
  }
  while (!out.empty()) {
    const auto from = rest_of_piece(op, at);
    const std::size_t length = std::min(from.size(), out.size());
    std::memcpy(out.data(), from.data(), length);
    out = out.subspan(length);
    at += length;
  }
}

std::span<const std::byte> one_place(const Operation& op, std::uint64_t at) {
  const std::size_t lead = op.special.lead_bytes;
  if (at < lead || op.special.packs) return {};
  if (op.special.piece_count != 0) return rest_of_piece(op, at - lead);
  return {op.buffer + (at - lead), op.size - at};
}

void describe_sink(Operation& op, Segments pieces) {
  op.size = 0;
  for (const auto& piece : pieces) op.size += piece.size();
  note_pieces(op, pieces);
}

void scatter(const Operation& op, std::uint64_t at, std::span<const std::byte> data) {
  while (!data.empty()) {
    const auto to = rest_of_piece(op, at);
    if (to.empty()) return;
    const std::size_t length = std::min(to.size(), data.size());
    std::memcpy(to.data(), data.data(), length);
    data = data.subspan(length);
    at += length;
  }
}

std::span<std::byte> one_place_of_sink(const Operation& op, std::uint64_t at) {
  if (op.special.piece_count != 0) return rest_of_piece(op, at);
  return at < op.size ? std::span(op.buffer, op.size).subspan(at) : std::span<std::byte>{};
}

}  // namespace pullman::message
