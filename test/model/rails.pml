/*
 * Evacuation and de-duplication over two rails: a sender, a receiver and all that a network may do
 * between them. docs/model.md says what this covers, what it does not, and what came of it. Clauses
 * are those of docs/wire.md.
 *
 * Two rails, each with packet numbers of its own and a window of 3; message ids over both, with a
 * window of 3. Messages without end: each is one frame, alone in its packet.
 *
 * The network. A number is sent once (3.1), so what a rail may still bring is a set: by number, the
 * message and the floor that the packet carries. Nothing is taken out of it: any packet may arrive
 * now, late, out of order, again, or never. A rail that is cut, one way or both, with or without
 * notice, and comes back with what was in it, is a rail whose packets arrive late or never. So
 * faults are not counted and none is left out. The bound is SPAN: numbers that a rail's sender may
 * be beyond the least that one end still waits for; a rail whose packets all are lost stops there.
 *
 * ACKs. What a receiver may say of a number only grows: it has arrived or is settled, for good. So
 * an ACK, new or old, lost, repeated or overtaken, over whichever rail, tells the sender some of
 * the numbers that are settled at the receiver now. The sender hears of each of these by itself, at
 * any time or never: that covers them all.
 *
 * The sender judges packets lost whenever it likes, rightly or wrongly. What is lost leaves again
 * on either rail: a rail that is down is one that the sender does not choose, and evacuating it is
 * judging all of it lost, in any number of steps and with ACKs coming in between.
 *
 * Numbers and ids are counted from the least that matters (rebase, shift_ids), which makes a state
 * the same wherever in the 64 bits it is reached: so the runs are without end, too.
 *
 * With -DLIVENESS a rail is up or down as the sender believes, what is lost is queued on it, and a
 * rail that is declared down is evacuated: all in flight, all that is queued. The storm may end at
 * any moment (`calm`): from then on one rail works both ways and is not blamed any more; what was
 * sent before may come or not; what is gone is judged lost some time. Every step then brings
 * something nearer to its end, so no fairness has to be assumed: whichever steps are taken, all
 * messages of the window come to be delivered and completed. Numbers are not bounded then: NUMBERS
 * only sizes the arrays, and an assertion says that they suffice.
 *
 * With -DMUTANT_... something is wrong, and spin has to find it; with -DWITNESS it has to find that
 * a state is reached that the proofs must not have missed (tools/model.py).
 */
#ifndef SPAN_0
#define SPAN_0 3
#endif
#ifndef SPAN_1
#define SPAN_1 3
#endif
#define span(r) (r == 0 -> SPAN_0 : SPAN_1)
#ifdef LIVENESS
#define NUMBERS 8
#define in_calm calm
bool calm;
#else
#define NUMBERS SPAN_0 /* the greater one */
#define in_calm false
#endif

#define WINDOW 3 /* of packet numbers, and of message ids */
#ifndef ID_WINDOW
#define ID_WINDOW WINDOW
#endif
#define IDS 4 /* the last only for whoever goes beyond the window */

#define BIT(i) (1 << (i))
#define HIGHER(a, b) ((a) > (b) -> (a) : (b))
#define LOWER(a, b) ((a) < (b) -> (a) : (b))

/* What a slot of the window or a packet of the network holds: a message's id, or */
#define OLD 4     /* any message that is complete at the receiver, as all before it */
#define GONE 5    /* lost for good */
#define OVER 6    /* the receiver has had this number, or settled it: nothing may come of it */
#define NOTHING 7 /* free; not sent */

/* Where a message stands at the sender. */
#define FRESH 0
#define QUEUED_0 1 /* + rail: that rail will send it again */
#define IN_FLIGHT 3
#define DUE 4 /* either rail will */
#define ACKED 5

typedef Rail {
  /* The sender's half: lib/reliability/send_window.h. */
  unsigned next : 4;
  unsigned floor : 4;
  byte slot[WINDOW]; /* by number modulo WINDOW */
  /* The receiver's half: lib/reliability/ack_tracker.h. */
  unsigned cumulative : 4;
  unsigned beyond : 3; /* bit i: cumulative + i has arrived */
  /* The network between, by packet number. */
  byte message[NUMBERS];
  byte distance[NUMBERS]; /* the number less the floor (3.3) */
#ifdef LIVENESS
  bool down;    /* as the sender believes */
  bool forward; /* when it is calm: carries packets, */
  bool back;    /* carries ACKs; */
  unsigned old : 4; /* the numbers below left during the storm */
#endif
};

Rail rail[2];

/* The sender's messages, from the lowest that is not complete on: lib/message/tx/outbox.h. */
byte stands[IDS];

/* The receiver's: lib/message/id_window.h, inbox.h. */
unsigned id_floor : 3; /* all messages below have come */
unsigned id_beyond : 3;
/* Seen from outside. */
unsigned taken : 4;  /* bit by id: has come */
unsigned handed : 3; /* so many have been handed on to be matched */

/* Only within one step: 0 outside. */
byte c, f, i, j;

#define is_settled(r, n) \
  ((n) < rail[r].cumulative || \
   ((n) - rail[r].cumulative < WINDOW && (rail[r].beyond & BIT((n) - rail[r].cumulative))))

#define is_in_flight(r, n) \
  ((n) >= rail[r].floor && (n) < rail[r].next && rail[r].slot[(n) % WINDOW] != NOTHING)

/* --- counting from the least that matters */

#define CLOSER(d, n) LOWER(d, n) /* a floor below the least number says no more than that one */

#ifdef MUTANT_ACK_BY_SLOT
#define REBASES false /* it minds numbers that should not matter any more */
#else
#define REBASES true
#endif
/* Numbers below are not in flight, and settled at the receiver. */
inline rebase(r) {
  do
  :: REBASES && rail[r].floor > 0 && rail[r].cumulative > 0 ->
       rail[r].floor--;
       rail[r].cumulative--;
       rail[r].next--;
#ifdef LIVENESS
       rail[r].old = HIGHER(rail[r].old, 1) - 1;
#endif
       i = rail[r].slot[0];
       rail[r].slot[0] = rail[r].slot[1];
       rail[r].slot[1] = rail[r].slot[2];
       rail[r].slot[2] = i;
       i = 0;
       do
       :: i < NUMBERS - 1 ->
            rail[r].message[i] = rail[r].message[i + 1];
            rail[r].distance[i] = CLOSER(rail[r].distance[i + 1], i);
            i++
       :: else -> break
       od;
       rail[r].message[i] = NOTHING;
       rail[r].distance[i] = 0;
       i = 0
  :: else -> break
  od
}

/* The messages below the id floor are all alike to the receiver. */
inline forget_below_floor() {
  i = 0;
  do
  :: i < NUMBERS ->
       j = 0;
       do
       :: j < 2 ->
            if
            :: rail[j].message[i] < id_floor -> rail[j].message[i] = OLD
            :: else
            fi;
            j++
       :: else -> break
       od;
       i++
  :: else -> break
  od;
  i = 0;
  j = 0
}

#define ONE_LESS(id) (id == 0 -> OLD : (id < IDS -> id - 1 : id))

/* Message 0 is complete: the next one is 0 now. */
inline shift_ids() {
  do
  :: stands[0] == ACKED && !in_calm ->
       assert(id_floor > 0);
       stands[0] = stands[1];
       stands[1] = stands[2];
       stands[2] = stands[3];
       stands[3] = FRESH;
       taken = taken >> 1;
       handed--;
       id_floor--;
       j = 0;
       do
       :: j < 2 ->
            i = 0;
            do
            :: i < NUMBERS -> rail[j].message[i] = ONE_LESS(rail[j].message[i]); i++
            :: else -> break
            od;
            i = 0;
            do
            :: i < WINDOW -> rail[j].slot[i] = ONE_LESS(rail[j].slot[i]); i++
            :: else -> break
            od;
            j++
       :: else -> break
       od;
       i = 0;
       j = 0
  :: else -> break
  od
}

/* --- the sender */

#define has_number(r) \
  (rail[r].next - rail[r].floor < WINDOW && (in_calm || rail[r].next < span(r)))

#ifdef MUTANT_IGNORES_ID_WINDOW
#define in_id_window(id) true
#else
#define in_id_window(id) ((id) < ID_WINDOW) /* 4.3 */
#endif
#define is_next(id) (stands[id] == FRESH && (id == 0 || stands[HIGHER(id, 1) - 1] != FRESH))
#define may_leave(r, id) \
  (stands[id] == DUE || stands[id] == QUEUED_0 + r || (is_next(id) && in_id_window(id)))

#ifdef LIVENESS
#define may_use(r) (!rail[r].down)
#define after_loss(r) (QUEUED_0 + r)
#define may_judge_lost(r, n) (!calm || rail[r].message[n] == GONE)
#else
#define may_use(r) true
#define after_loss(r) DUE
#define may_judge_lost(r, n) true
#endif

#define may_send(r, id) (may_use(r) && has_number(r) && may_leave(r, id))
inline send(r, id) {
  assert(rail[r].next < NUMBERS);
  assert(rail[r].slot[rail[r].next % WINDOW] == NOTHING);
  rail[r].slot[rail[r].next % WINDOW] = id;
  rail[r].message[rail[r].next] = (id < id_floor -> OLD : id);
#ifdef MUTANT_FLOOR_TOO_HIGH
  rail[r].distance[rail[r].next] = 0;
#else
  rail[r].distance[rail[r].next] = rail[r].next - rail[r].floor;
#endif
  rail[r].next++;
  stands[id] = IN_FLIGHT
}

/* It is not in flight any more; the floor is the lowest number that is. */
inline remove(r, n) {
  rail[r].slot[(n) % WINDOW] = NOTHING;
  do
  :: rail[r].floor < rail[r].next && rail[r].slot[rail[r].floor % WINDOW] == NOTHING ->
       rail[r].floor++
  :: else -> break
  od
}

/* Judged lost: the number is settled, the message is to leave again under another one. */
inline give_up(r, n, then) {
  c = rail[r].slot[(n) % WINDOW];
  assert(stands[c] == IN_FLIGHT);
  stands[c] = then;
#if defined(MUTANT_REUSES_NUMBER)
  remove(r, n);
  if
  :: (n) + 1 == rail[r].next ->
       rail[r].next = n;
       rail[r].floor = LOWER(rail[r].floor, n)
  :: else
  fi;
#elif defined(MUTANT_KEEPS_EVACUATED) /* whoever is evacuated can still be acknowledged here */
#else
  remove(r, n);
#endif
  c = 0
}
#ifdef MUTANT_KEEPS_EVACUATED
#define is_held(r, n) \
  (is_in_flight(r, n) && rail[r].slot[(n) % WINDOW] < IDS && \
   stands[rail[r].slot[(n) % WINDOW]] == IN_FLIGHT)
#else
#define is_held(r, n) is_in_flight(r, n)
#endif
#define is_lost(r, n) (is_held(r, n) && may_judge_lost(r, n))
inline lose(r, n) {
  give_up(r, n, after_loss(r));
  rebase(r)
}

/* The packet under this number has arrived: a send completes once, and not before it was taken. */
inline release(r, n) {
  c = rail[r].slot[(n) % WINDOW];
  assert(c < IDS && stands[c] != ACKED);
  assert(taken & BIT(c));
  remove(r, n);
  stands[c] = ACKED;
  c = 0;
  rebase(r);
  shift_ids()
}

/* An ACK says that the number is settled. What is not in flight is not touched (6.4). */
#if defined(MUTANT_ACK_BY_SLOT)
#define may_hear(r, n) (is_settled(r, n) && rail[r].slot[(n) % WINDOW] != NOTHING)
#define hear(r, n) release(r, n)
#elif defined(MUTANT_ACK_FOR_WRONG_RAIL)
#define may_hear(r, n) (is_settled(r, n) && is_in_flight(1 - r, n))
#define hear(r, n) \
  f = 1 - r; \
  release(f, n); \
  f = 0
#else
#define may_hear(r, n) (is_settled(r, n) && is_in_flight(r, n))
#define hear(r, n) release(r, n)
#endif

/* --- the receiver */

#ifdef MUTANT_FORGETS_IDS
#define has_come(id) ((id) >= id_floor && (id) < OLD && (id_beyond & BIT((id) - id_floor)))
#else
#define has_come(id) \
  ((id) == OLD || (id) < id_floor || (id_beyond & BIT((id) - id_floor))) /* 4.3 */
#endif

inline advance(r) {
  rail[r].cumulative++;
  rail[r].beyond = rail[r].beyond >> 1
}

/* The number has come, and those below its floor `f` are settled (3.3, 6.1). */
inline note(r, n) {
  do
  :: rail[r].cumulative < f ->
       advance(r);
#ifdef MUTANT_FLOOR_CLEARS_ALL
       rail[r].beyond = 0
#endif
  :: else -> break
  od;
  rail[r].beyond = rail[r].beyond | BIT((n) - rail[r].cumulative);
  do
  :: rail[r].beyond & 1 -> advance(r)
  :: else -> break
  od;
  i = 0;
  do
  :: i < NUMBERS ->
       if
       :: i < rail[r].next && (i == n || i < rail[r].cumulative) ->
            rail[r].message[i] = OVER;
            rail[r].distance[i] = 0
       :: else
       fi;
       i++
  :: else -> break
  od;
  i = 0
}

inline take() {
  if
  :: has_come(c) /* acknowledged, and not handed on again */
  :: else ->
       assert(c < IDS && !(taken & BIT(c))); /* exactly once */
       assert(c < id_floor + ID_WINDOW);
       taken = taken | BIT(c);
       id_beyond = id_beyond | BIT(c - id_floor);
       do
       :: id_beyond & 1 ->
            assert(handed == id_floor); /* in the order of ids (4.8) */
            handed++;
            id_floor++;
            id_beyond = id_beyond >> 1
       :: else -> break
       od;
       forget_below_floor()
  fi
}

#define may_arrive(r, n) (rail[r].message[n] < GONE && can_carry(r))
inline arrive(r, n) {
  assert(!is_settled(r, n)); /* it would have been judged a duplicate */
  c = rail[r].message[n];
#ifdef MUTANT_FLOOR_NOT_CARRIED
  f = 0;
#else
  f = n - rail[r].distance[n];
#endif
  assert(n - HIGHER(f, rail[r].cumulative) < WINDOW); /* 3.2: what keeps it is never refused */
#ifndef MUTANT_ACKS_UNTAKEN
  take();
#endif
  note(r, n);
  c = 0;
  f = 0;
  rebase(r)
}

/* What has come or was settled comes again, or late: it is a duplicate, ever after. */
#define is_over(r, n) (rail[r].message[n] == OVER)
#define repeat(r, n) assert(is_settled(r, n))

/* --- everything that may happen */

#define STEP(guard, step, n) :: d_step { guard(r, n) -> step(r, n); skip }
#define EACH_ID(g, s) STEP(g, s, 0) STEP(g, s, 1) STEP(g, s, 2) STEP(g, s, 3)
#define FOUR_NUMBERS(g, s) STEP(g, s, 0) STEP(g, s, 1) STEP(g, s, 2) STEP(g, s, 3)
#if NUMBERS == 3
#define EACH_NUMBER(g, s) STEP(g, s, 0) STEP(g, s, 1) STEP(g, s, 2)
#elif NUMBERS == 4
#define EACH_NUMBER(g, s) FOUR_NUMBERS(g, s)
#elif NUMBERS == 5
#define EACH_NUMBER(g, s) FOUR_NUMBERS(g, s) STEP(g, s, 4)
#else
#define EACH_NUMBER(g, s) \
  FOUR_NUMBERS(g, s) STEP(g, s, 4) STEP(g, s, 5) STEP(g, s, 6) STEP(g, s, 7)
#endif

#ifdef LIVENESS
#define works(r) (rail[r].forward && rail[r].back)
#define can_carry(r) (!calm || rail[r].forward)
#define done \
  (stands[0] == ACKED && stands[1] == ACKED && (ID_WINDOW == 2 || stands[2] == ACKED))

#ifdef MUTANT_NEVER_EVACUATES
#define EVACUATES false
#else
#define EVACUATES true
#endif
/* Everything leaves, what is queued, too: it is due on either rail. */
inline declare_down(r) {
  rail[r].down = true;
  j = 0;
  do
  :: j < WINDOW ->
       f = rail[r].floor + j;
       if
       :: is_in_flight(r, f) ->
            c = rail[r].slot[f % WINDOW];
            stands[c] = (EVACUATES -> DUE : stands[c])
       :: else
       fi;
       j++
  :: else -> break
  od;
  j = 0;
  do
  :: j < WINDOW -> rail[r].slot[j] = NOTHING; j++
  :: else -> break
  od;
  rail[r].floor = rail[r].next;
#ifndef MUTANT_FORGETS_QUEUED
  j = 0;
  do
  :: j < IDS -> stands[j] = (stands[j] == QUEUED_0 + r -> DUE : stands[j]); j++
  :: else -> break
  od;
#endif
  c = 0;
  f = 0;
  j = 0;
  rebase(r)
}

#define may_vanish(r, n) (calm && n < rail[r].old && rail[r].message[n] < GONE)
#define vanish(r, n) rail[r].message[n] = GONE

/* Of two rails that are alike, 0 is the one that works. What a dead rail holds is gone. */
inline end_storm(forward_1, back_1) {
  d_step {
    calm = true;
    rail[0].forward = true;
    rail[0].back = true;
    rail[1].forward = forward_1;
    rail[1].back = back_1;
    rail[0].old = rail[0].next;
    rail[1].old = rail[1].next;
    do
    :: !forward_1 && i < NUMBERS ->
         rail[1].message[i] = (rail[1].message[i] < GONE -> GONE : rail[1].message[i]);
         i++
    :: else -> break
    od;
    i = 0
  }
}

ltl delivered_and_completed { [] (calm -> <> done) }
#else
#define can_carry(r) true
#endif

proctype Sender(bit r) {
  do
  EACH_ID(may_send, send)
  EACH_NUMBER(may_hear, hear)
  EACH_NUMBER(is_lost, lose)
#ifdef LIVENESS
  :: d_step { !rail[r].down && !(calm && works(r)) -> declare_down(r); skip }
  :: d_step { rail[r].down && (!calm || works(r)) -> rail[r].down = false }
#endif
  od
}

proctype Network(bit r) {
  do
  EACH_NUMBER(may_arrive, arrive)
#ifdef LIVENESS
  EACH_NUMBER(may_vanish, vanish)
#else
  EACH_NUMBER(is_over, repeat)
#endif
  od
}

/* A whole window was evacuated and is in flight on the other rail; nothing of it has arrived, but
 * may yet, over both. */
#define in_both(n) \
  (rail[1].message[n] < GONE && is_in_flight(0, n) && rail[0].message[n] < GONE)

init {
  d_step {
    do
    :: j < 2 ->
         i = 0;
         do
         :: i < NUMBERS -> rail[j].message[i] = NOTHING; i++
         :: else -> break
         od;
         i = 0;
         do
         :: i < WINDOW -> rail[j].slot[i] = NOTHING; i++
         :: else -> break
         od;
         j++
    :: else -> break
    od;
    i = 0;
    j = 0
  }
  atomic {
    run Sender(0);
    run Sender(1);
    run Network(0);
    run Network(1)
  }
#ifdef WITNESS
  d_step { rail[1].floor == 3 && in_both(0) && in_both(1) && in_both(2) -> assert(false) }
#endif
#ifdef LIVENESS
  if
  :: end_storm(true, true)
  :: end_storm(true, false)
  :: end_storm(false, true)
  :: end_storm(false, false)
  fi
#endif
}
