// Collects what is shown of an engine to the outside (telemetry/rows.h): a row for the context and
// for each NIC, channel, peer and rail. Changes nothing.
#pragma once

#include "engine/inspector.h"
#include "telemetry/rows.h"

namespace pullman::engine {

class Collector {
 public:
  Collector(const EngineResources& resources, const NicTable& nics, const RailManager& rails,
            const AckHandler& ack_handler, const Inspector& inspector)
      : resources_(resources),
        nics_(nics),
        rails_(rails),
        ack_handler_(ack_handler),
        inspector_(inspector) {}

  // Writes all rows but those of errors. What the engine does not know of the context is left as it
  // is; since when something is so is for telemetry/history.h. Addresses are most of the work: they
  // are written for rows that are new, and for all if `anew`.
  void collect(Instant now, bool anew, telemetry::Rows& out) const;

 private:
  void collect_nics(telemetry::Rows& out) const;
  static void fill(const Peer& peer, const Tally& tally, bool anew, telemetry::PeerRow& row);
  static void fill(Instant now, const Rail& rail, bool anew, telemetry::RailRow& row);
  static void fill(const Peer& peer, const RailView& memory, telemetry::RailRow& row);

  const EngineResources& resources_;
  const NicTable& nics_;
  const RailManager& rails_;
  const AckHandler& ack_handler_;
  const Inspector& inspector_;
};

}  // namespace pullman::engine
