/* One-sided communication: put, get, accumulate, fetch-and-op, compare-and-swap, under fences, between posts and
 * waits, and under locks. */
#include <string.h>

#include "ranks.h"

enum { kCells = 4096, kAdds = 200 };
static long* memory;
static MPI_Win window;

static void make(void) {
  MPI_Win_allocate(kCells * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  for (int i = 0; i < kCells; ++i) memory[i] = rank * 100000L + i;
  MPI_Barrier(MPI_COMM_WORLD);
}

static void neighbours_put_and_get_under_fences(void) {
  enum { kHalf = kCells / 2 };
  static long sent[kHalf], got[kHalf];
  for (int i = 0; i < kHalf; ++i) sent[i] = rank * 7L + i;
  MPI_Win_fence(0, window);
  MPI_Put(sent, kHalf, MPI_LONG, right_of(rank), 0, kHalf, MPI_LONG, window);
  MPI_Get(got, kHalf, MPI_LONG, left_of(rank), kHalf, kHalf, MPI_LONG, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < kHalf; ++i) {
    EXPECT(memory[i] == left_of(rank) * 7L + i);
    EXPECT(got[i] == left_of(rank) * 100000L + kHalf + i);
  }
  note(got, sizeof got);
  MPI_Win_fence(0, window);
}

static void everybody_adds_to_rank_0(void) {
  if (rank == 0) memory[0] = memory[1] = 0;
  MPI_Win_fence(0, window);
  for (long i = 1; i <= kAdds; ++i) {
    MPI_Accumulate(&i, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, window);
  }
  MPI_Win_fence(0, window);
  EXPECT(rank != 0 || memory[0] == (long)ranks * kAdds * (kAdds + 1) / 2);
  MPI_Win_fence(0, window);
}

static void tickets_are_given_once(void) {
  static char* seen;
  const long one = 1;
  long ticket, tickets[kAdds];
  if (rank == 0) memory[0] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < kAdds; ++i) {
    MPI_Fetch_and_op(&one, &ticket, MPI_LONG, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
    tickets[i] = ticket;
  }
  MPI_Win_unlock_all(window);
  long* all = malloc(sizeof *all * (size_t)(kAdds * ranks));
  MPI_Gather(tickets, kAdds, MPI_LONG, all, kAdds, MPI_LONG, 0, MPI_COMM_WORLD);
  seen = calloc((size_t)ranks, kAdds);
  for (int i = 0; rank == 0 && i < kAdds * ranks; ++i) {
    EXPECT(all[i] >= 0 && all[i] < kAdds * ranks && !seen[all[i]]);
    seen[all[i]] = 1;
  }
  free(all);
  free(seen);
}

static void compare_and_swap_makes_a_lock(void) {
  const long free_ = 0, mine = rank + 1;
  if (rank == 0) memory[0] = memory[1] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  for (int turn = 0; turn < 20; ++turn) {
    long found = -1, count;
    while (found != free_) {
      MPI_Compare_and_swap(&mine, &free_, &found, MPI_LONG, 0, 0, window);
      MPI_Win_flush(0, window);
    }
    MPI_Get(&count, 1, MPI_LONG, 0, 1, 1, MPI_LONG, window);
    MPI_Win_flush(0, window);
    ++count;
    MPI_Put(&count, 1, MPI_LONG, 0, 1, 1, MPI_LONG, window);
    MPI_Win_flush(0, window);
    MPI_Compare_and_swap(&free_, &mine, &found, MPI_LONG, 0, 0, window);
    MPI_Win_flush(0, window);
    EXPECT(found == mine);
  }
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
  long count;
  MPI_Get(&count, 1, MPI_LONG, 0, 1, 1, MPI_LONG, window);
  MPI_Win_unlock(0, window);
  EXPECT(count == 20L * ranks);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void posts_and_waits(void) {
  MPI_Group all, to, from;
  const int right = right_of(rank), left = left_of(rank);
  long word = rank * 3L;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &right, &to);
  MPI_Group_incl(all, 1, &left, &from);
  MPI_Win_post(from, 0, window);
  MPI_Win_start(to, 0, window);
  MPI_Put(&word, 1, MPI_LONG, right, 9, 1, MPI_LONG, window);
  MPI_Win_complete(window);
  MPI_Win_wait(window);
  EXPECT(memory[9] == left * 3L);
  MPI_Group_free(&to);
  MPI_Group_free(&from);
  MPI_Group_free(&all);
}

static void exclusive_locks_and_fractions(void) {
  double* cells;
  MPI_Win fractions;
  MPI_Win_allocate(64 * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &fractions);
  for (int i = 0; i < 64; ++i) cells[i] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int turn = 0; turn < 20; ++turn) {
    double part[64];
    for (int i = 0; i < 64; ++i) part[i] = 0.5 * (i + 1);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, turn % ranks, 0, fractions);
    MPI_Accumulate(part, 64, MPI_DOUBLE, turn % ranks, 0, 64, MPI_DOUBLE, MPI_SUM, fractions);
    MPI_Win_unlock(turn % ranks, fractions);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const int times = (20 + ranks - 1 - rank) / ranks * ranks;
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, fractions);
  for (int i = 0; i < 64; ++i) EXPECT(cells[i] == 0.5 * (i + 1) * times);
  MPI_Win_unlock(rank, fractions);
  MPI_Win_free(&fractions);
}

/* Of three types and lengths, to everybody, with no other call between than flushes. */
static void everybody_adds_everywhere_under_one_lock_of_all(void) {
  enum { kLong = 5000, kTurns = 30 };
  static double fractions[kLong];
  static long whole[kLong];
  double* cells;
  MPI_Win real;
  MPI_Win_allocate(kLong * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &cells,
                   &real);
  for (int i = 0; i < kLong; ++i) {
    cells[i] = 0;
    fractions[i] = 0.5 * i;
    whole[i] = i;
  }
  for (int i = 0; i < kCells; ++i) memory[i] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  MPI_Win_lock_all(0, real);
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int i = 0; i < ranks; ++i) {
      const int to = (rank + i) % ranks, number = turn % 3 == 0   ? 1
                                                  : turn % 3 == 1 ? 40
                                                                  : kCells - 2;
      const int one = 1;
      MPI_Accumulate(whole, number, MPI_LONG, to, 2, number, MPI_LONG, MPI_SUM, window);
      MPI_Accumulate(&one, 1, MPI_INT, to, 0, 1, MPI_INT, MPI_SUM, window);
      MPI_Accumulate(fractions, kLong, MPI_DOUBLE, to, 0, kLong, MPI_DOUBLE, MPI_SUM, real);
    }
    if (turn % 5 == 4) {
      MPI_Win_flush_all(window);
      MPI_Win_flush_local_all(real);
    }
  }
  MPI_Win_unlock_all(real);
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
  int ones;
  memcpy(&ones, memory, sizeof ones);
  EXPECT(ones == kTurns * ranks);
  for (int i = 0; i < kCells - 2; ++i) {
    EXPECT(memory[2 + i] == (long)i * ranks * (kTurns / 3) * (i == 0 ? 3 : i < 40 ? 2 : 1));
  }
  note(memory, kCells * sizeof *memory);
  MPI_Win_unlock(rank, window);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, real);
  for (int i = 0; i < kLong; ++i) EXPECT(cells[i] == 0.5 * i * kTurns * ranks);
  note(cells, kLong * sizeof *cells);
  MPI_Win_unlock(rank, real);
  MPI_Win_free(&real);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  make();
  neighbours_put_and_get_under_fences();
  everybody_adds_to_rank_0();
  tickets_are_given_once();
  compare_and_swap_makes_a_lock();
  posts_and_waits();
  exclusive_locks_and_fractions();
  everybody_adds_everywhere_under_one_lock_of_all();
  MPI_Win_free(&window);
  end("one-sided");
  return 0;
}
