#include "sim/scene.h"

#include <algorithm>
#include <stdexcept>

#include "sim/content.h"
#include "sim/packet_view.h"
#include "sim/sim_port.h"

namespace pullman::sim {
namespace {

constexpr std::size_t kMaxSteps = 100'000;  // while time stands still

MessageName name_for(Tag tag, std::size_t size) {
  return {static_cast<std::uint32_t>(tag), static_cast<std::uint32_t>(size)};
}

}  // namespace

Scene::Scene(std::size_t hosts, const Tweak& tweak) : stage_(hosts, 1) {
  for (std::size_t host = 0; host < hosts; ++host) {
    NodePlan plan;
    plan.turn_gap = Duration(0);
    if (tweak) tweak(plan);
    stage_.add(plan, host + 1).boot();
  }
}

Scene::~Scene() {
  for (std::size_t host = 0; host < stage_.hosts(); ++host) {
    if (node(host).alive()) node(host).end(true);
  }
}

PeerId Scene::connect(std::size_t from, std::size_t to) {
  const auto connected = engine(from).connect(node(from).local_now(), node(to).address());
  if (connected.status != Status::kOk) throw std::runtime_error(name(connected.status));
  node(from).touched();
  return connected.peer;
}

Scene::Couple Scene::couple(std::size_t from, std::size_t to) {
  Couple couple{.there = connect(from, to), .back = {}};
  std::optional<PeerId> accepted;
  const bool met = run_until([&] {
    if (!accepted) accepted = accept(to);
    return accepted && engine(from).inspector().peer_state(couple.there) == PeerState::kConnected &&
           engine(to).inspector().peer_state(*accepted) == PeerState::kConnected;
  });
  if (!met) throw std::runtime_error("they do not meet");
  couple.back = *accepted;
  run_for(std::chrono::milliseconds(20));  // for the last ACKs of the handshake
  return couple;
}

Act& Scene::send(std::size_t host, PeerId to, Tag tag, std::size_t size) {
  Act& act = acts_.emplace_back();
  act.bytes.resize(size);
  fill(act.bytes, name_for(tag, size));
  act.returned =
      engine(host).sending().send(node(host).local_now(), to, tag, act.bytes, act.request);
  node(host).touched();
  return act;
}

Act& Scene::receive(std::size_t host, PeerId from, Tag tag, std::size_t capacity, Tag ignore) {
  Act& act = acts_.emplace_back();
  act.bytes.resize(capacity);
  act.returned = engine(host).matching().receive(node(host).local_now(), from, tag, ignore,
                                                 act.bytes, act.request);
  node(host).touched();
  return act;
}

void Scene::disconnect(std::size_t host, PeerId peer) {
  engine(host).disconnect(node(host).local_now(), peer);
  node(host).touched();
}

void Scene::begin_close(std::size_t host) {
  engine(host).begin_close(node(host).local_now());
  node(host).touched();
}

bool Scene::holds(const Act& receive, Tag tag, std::size_t size) {
  const std::span<const std::byte> received(receive.bytes.data(), receive.request.length());
  return receive.request.tag() == tag && receive.request.message_length() == size &&
         received.size() == std::min(size, receive.bytes.size()) &&
         first_difference(received, name_for(tag, size)) == received.size();
}

void Scene::run_for(Duration time) {
  const Instant end = now() + time;
  while (now() < end) stage_.step(end);
}

bool Scene::run_until(const std::function<bool()>& condition, Duration bound) {
  const Instant end = now() + bound;
  Instant before = now();
  for (std::size_t steps = 0; !condition(); ++steps) {
    if (now() >= end) return false;
    stage_.step(end);
    if (now() != before) steps = 0;
    before = now();
    if (steps == kMaxSteps) throw std::runtime_error("time stands still\n" + dump());
  }
  return true;
}

std::string Scene::dump() {
  std::string text;
  for (std::size_t host = 0; host < stage_.hosts(); ++host) {
    if (node(host).alive()) text += engine(host).inspector().dump();
  }
  return text;
}

void Scene::restart(std::size_t host) {
  node(host).end(true);
  node(host).boot();
}

Opened::Opened(std::span<const std::byte> bytes) {
  const PacketView view(bytes);
  if (!view.accepted()) return;
  header = view.header;
  if (!view.readable()) return;
  wire::Frame frame;
  if (header->type == wire::PacketType::kBulk) {
    if (wire::read_bulk(view.packet, frame)) frames.push_back(frame);
    return;
  }
  wire::FrameReader reader(view.packet.subspan(wire::kHeaderBytes));
  while (reader.next(frame)) frames.push_back(frame);
}

bool Opened::has(wire::FrameType type) const {
  return std::any_of(frames.begin(), frames.end(),
                     [&](const wire::Frame& frame) { return frame.type == type; });
}

}  // namespace pullman::sim
