/* Every collective, blocking and not, on numbers whose result is known; communicators made of others. */
#include <string.h>

#include "ranks.h"

enum { kMost = 20000 };
static long mine[kMost * 16], theirs[kMost * 16];

/* What rank `from` puts at `at`. */
static long value(int from, int at) {
  return from * 100003L + at;
}

static void fill_for(int parts, int count) {
  for (int i = 0; i < parts * count; ++i) mine[i] = value(rank, i);
}

static long sum_at(int at) {
  long sum = 0;
  for (int r = 0; r < ranks; ++r) sum += value(r, at);
  return sum;
}

static void finish(MPI_Request* request) {
  MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void one_to_all(int count, int root) {
  MPI_Request request;
  fill_for(1, count);
  MPI_Bcast(mine, count, MPI_LONG, root, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) EXPECT(mine[i] == value(root, i));
  fill_for(1, count);
  MPI_Ibcast(mine, count, MPI_LONG, root, MPI_COMM_WORLD, &request);
  finish(&request);
  for (int i = 0; i < count; ++i) EXPECT(mine[i] == value(root, i));
  fill_for(ranks, count);
  MPI_Scatter(mine, count, MPI_LONG, theirs, count, MPI_LONG, root, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) EXPECT(theirs[i] == value(root, rank * count + i));
}

static void all_to_one(int count, int root) {
  fill_for(1, count);
  MPI_Gather(mine, count, MPI_LONG, theirs, count, MPI_LONG, root, MPI_COMM_WORLD);
  for (int r = 0; rank == root && r < ranks; ++r) {
    for (int i = 0; i < count; ++i) EXPECT(theirs[r * count + i] == value(r, i));
  }
  MPI_Reduce(mine, theirs, count, MPI_LONG, MPI_SUM, root, MPI_COMM_WORLD);
  for (int i = 0; rank == root && i < count; ++i) EXPECT(theirs[i] == sum_at(i));
}

static void all_to_all(int count) {
  MPI_Request request;
  fill_for(1, count);
  MPI_Allgather(mine, count, MPI_LONG, theirs, count, MPI_LONG, MPI_COMM_WORLD);
  for (int r = 0; r < ranks; ++r) {
    for (int i = 0; i < count; ++i) EXPECT(theirs[r * count + i] == value(r, i));
  }
  MPI_Allreduce(mine, theirs, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) EXPECT(theirs[i] == sum_at(i));
  MPI_Iallreduce(mine, theirs, count, MPI_LONG, MPI_MAX, MPI_COMM_WORLD, &request);
  finish(&request);
  for (int i = 0; i < count; ++i) EXPECT(theirs[i] == value(ranks - 1, i));
  fill_for(ranks, count);
  MPI_Alltoall(mine, count, MPI_LONG, theirs, count, MPI_LONG, MPI_COMM_WORLD);
  for (int r = 0; r < ranks; ++r) {
    for (int i = 0; i < count; ++i) EXPECT(theirs[r * count + i] == value(r, rank * count + i));
  }
  MPI_Reduce_scatter_block(mine, theirs, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) EXPECT(theirs[i] == sum_at(rank * count + i));
}

static void prefixes(int count) {
  fill_for(1, count);
  MPI_Scan(mine, theirs, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  long sum = 0;
  for (int r = 0; r <= rank; ++r) sum += value(r, count - 1);
  EXPECT(theirs[count - 1] == sum);
  MPI_Exscan(mine, theirs, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank > 0) EXPECT(theirs[count - 1] == sum - value(rank, count - 1));
}

static void parts_of_several_lengths(void) {
  int counts[64], places[64], total = 0;
  for (int r = 0; r < ranks; ++r) {
    counts[r] = 10 + 300 * r;
    places[r] = total;
    total += counts[r];
  }
  fill_for(1, counts[rank]);
  MPI_Allgatherv(mine, counts[rank], MPI_LONG, theirs, counts, places, MPI_LONG, MPI_COMM_WORLD);
  for (int r = 0; r < ranks; ++r) {
    for (int i = 0; i < counts[r]; ++i) EXPECT(theirs[places[r] + i] == value(r, i));
  }
}

static void halves_of_the_world(void) {
  MPI_Comm half, copy, bridge;
  int size, sum, number = rank;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Comm_size(half, &size);
  MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, half);
  int expected = 0;
  for (int r = rank % 2; r < ranks; r += 2) expected += r;
  EXPECT(sum == expected);
  MPI_Comm_dup(half, &copy);
  MPI_Barrier(copy);
  if (ranks > 1) {
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 77, &bridge);
    MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, bridge);
    expected = 0;
    for (int r = 1 - rank % 2; r < ranks; r += 2) expected += r;
    EXPECT(sum == expected);
    MPI_Comm_free(&bridge);
  }
  MPI_Comm_free(&copy);
  MPI_Comm_free(&half);
}

int main(int argc, char** argv) {
  static const int kCounts[] = {1, 128, 1000, kMost};
  begin(&argc, &argv);
  for (size_t i = 0; i < sizeof kCounts / sizeof kCounts[0]; ++i) {
    for (int root = 0; root < ranks; root += ranks - 1) {
      one_to_all(kCounts[i], root);
      all_to_one(kCounts[i], root);
    }
    all_to_all(kCounts[i]);
    prefixes(kCounts[i]);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  parts_of_several_lengths();
  halves_of_the_world();
  end("collectives");
  return 0;
}
