"""The field's words, not ours: words.py

A name that the field has another word for is refused, wherever it stands in the code: docs/glossary.md says which words
are Pullman's own. Prints `N passed, N failed, N skipped`.
"""

import pathlib
import re
import sys

import mutation

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("include", "lib", "bench", "examples", "test", "tools")

# What a name was once, and what it is now.
INSTEAD = {
    "give_up": "close_abortively",
    "look_for_news": "poll_port_events",
    "Doubt": "LivenessProbe",
    "doubt_of": "liveness_probe_of",
    "handle_doubt_due": "handle_liveness_due",
    "dispel": "clear_liveness_probe",
    "disown": "send_unknown_peer_reply",
    "Denial": "UnknownPeerReply",
    "kDenialBytes": "kUnknownPeerReplyBytes",
    "kStranger": "kUnknownPeer",
    "send_denial": "repeat_unknown_peer_reply",
    "note_denial": "note_unknown_peer_reply",
    "take_denial": "take_unknown_peer_reply",
    "kDenialCookie": "kUnknownPeerCookie",
    "next_denial_": "next_unknown_peer_reply_",
    "owes": "has_pending_tx",
    "owes_frames": "has_pending_frames",
    "tell_of_silence": "warn_peer_unresponsive",
    "kSilenceTold": "kUnresponsiveWarned",
    "silence_told_": "unresponsive_warned_",
    "watched_until_": "polled_until_",
    "about_to_sleep": "prepare_to_block",
    "unseen_": "unpolled_",
    "lively_": "active_channels_",
    "starves": "is_blocked_on_pool",
    "module_in_hand_": "current_module_",
    "batch_in_hand_": "current_batch_",
    "LateAck": "DeferredAck",
    "take_late_ack": "take_deferred_ack",
    "handle_late_ack": "handle_deferred_ack",
    "repeats_late_ack": "repeats_deferred_ack",
    "Introduction": "PendingHello",
    "deliver_riders": "deliver_early_data",
    "hold_riders": "hold_early_data",
    "call_otherwise": "try_next_nic",
    "looks_seldom": "polls_infrequently",
    "note_ride": "note_piggyback",
    "begin_anew": "reset_path_state",
    "alarm_stay": "alarm_timeout",
    "recompute_stay": "recompute_timeout",
    "vain_rounds_": "ineffective_rounds_",
    "note_vain": "note_ineffective",
    "kVainRounds": "kIneffectiveRounds",
    "kVainRoundsOfShort": "kIneffectiveRoundsOfShort",
    "polls_in_vain_": "empty_polls_",
    "Parcel": "SendDescriptor",
    "parcel_for": "descriptor_for",
    "parcel_of_answer": "descriptor_of_answer",
    "Courier": "RequestCopy",
    "MoreMatchers": "SpaceMatchers",
    "more_matchers_": "space_matchers_",
    "kYielding": "kDeprioritised",
    "goes_ahead": "has_priority",
    "Favourite": "ConnectedPeer",
    "Switchboard": "ConnectionTable",
    "switchboard_": "connection_table_",
    "Courtesy": "YieldPolicy",
    "read_courtesy": "read_yield_policy",
    "kNowhere": "kInvalidDestination",
    "Pieces": "Segments",
    "ConstPieces": "ConstSegments",
    "kMostPieces": "kMaxSegments",
    "lines_of_the_alone": "format_unpaired",
    "do_without_what_is_of_no_use": "drop_unusable_devices",
    "refuse_those_of_nobody": "fail_orphaned_receives",
    "Ward": "ManagedEndpoint",
    "is_neglected": "is_unattended",
    "ride": "piggyback",
    "riding": "piggybacked",
    "doubt": "probe",
    "favourite": "connected_peer",
    "fruitless": "empty",
    "neglected_": "unattended_",
}
# As one of the words of which a name is made, wherever it stands in it.
PARTS = {
    "courier": "copy", "courtesy": "yield policy", "denial": "unknown-peer reply", "doubt": "probe",
    "favourite": "connected peer", "neglected": "unattended", "parcel": "descriptor", "pieces": "segments",
    "rider": "early data", "riders": "early data", "rto": "pto", "switchboard": "connection table",
    "vain": "ineffective, empty",
}
PREFIXES = {"most_": "max_", "kMost": "kMax"}
WORDS = re.compile(r"\b(" + "|".join(map(re.escape, INSTEAD)) + r")\b")
NAME = re.compile(r"\b[A-Za-z_]\w*")
PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
BEGINNINGS = re.compile(r"\b(most_|kMost)(?=[a-zA-Z])")


def wrong_in(text):
    """(line, name, what to say instead) of each.

    >>> wrong_in("int a;\\nint most_nics = kNowhere;")
    [(2, 'kNowhere', 'kInvalidDestination'), (2, 'most_', 'max_')]
    >>> wrong_in("x = kRtoInitial; port = 1;")
    [(1, 'kRtoInitial', 'pto')]
    """
    found = []
    for number, whole in enumerate(text.splitlines(), 1):
        line = mutation.without_comment(whole)
        found += [(number, name, INSTEAD[name]) for name in WORDS.findall(line)]
        found += [(number, name, PARTS[part.lower()]) for name in NAME.findall(line) if name not in INSTEAD
                  for part in PART.findall(name) if part.lower() in PARTS]
        found += [(number, name, PREFIXES[name]) for name in BEGINNINGS.findall(line)]
    return found


def main():
    files = [file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*")) if file.suffix in (".h", ".cc")]
    failed = 0
    for file in files:
        wrong = wrong_in(file.read_text())
        failed += bool(wrong)
        for line, name, instead in wrong:
            print(f"{file.relative_to(ROOT)}:{line}: {name}: the field says {instead}")
    print(f"{len(files) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
