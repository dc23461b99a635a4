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

  // Writes all rows but those of errors. What the engine does not know of the context, and what it
  // does not remember, is left as it is.
  void collect(Instant now, telemetry::Rows& out) const;

 private:
  void collect_nics(telemetry::Rows& out) const;
  static telemetry::PeerRow row_of(const Peer& peer);
  telemetry::RailRow row_of(Instant now, const Rail& rail) const;

  const EngineResources& resources_;
  const NicTable& nics_;
  const RailManager& rails_;
  const AckHandler& ack_handler_;
  const Inspector& inspector_;
};

}  // namespace pullman::engine
