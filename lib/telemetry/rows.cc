#include "telemetry/rows.h"

#include <cstddef>
#include <type_traits>

#include "wire/verdict.h"

namespace pullman::telemetry {
namespace {

static_assert(std::tuple_size_v<decltype(Stats::dropped_by_reason)> == wire::kVerdicts,
              "each reason has a column");

constexpr std::size_t dropped(std::size_t reason) {
  return offsetof(ContextRow, stats.dropped_by_reason) + reason * sizeof(std::uint64_t);
}

constexpr Column kContext[] = {
    {"process", Kind::kLabel, "", offsetof(ContextRow, process), sizeof(ContextRow::process),
     "the process id"},
    {"epoch", Kind::kLabel, "", offsetof(ContextRow, epoch), sizeof(ContextRow::epoch),
     "names this context among all others"},
    {"address", Kind::kLabel, "", offsetof(ContextRow, address), sizeof(ContextRow::address),
     "where peers connect to"},
    {"driver", Kind::kText, "", offsetof(ContextRow, driver), sizeof(ContextRow::driver),
     "of its NICs"},
    {"security", Kind::kText, "", offsetof(ContextRow, security), sizeof(ContextRow::security),
     "how packets are protected"},
    {"progress_thread", Kind::kGauge, "", offsetof(ContextRow, progress_thread),
     sizeof(ContextRow::progress_thread), "1: a thread of its own makes progress"},
    {"begun", Kind::kTime, "", offsetof(ContextRow, begun), sizeof(ContextRow::begun),
     "when it was opened"},
    {"messages_sent", Kind::kCounter, "", offsetof(ContextRow, stats.messages_sent), 8,
     "messages that were accepted to be sent"},
    {"messages_received", Kind::kCounter, "", offsetof(ContextRow, stats.messages_received), 8,
     "messages that completed a receive"},
    {"bytes_sent", Kind::kCounter, "bytes", offsetof(ContextRow, stats.bytes_sent), 8,
     "of those messages"},
    {"bytes_received", Kind::kCounter, "bytes", offsetof(ContextRow, stats.bytes_received), 8,
     "of those messages"},
    {"packets_sent", Kind::kCounter, "", offsetof(ContextRow, stats.packets_sent), 8,
     "numbered packets, sent for the first time"},
    {"packets_received", Kind::kCounter, "", offsetof(ContextRow, stats.packets_received), 8,
     "datagrams that were accepted"},
    {"memory_packets_sent", Kind::kCounter, "", offsetof(ContextRow, stats.memory_packets_sent), 8,
     "packets to peers on this host, through memory"},
    {"memory_packets_received", Kind::kCounter, "",
     offsetof(ContextRow, stats.memory_packets_received), 8,
     "packets from peers on this host, through memory"},
    {"duplicate_packets", Kind::kCounter, "", offsetof(ContextRow, stats.duplicate_packets), 8,
     "received again"},
    {"retransmits", Kind::kCounter, "", offsetof(ContextRow, stats.retransmits), 8,
     "packets declared lost and sent again"},
    {"spurious_retransmits", Kind::kCounter, "", offsetof(ContextRow, stats.spurious_retransmits),
     8, "of those, packets that had arrived after all"},
    {"probes_sent", Kind::kCounter, "", offsetof(ContextRow, stats.probes_sent), 8,
     "probes of silence and of tail loss"},
    {"timeouts", Kind::kCounter, "", offsetof(ContextRow, stats.timeouts), 8, "probe timeouts"},
    {"path_probes_sent", Kind::kCounter, "", offsetof(ContextRow, stats.path_probes_sent), 8,
     "probes of the path's largest packet"},
    {"path_black_holes", Kind::kCounter, "", offsetof(ContextRow, stats.path_black_holes), 8,
     "paths that ceased to carry packets of their size"},
    {"evacuated_packets", Kind::kCounter, "", offsetof(ContextRow, stats.evacuated_packets), 8,
     "packets moved to another rail when theirs was left"},
    {"acks_sent", Kind::kCounter, "", offsetof(ContextRow, stats.acks_sent), 8, "ACKs sent alone"},
    {"acks_piggybacked", Kind::kCounter, "", offsetof(ContextRow, stats.acks_piggybacked), 8,
     "ACKs on other packets"},
    {"fast_path_sends", Kind::kCounter, "", offsetof(ContextRow, stats.fast_path_sends), 8,
     "messages that left in the call"},
    {"unexpected_messages", Kind::kCounter, "", offsetof(ContextRow, stats.unexpected_messages), 8,
     "messages that came before their receive"},
    {"held_back_sends", Kind::kCounter, "", offsetof(ContextRow, stats.held_back_sends), 8,
     "sends that waited for allowance"},
    {"announced_sends", Kind::kCounter, "", offsetof(ContextRow, stats.announced_sends), 8,
     "of those, sends that were announced"},
    {"dropped_packets", Kind::kCounter, "", offsetof(ContextRow, stats.dropped_packets), 8,
     "datagrams refused"},
    {"dropped_too_short", Kind::kCounter, "", dropped(2), 8, "datagrams refused: too short"},
    {"dropped_bad_version", Kind::kCounter, "", dropped(3), 8, "datagrams refused: bad version"},
    {"dropped_bad_type", Kind::kCounter, "", dropped(4), 8, "datagrams refused: bad type"},
    {"dropped_bad_length", Kind::kCounter, "", dropped(5), 8, "datagrams refused: bad length"},
    {"dropped_bad_reserved", Kind::kCounter, "", dropped(6), 8, "datagrams refused: bad reserved"},
    {"dropped_bad_checksum", Kind::kCounter, "", dropped(7), 8, "datagrams refused: bad checksum"},
    {"dropped_bad_frame", Kind::kCounter, "", dropped(8), 8, "datagrams refused: bad frame"},
    {"dropped_unknown_connection", Kind::kCounter, "", dropped(9), 8,
     "datagrams refused: unknown connection"},
    {"dropped_bad_ack", Kind::kCounter, "", dropped(10), 8, "datagrams refused: bad ack"},
    {"dropped_outside_window", Kind::kCounter, "", dropped(11), 8,
     "datagrams refused: outside window"},
    {"dropped_over_limit", Kind::kCounter, "", dropped(12), 8, "datagrams refused: over limit"},
    {"dropped_wrong_state", Kind::kCounter, "", dropped(13), 8, "datagrams refused: wrong state"},
    {"dropped_other_protection", Kind::kCounter, "", dropped(14), 8,
     "datagrams refused: other protection"},
    {"dropped_not_authentic", Kind::kCounter, "", dropped(15), 8,
     "datagrams refused: not authentic"},
    {"nic_send_errors", Kind::kCounter, "", offsetof(ContextRow, stats.nic_send_errors), 8,
     "packets that the device rejected"},
    {"nic_receive_errors", Kind::kCounter, "", offsetof(ContextRow, stats.nic_receive_errors), 8,
     "completions with an error, or truncated"},
    {"nic_receive_overflows", Kind::kCounter, "", offsetof(ContextRow, stats.nic_receive_overflows),
     8, "datagrams that sockets of ours dropped, being full"},
    {"nic_errors_timeout", Kind::kCounter, "", offsetof(ContextRow, stats.nic_errors_timeout), 8,
     "errors: not answered in time"},
    {"nic_errors_flushed", Kind::kCounter, "", offsetof(ContextRow, stats.nic_errors_flushed), 8,
     "errors: returned undone"},
    {"nic_errors_device", Kind::kCounter, "", offsetof(ContextRow, stats.nic_errors_device), 8,
     "errors of the device or its link"},
    {"nic_errors_remote", Kind::kCounter, "", offsetof(ContextRow, stats.nic_errors_remote), 8,
     "errors: the network or the remote host refused"},
    {"nic_errors_local", Kind::kCounter, "", offsetof(ContextRow, stats.nic_errors_local), 8,
     "errors: this host refused"},
    {"nic_packets_returned", Kind::kCounter, "", offsetof(ContextRow, stats.nic_packets_returned),
     8, "packets reported undeliverable"},
    {"nic_packets_too_long", Kind::kCounter, "", offsetof(ContextRow, stats.nic_packets_too_long),
     8, "packets too long for the path"},
    {"nic_bursts_sent", Kind::kCounter, "", offsetof(ContextRow, stats.nic_bursts_sent), 8,
     "calls that sent several packets as one"},
    {"nic_bursts_received", Kind::kCounter, "", offsetof(ContextRow, stats.nic_bursts_received), 8,
     "datagrams that were several packets"},
    {"nic_bursts_refused", Kind::kCounter, "", offsetof(ContextRow, stats.nic_bursts_refused), 8,
     "sockets that fell back to single packets"},
    {"relay_sent", Kind::kCounter, "", offsetof(ContextRow, stats.relay_sent), 8,
     "relayed packets of ours, passed to a neighbour"},
    {"relay_received", Kind::kCounter, "", offsetof(ContextRow, stats.relay_received), 8,
     "relayed packets for this process"},
    {"relay_forwarded", Kind::kCounter, "", offsetof(ContextRow, stats.relay_forwarded), 8,
     "relayed packets of others, passed to a neighbour"},
    {"relay_dropped_loop", Kind::kCounter, "", offsetof(ContextRow, stats.relay_dropped_loop), 8,
     "relayed packets dropped: they had been here before"},
    {"relay_dropped_too_far", Kind::kCounter, "", offsetof(ContextRow, stats.relay_dropped_too_far),
     8, "relayed packets dropped: no hop left"},
    {"relay_dropped_no_way", Kind::kCounter, "", offsetof(ContextRow, stats.relay_dropped_no_way),
     8, "relayed packets dropped: no next hop"},
    {"relay_dropped_full", Kind::kCounter, "", offsetof(ContextRow, stats.relay_dropped_full), 8,
     "relayed packets dropped: no room in a queue"},
    {"relay_dropped_malformed", Kind::kCounter, "",
     offsetof(ContextRow, stats.relay_dropped_malformed), 8, "relayed packets dropped: malformed"},
    {"peers_connected", Kind::kGauge, "", offsetof(ContextRow, stats.peers_connected), 8, ""},
    {"packets_in_flight", Kind::kGauge, "", offsetof(ContextRow, stats.packets_in_flight), 8,
     "to all peers"},
    {"unexpected_bytes", Kind::kGauge, "bytes", offsetof(ContextRow, stats.unexpected_bytes), 8,
     "held for messages that came before their receive"},
    {"rtt", Kind::kGauge, "ns", offsetof(ContextRow, stats.rtt_ns), 8,
     "smoothed round trip of the peer heard from last"},
    {"peers", Kind::kGauge, "", offsetof(ContextRow, peers), sizeof(ContextRow::peers),
     "peers that are known"},
    {"peers_waiting", Kind::kGauge, "", offsetof(ContextRow, peers_waiting),
     sizeof(ContextRow::peers_waiting), "peers that wait for something"},
    {"rails_blamed", Kind::kCounter, "", offsetof(ContextRow, rails_blamed),
     sizeof(ContextRow::rails_blamed), "rails left for being silent while another one answered"},
    {"packets_taken", Kind::kGauge, "", offsetof(ContextRow, packets_taken),
     sizeof(ContextRow::packets_taken), "packets taken from the pools"},
    {"receives_posted", Kind::kGauge, "", offsetof(ContextRow, receives_posted),
     sizeof(ContextRow::receives_posted), "receives that wait for a message"},
    {"max_in_flight", Kind::kGauge, "", offsetof(ContextRow, max_in_flight),
     sizeof(ContextRow::max_in_flight), "most packets in flight when this was written"},
    {"max_packets_taken", Kind::kGauge, "", offsetof(ContextRow, max_packets_taken),
     sizeof(ContextRow::max_packets_taken), "most packets taken, likewise"},
    {"max_unexpected_bytes", Kind::kGauge, "bytes", offsetof(ContextRow, max_unexpected_bytes),
     sizeof(ContextRow::max_unexpected_bytes), "most unexpected bytes, likewise"},
    {"rtt_histogram", Kind::kHistogram, "us", offsetof(ContextRow, rtt), sizeof(ContextRow::rtt),
     "ACKs by the latest round trip: below 1 us, below 2 us, below 4 us and so on, all above; then "
     "their sum, ns"},
};

constexpr Column kNic[] = {
    {"nic", Kind::kLabel, "", offsetof(NicRow, nic), sizeof(NicRow::nic), "its number"},
    {"name", Kind::kLabel, "", offsetof(NicRow, name), sizeof(NicRow::name),
     "as the system names it"},
    {"driver", Kind::kText, "", offsetof(NicRow, driver), sizeof(NicRow::driver), ""},
    {"address", Kind::kLabel, "", offsetof(NicRow, address), sizeof(NicRow::address),
     "of its command channel"},
    {"mbps", Kind::kGauge, "Mb/s", offsetof(NicRow, mbps), sizeof(NicRow::mbps), "0: not known"},
    {"packet_bytes", Kind::kGauge, "bytes", offsetof(NicRow, packet_bytes),
     sizeof(NicRow::packet_bytes), "the largest packet"},
    {"link_down", Kind::kGauge, "", offsetof(NicRow, link_down), sizeof(NicRow::link_down),
     "1: it has no link"},
    {"drained", Kind::kGauge, "", offsetof(NicRow, drained), sizeof(NicRow::drained),
     "1: an operator took it out of use"},
};

constexpr Column kChannel[] = {
    {"nic", Kind::kLabel, "", offsetof(ChannelRow, nic), sizeof(ChannelRow::nic),
     "the number of its NIC"},
    {"channel", Kind::kLabel, "", offsetof(ChannelRow, channel), sizeof(ChannelRow::channel),
     "command or data"},
    {"sent", Kind::kCounter, "", offsetof(ChannelRow, sent), sizeof(ChannelRow::sent),
     "packets that the device took"},
    {"received", Kind::kCounter, "", offsetof(ChannelRow, received), sizeof(ChannelRow::received),
     "packets"},
    {"send_refused", Kind::kCounter, "", offsetof(ChannelRow, send_refused),
     sizeof(ChannelRow::send_refused),
     "calls that took fewer packets than offered: the queue was full"},
    {"send_errors", Kind::kCounter, "", offsetof(ChannelRow, send_errors),
     sizeof(ChannelRow::send_errors), "packets that the device rejected"},
    {"receive_errors", Kind::kCounter, "", offsetof(ChannelRow, receive_errors),
     sizeof(ChannelRow::receive_errors), "completions with an error"},
    {"receive_truncated", Kind::kCounter, "", offsetof(ChannelRow, receive_truncated),
     sizeof(ChannelRow::receive_truncated), "datagrams longer than a packet"},
    {"receive_overflows", Kind::kCounter, "", offsetof(ChannelRow, receive_overflows),
     sizeof(ChannelRow::receive_overflows), "datagrams that the socket dropped, being full"},
    {"returned", Kind::kCounter, "", offsetof(ChannelRow, returned), sizeof(ChannelRow::returned),
     "packets reported undeliverable"},
    {"too_long", Kind::kCounter, "", offsetof(ChannelRow, too_long), sizeof(ChannelRow::too_long),
     "packets too long for the path"},
    {"bursts_sent", Kind::kCounter, "", offsetof(ChannelRow, bursts_sent),
     sizeof(ChannelRow::bursts_sent), "calls that sent several packets as one"},
    {"bursts_received", Kind::kCounter, "", offsetof(ChannelRow, bursts_received),
     sizeof(ChannelRow::bursts_received), "datagrams that were several packets"},
    {"waiting", Kind::kGauge, "", offsetof(ChannelRow, waiting), sizeof(ChannelRow::waiting),
     "packets that the device has not taken yet"},
};

constexpr Column kPeer[] = {
    {"peer", Kind::kLabel, "", offsetof(PeerRow, peer), sizeof(PeerRow::peer), "its number here"},
    {"generation", Kind::kLabel, "", offsetof(PeerRow, generation), sizeof(PeerRow::generation),
     "tells peers apart that had the same number"},
    {"address", Kind::kLabel, "", offsetof(PeerRow, address), sizeof(PeerRow::address), ""},
    {"phase", Kind::kText, "", offsetof(PeerRow, phase), sizeof(PeerRow::phase), ""},
    {"why", Kind::kText, "", offsetof(PeerRow, why), sizeof(PeerRow::why), "how it ended"},
    {"waits_for", Kind::kText, "", offsetof(PeerRow, waits_for), sizeof(PeerRow::waits_for),
     "what has to come before something goes on"},
    {"waits_since", Kind::kTime, "", offsetof(PeerRow, waits_since), sizeof(PeerRow::waits_since),
     "when something last went on"},
    {"heard_at", Kind::kTime, "", offsetof(PeerRow, heard_at), sizeof(PeerRow::heard_at),
     "when a packet last came"},
    {"in_memory", Kind::kGauge, "", offsetof(PeerRow, in_memory), sizeof(PeerRow::in_memory),
     "packets on the way through memory"},
    {"messages_sent", Kind::kCounter, "", offsetof(PeerRow, messages_sent),
     sizeof(PeerRow::messages_sent), "messages to it, but for those that wait to be begun"},
    {"messages_arrived", Kind::kCounter, "", offsetof(PeerRow, messages_arrived),
     sizeof(PeerRow::messages_arrived),
     "the first of them, all of which it has, or has begun to get"},
    {"queued_packets", Kind::kGauge, "", offsetof(PeerRow, queued_packets),
     sizeof(PeerRow::queued_packets), "packets that wait to be sent"},
    {"unfinished_sends", Kind::kGauge, "", offsetof(PeerRow, unfinished_sends),
     sizeof(PeerRow::unfinished_sends), "messages that are sent in part"},
    {"filling_receives", Kind::kGauge, "", offsetof(PeerRow, filling_receives),
     sizeof(PeerRow::filling_receives), "messages that have come in part"},
    {"unexpected_bytes", Kind::kGauge, "bytes", offsetof(PeerRow, unexpected_bytes),
     sizeof(PeerRow::unexpected_bytes), "held for messages that came before their receive"},
};

constexpr Column kRail[] = {
    {"peer", Kind::kLabel, "", offsetof(RailRow, peer), sizeof(RailRow::peer),
     "the number of its peer"},
    {"generation", Kind::kLabel, "", offsetof(RailRow, generation), sizeof(RailRow::generation),
     "of its peer"},
    {"rail", Kind::kLabel, "", offsetof(RailRow, rail), sizeof(RailRow::rail), "its number"},
    {"nic", Kind::kLabel, "", offsetof(RailRow, nic), sizeof(RailRow::nic), "our NIC"},
    {"local", Kind::kText, "", offsetof(RailRow, local), sizeof(RailRow::local), ""},
    {"remote", Kind::kText, "", offsetof(RailRow, remote), sizeof(RailRow::remote), ""},
    {"state", Kind::kText, "", offsetof(RailRow, state), sizeof(RailRow::state), ""},
    {"reason", Kind::kText, "", offsetof(RailRow, reason), sizeof(RailRow::reason),
     "why it is in that state"},
    {"since", Kind::kTime, "", offsetof(RailRow, since), sizeof(RailRow::since),
     "when it entered that state"},
    {"rtt_least", Kind::kGauge, "ns", offsetof(RailRow, rtt_least), sizeof(RailRow::rtt_least),
     "least round trip"},
    {"rtt", Kind::kGauge, "ns", offsetof(RailRow, rtt), sizeof(RailRow::rtt),
     "smoothed round trip"},
    {"rtt_variation", Kind::kGauge, "ns", offsetof(RailRow, rtt_variation),
     sizeof(RailRow::rtt_variation), "of the round trip"},
    {"window", Kind::kGauge, "", offsetof(RailRow, window), sizeof(RailRow::window),
     "packets that congestion allows"},
    {"credit", Kind::kGauge, "", offsetof(RailRow, credit), sizeof(RailRow::credit),
     "packets that the peer allows"},
    {"in_flight", Kind::kGauge, "", offsetof(RailRow, in_flight), sizeof(RailRow::in_flight),
     "packets"},
    {"packet_bytes", Kind::kGauge, "bytes", offsetof(RailRow, packet_bytes),
     sizeof(RailRow::packet_bytes), "the largest packet that the path carries"},
    {"packets_sent", Kind::kCounter, "", offsetof(RailRow, packets_sent),
     sizeof(RailRow::packets_sent), "numbered packets that arrived, were lost or are in flight"},
    {"packets_acked", Kind::kCounter, "", offsetof(RailRow, packets_acked),
     sizeof(RailRow::packets_acked), "packets that arrived"},
    {"packets_received", Kind::kCounter, "", offsetof(RailRow, packets_received),
     sizeof(RailRow::packets_received), "numbered packets up to the first gap"},
    {"bytes_sent", Kind::kCounter, "bytes", offsetof(RailRow, bytes_sent),
     sizeof(RailRow::bytes_sent), "0 while the peer has one rail"},
    {"lost", Kind::kCounter, "", offsetof(RailRow, lost), sizeof(RailRow::lost),
     "packets declared lost"},
    {"first_lost", Kind::kTime, "", offsetof(RailRow, first_lost), sizeof(RailRow::first_lost),
     "when the first loss was seen"},
    {"last_lost", Kind::kTime, "", offsetof(RailRow, last_lost), sizeof(RailRow::last_lost),
     "when the last loss was seen"},
    {"spurious", Kind::kCounter, "", offsetof(RailRow, spurious), sizeof(RailRow::spurious),
     "packets sent again that had arrived"},
    {"timeouts", Kind::kCounter, "", offsetof(RailRow, timeouts), sizeof(RailRow::timeouts),
     "probe timeouts"},
    {"evacuated", Kind::kCounter, "", offsetof(RailRow, evacuated), sizeof(RailRow::evacuated),
     "packets moved to other rails"},
    {"times_left", Kind::kCounter, "", offsetof(RailRow, times_left), sizeof(RailRow::times_left),
     "how often it was left"},
};

constexpr Column kError[] = {
    {"kind", Kind::kLabel, "", offsetof(ErrorRow, kind), sizeof(ErrorRow::kind), ""},
    {"times", Kind::kCounter, "", offsetof(ErrorRow, times), sizeof(ErrorRow::times), "how often"},
    {"first", Kind::kTime, "", offsetof(ErrorRow, first), sizeof(ErrorRow::first),
     "when the first one was"},
    {"last", Kind::kTime, "", offsetof(ErrorRow, last), sizeof(ErrorRow::last),
     "when the last one was"},
    {"text", Kind::kText, "", offsetof(ErrorRow, text), sizeof(ErrorRow::text), "the last one"},
};

template <typename Row>
constexpr Table table(std::string_view name, std::span<const Column> columns) {
  static_assert(std::is_trivially_copyable_v<Row> && std::is_standard_layout_v<Row>);
  return {name, sizeof(Row), columns};
}

constexpr Table kTables[] = {
    table<ContextRow>("context", kContext), table<NicRow>("nic", kNic),
    table<ChannelRow>("channel", kChannel), table<PeerRow>("peer", kPeer),
    table<RailRow>("rail", kRail),          table<ErrorRow>("error", kError),
};

}  // namespace

std::span<const Table> tables() {
  return kTables;
}

std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::kLabel:
      return "label";
    case Kind::kText:
      return "text";
    case Kind::kCounter:
      return "counter";
    case Kind::kGauge:
      return "gauge";
    case Kind::kHistogram:
      return "histogram";
    case Kind::kTime:
      return "time";
  }
  return "?";
}

}  // namespace pullman::telemetry
