-- A Wireshark dissector of Pullman's packets, version 1 of the wire format (docs/wire.md; its clauses are named here).
--
--     wireshark -X lua_script:tools/wireshark/pullman.lua
--
-- UDP datagrams that look like packets of ours are found by themselves; "Decode As..." names a port, too. The bodies of
-- encrypted packets (12.2) are not opened.

local pullman = Proto("pullman", "Pullman")

local PACKETS = {[1] = "sequenced", [2] = "control", [3] = "HELLO", [4] = "WELCOME", [5] = "bulk", [6] = "check"}
local BULK = 5
local HEADER_BYTES, BULK_BYTES, BULK_HEAD_BYTES = 32, 28, 18
local TAG_BYTES, INITIAL_BYTES = 16, 24

local f = {
  version = ProtoField.uint8("pullman.version", "Version", base.DEC, nil, 0xF0),
  type = ProtoField.uint8("pullman.type", "Packet type", base.DEC, PACKETS, 0x0F),
  flags = ProtoField.uint8("pullman.flags", "Flags", base.HEX),
  ack = ProtoField.bool("pullman.flags.ack", "ACK", 8, nil, 0x01),
  checksummed = ProtoField.bool("pullman.flags.checksum", "Checksum", 8, nil, 0x02),
  rail = ProtoField.uint8("pullman.rail", "Rail", base.DEC, nil, 0x1C),
  ack_soon = ProtoField.bool("pullman.flags.ack_soon", "ACK soon", 8, nil, 0x20),
  authenticated = ProtoField.bool("pullman.flags.authenticated", "Authenticated", 8, nil, 0x40),
  encrypted = ProtoField.bool("pullman.flags.encrypted", "Encrypted", 8, nil, 0x80),
  length = ProtoField.uint16("pullman.length", "Length"),
  index = ProtoField.uint32("pullman.connection", "Connection"),
  proof = ProtoField.uint32("pullman.proof", "Proof", base.HEX),
  number = ProtoField.uint32("pullman.number", "Packet number"),
  floor = ProtoField.uint16("pullman.floor_distance", "Floor distance"),
  gap = ProtoField.uint16("pullman.poll_gap", "Poll gap", base.DEC, nil, 0xF000),
  credit = ProtoField.uint16("pullman.credit", "Credit", base.DEC, nil, 0x0FFF),
  cumulative = ProtoField.uint32("pullman.cumulative", "Cumulative ACK"),
  hold = ProtoField.uint16("pullman.hold", "Hold time, 128 ns"),
  late = ProtoField.uint16("pullman.late", "Late count"),
  checksum = ProtoField.uint32("pullman.checksum", "Checksum value", base.HEX),
  message = ProtoField.uint32("pullman.message", "Message"),
  tag = ProtoField.uint64("pullman.tag", "Tag", base.HEX),
  total = ProtoField.uint64("pullman.total", "Total"),
  offset = ProtoField.uint64("pullman.offset", "Offset"),
  limit = ProtoField.uint64("pullman.limit", "Limit"),
  whole_limit = ProtoField.uint64("pullman.whole_limit", "Limit of whole messages"),
  first = ProtoField.uint32("pullman.sack.first", "First packet number"),
  excepted = ProtoField.uint32("pullman.bye.excepted", "Excepted ids"),
  said_rail = ProtoField.uint8("pullman.said.rail", "Of rail"),
  said = ProtoField.uint8("pullman.said", "What is said of it"),
  count = ProtoField.uint16("pullman.said.count", "Count"),
  result = ProtoField.uint32("pullman.result", "Result"),
  data = ProtoField.bytes("pullman.data", "Data"),
  epoch = ProtoField.uint64("pullman.hello.epoch", "Epoch", base.HEX),
  reply_index = ProtoField.uint32("pullman.hello.connection", "Reply to connection"),
  reply_proof = ProtoField.uint32("pullman.hello.proof", "Reply to proof", base.HEX),
  first_number = ProtoField.uint64("pullman.hello.first_number", "First packet number"),
  first_message = ProtoField.uint64("pullman.hello.first_message", "First message id"),
  allowance = ProtoField.uint64("pullman.hello.allowance", "Allowance at first"),
  eager = ProtoField.uint32("pullman.hello.eager", "Eager bytes"),
  hello_credit = ProtoField.uint16("pullman.hello.credit", "Credit at first"),
  nic = ProtoField.uint8("pullman.hello.nic", "NIC of rail 0"),
  nics = ProtoField.uint8("pullman.hello.nics", "Number of NICs"),
  call = ProtoField.uint16("pullman.hello.call", "Call"),
  host = ProtoField.uint64("pullman.hello.host", "Host", base.HEX),
  frame = ProtoField.string("pullman.frame", "Frame"),
  frame_type = ProtoField.uint8("pullman.frame.type", "Frame type"),
  frame_kind = ProtoField.uint8("pullman.frame.kind", "Kind", base.HEX),
  frame_length = ProtoField.uint16("pullman.frame.length", "Length of data"),
  sealed = ProtoField.bytes("pullman.encrypted_body", "Encrypted"),
  salt = ProtoField.bytes("pullman.salt", "Salt"),
  initial = ProtoField.uint64("pullman.initial_count", "Count"),
  auth_tag = ProtoField.bytes("pullman.auth_tag", "Authentication tag"),
}
for _, field in pairs(f) do table.insert(pullman.fields, field) end

local malformed = ProtoExpert.new("pullman.malformed", "It is no packet of version 1", expert.group.MALFORMED,
                                  expert.severity.ERROR)
pullman.experts = {malformed}

-- Of each frame type (4.1): its name, and the fields after the head with their bytes.
local FRAMES = {
  [1] = {"MESSAGE", {{f.message, 4}, {f.tag, 8}}},
  [2] = {"CHUNK", {{f.message, 4}, {f.tag, 8}, {f.total, 8}, {f.offset, 8}}},
  [3] = {"GRANT", {{f.message, 4}, {f.limit, 8}}},
  [4] = {"ALLOWANCE", {{f.limit, 8}, {f.whole_limit, 8}}},
  [5] = {"SACK", {{f.first, 4}}},
  [6] = {"HELLO", {}},
  [7] = {"PING", {}},
  [8] = {"BYE", {{f.message, 4}, {f.excepted, 4}}},
  [9] = {"PADDING", {}},
  [10] = {"WAYS", {}},
  [11] = {"RAIL", {{f.said_rail, 1}, {f.said, 1}, {f.count, 2}}},
  [12] = {"CHECK", {}},
  [13] = {"CHECKED", {}},
  [14] = {"RESULT", {{f.message, 4}, {f.result, 4}}},
  [15] = {"ENVELOPE", {{f.message, 4}, {f.tag, 8}, {f.total, 8}}},
  [16] = {"BLOCKED", {{f.limit, 8}}},
  [17] = {"NICS", {}},
  [18] = {"MEMORY", {}},
}

-- 5.1
local HELLO = {{f.epoch, 8}, {f.reply_index, 4}, {f.reply_proof, 4}, {f.first_number, 8}, {f.first_message, 8},
               {f.allowance, 8}, {f.eager, 4}, {f.hello_credit, 2}, {f.nic, 1}, {f.nics, 1}, {f.call, 2}, {nil, 2},
               {f.host, 8}}

-- Adds fields one behind the other; returns what is behind them, or nothing if it ends before.
local function add_fields(tree, bytes, fields)
  local at = 0
  for _, field in ipairs(fields) do
    if at + field[2] > bytes:len() then return nil end
    if field[1] then tree:add(field[1], bytes(at, field[2])) end
    at = at + field[2]
  end
  return at
end

-- Adds the frames of a body (4.1); returns their names, and whether the body was made of frames. Of a body that the
-- capture has cut, a frame whose data is cut is the last.
local function add_frames(tree, body, cut)
  local names, at = {}, 0
  while at < body:len() do
    if at + 4 > body:len() then return names, false end
    local known = FRAMES[body(at, 1):uint()]
    if not known then return names, false end
    local length = body(at + 2, 2):uint()
    local head = 4
    for _, field in ipairs(known[2]) do head = head + field[2] end
    if cut and at + head <= body:len() then length = math.min(length, body:len() - at - head) end
    if at + head + length > body:len() then return names, false end
    local frame = tree:add(f.frame, body(at, head + length), known[1])
    frame:add(f.frame_type, body(at, 1))
    frame:add(f.frame_kind, body(at + 1, 1))
    frame:add(f.frame_length, body(at + 2, 2))
    if head > 4 then add_fields(frame, body(at + 4, head - 4), known[2]) end
    if length > 0 then
      local data = body(at + head, length)
      frame:add(f.data, data)
      if known[1] == "HELLO" and not add_fields(frame, data, HELLO) and not cut then return names, false end
    end
    table.insert(names, known[1])
    at = at + head + length
  end
  return names, true
end

-- Returns how many bytes stand behind the packet in its datagram (12.1).
local function trailer_bytes(kind, flags)
  if bit.band(flags, 0xC0) == 0 then return 0 end
  return (kind == 3 or kind == 4 or kind == 6) and TAG_BYTES + INITIAL_BYTES or TAG_BYTES
end

-- Returns the length of the packet at the beginning of these bytes, with what stands behind it, or nothing if there is
-- none: its version and type, its flags, its length. Of `reported` bytes a capture may have kept only the first, which
-- have to be the header at least.
local function packet_length(bytes, reported)
  if bytes:len() < BULK_BYTES then return nil end
  local first, flags = bytes(0, 1):uint(), bytes(1, 1):uint()
  local kind = bit.band(first, 0x0F)
  if bit.rshift(first, 4) ~= 1 or not PACKETS[kind] or bit.band(flags, 0xC0) == 0xC0 then return nil end
  local header = kind == BULK and BULK_BYTES or HEADER_BYTES
  local length = bytes(2, 2):uint()
  local whole = length + trailer_bytes(kind, flags)
  return length >= header and whole <= reported and header <= bytes:len() and whole or nil
end

-- Returns whether the bytes are packets, one behind the other: several, where the kernel sends or receives in bursts
-- (UDP_SEGMENT, UDP_GRO) and the capture is made before it cuts, or after it joins them.
local function are_packets(buffer)
  local at, reported = 0, buffer:reported_len()
  while at < buffer:len() do
    local length = packet_length(buffer(at), reported - at)
    if not length then return false end
    at = at + length
  end
  return at > 0 and (at == reported or buffer:len() < reported)
end

local function add_trailer(tree, bytes, at, kind)
  if at >= bytes:len() then return end
  if trailer_bytes(kind, 0x40) > TAG_BYTES then
    tree:add(f.salt, bytes(at, 16))
    tree:add(f.initial, bytes(at + 16, 8))
    at = at + INITIAL_BYTES
  end
  tree:add(f.auth_tag, bytes(at, TAG_BYTES))
end

local function add_header(tree, bytes, kind)
  tree:add(f.version, bytes(0, 1))
  tree:add(f.type, bytes(0, 1))
  local flags = tree:add(f.flags, bytes(1, 1))
  for _, flag in ipairs({f.ack, f.checksummed, f.rail, f.ack_soon, f.authenticated, f.encrypted}) do
    flags:add(flag, bytes(1, 1))
  end
  tree:add(f.length, bytes(2, 2))
  tree:add(f.index, bytes(4, 4))
  tree:add(f.proof, bytes(8, 4))
  tree:add(f.number, bytes(12, 4))
  tree:add(f.floor, bytes(16, 2))
  if kind == BULK then
    tree:add(f.message, bytes(BULK_HEAD_BYTES, 4))
    tree:add(f.offset, bytes(BULK_HEAD_BYTES + 4, 6), bytes(BULK_HEAD_BYTES + 4, 6):uint64())
    return
  end
  tree:add(f.gap, bytes(18, 2))
  tree:add(f.credit, bytes(18, 2))
  tree:add(f.cumulative, bytes(20, 4))
  tree:add(f.hold, bytes(24, 2))
  tree:add(f.late, bytes(26, 2))
  tree:add(f.checksum, bytes(28, 4))
end

-- Adds one packet with what stands behind it; returns what it is, in a few words. Of one that the capture has cut, as
-- PULLMAN_TRACE does, what there is is added.
local function add_packet(root, bytes, cut)
  local kind, flags = bit.band(bytes(0, 1):uint(), 0x0F), bytes(1, 1):uint()
  local length = bytes(2, 2):uint()
  local tree = root:add(pullman, bytes, "Pullman " .. PACKETS[kind])
  add_header(tree, bytes, kind)
  local header = kind == BULK and BULK_BYTES or HEADER_BYTES
  local names = {}
  if math.min(length, bytes:len()) > header then
    local body = bytes(header, math.min(length, bytes:len()) - header)
    if bit.band(flags, 0x80) ~= 0 then
      tree:add(f.sealed, body)
    elseif kind == BULK then
      tree:add(f.data, body)
    else
      local good
      names, good = add_frames(tree, body, cut)
      if not good and not cut then tree:add_proto_expert_info(malformed) end
    end
  end
  if not cut then add_trailer(tree, bytes, length, kind) end
  local info = PACKETS[kind] .. " " .. bytes(12, 4):uint() .. " rail " .. bit.band(bit.rshift(flags, 2), 7)
  if kind ~= BULK and bit.band(flags, 1) ~= 0 then info = info .. " ack " .. bytes(20, 4):uint() end
  if #names > 0 then info = info .. ": " .. table.concat(names, ", ") end
  return info
end

function pullman.dissector(buffer, pinfo, root)
  if not are_packets(buffer) then return 0 end
  local bytes, reported = buffer(), buffer:reported_len()
  local at, count, info = 0, 0, nil
  while at < bytes:len() do
    local length = packet_length(bytes(at), reported - at)
    local kept = math.min(length, bytes:len() - at)
    local said = add_packet(root, bytes(at, kept), kept < length)
    at, count, info = at + length, count + 1, info or said
  end
  pinfo.cols.protocol = "Pullman"
  pinfo.cols.info = count == 1 and info or info .. ", and " .. count - 1 .. " more"
  return bytes:len()
end

pullman:register_heuristic("udp", function(buffer, pinfo, tree)
  if not are_packets(buffer) then return false end
  pullman.dissector(buffer, pinfo, tree)
  return true
end)
DissectorTable.get("udp.port"):add_for_decode_as(pullman)
DissectorTable.get("wtap_encap"):add(wtap.USER0, pullman)
