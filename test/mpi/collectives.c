/* Every collective, blocking and not, on numbers whose result is known. */
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

static int counts[64], places[64], total;

static void parts_of_several_lengths(void) {
  total = 0;
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
  MPI_Gatherv(mine, counts[rank], MPI_LONG, theirs, counts, places, MPI_LONG, 0, MPI_COMM_WORLD);
  for (int r = 0; rank == 0 && r < ranks; ++r) {
    for (int i = 0; i < counts[r]; ++i) EXPECT(theirs[places[r] + i] == value(r, i));
  }
  fill_for(1, total);
  MPI_Scatterv(mine, counts, places, MPI_LONG, theirs, counts[rank], MPI_LONG, ranks - 1, MPI_COMM_WORLD);
  for (int i = 0; i < counts[rank]; ++i) EXPECT(theirs[i] == value(ranks - 1, places[rank] + i));
  MPI_Reduce_scatter(mine, theirs, counts, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < counts[rank]; ++i) EXPECT(theirs[i] == sum_at(places[rank] + i));
}

/* Rank r sends counts[s] numbers to rank s; so each receives as many of everybody. */
static void all_to_all_of_several_lengths(void) {
  int same[64], apart[64], out_bytes[64], in_bytes[64];
  MPI_Datatype types[64];
  for (int r = 0; r < ranks; ++r) {
    same[r] = counts[rank];
    apart[r] = r * counts[rank];
    out_bytes[r] = places[r] * (int)sizeof(long);
    in_bytes[r] = apart[r] * (int)sizeof(long);
    types[r] = MPI_LONG;
  }
  for (int typed = 0; typed < 2; ++typed) {
    fill_for(1, total);
    if (typed) {
      MPI_Alltoallw(mine, counts, out_bytes, types, theirs, same, in_bytes, types, MPI_COMM_WORLD);
    } else {
      MPI_Alltoallv(mine, counts, places, MPI_LONG, theirs, same, apart, MPI_LONG, MPI_COMM_WORLD);
    }
    for (int r = 0; r < ranks; ++r) {
      for (int i = 0; i < same[r]; ++i) EXPECT(theirs[apart[r] + i] == value(r, places[rank] + i));
    }
  }
}

static void the_rest_not_blocking(int count) {
  MPI_Request request;
  fill_for(ranks, count);
  MPI_Iscatter(mine, count, MPI_LONG, theirs, count, MPI_LONG, 0, MPI_COMM_WORLD, &request);
  finish(&request);
  for (int i = 0; i < count; ++i) EXPECT(theirs[i] == value(0, rank * count + i));
  MPI_Igather(mine, count, MPI_LONG, theirs, count, MPI_LONG, 0, MPI_COMM_WORLD, &request);
  finish(&request);
  for (int r = 0; rank == 0 && r < ranks; ++r) EXPECT(theirs[r * count] == value(r, 0));
  MPI_Ireduce(mine, theirs, count, MPI_LONG, MPI_SUM, ranks - 1, MPI_COMM_WORLD, &request);
  finish(&request);
  for (int i = 0; rank == ranks - 1 && i < count; ++i) EXPECT(theirs[i] == sum_at(i));
  MPI_Ireduce_scatter_block(mine, theirs, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
  finish(&request);
  for (int i = 0; i < count; ++i) EXPECT(theirs[i] == sum_at(rank * count + i));
  MPI_Iscan(mine, theirs, count, MPI_LONG, MPI_MAX, MPI_COMM_WORLD, &request);
  finish(&request);
  for (int i = 0; i < count; ++i) EXPECT(theirs[i] == value(rank, i));
  MPI_Iexscan(mine, theirs, count, MPI_LONG, MPI_MAX, MPI_COMM_WORLD, &request);
  finish(&request);
  for (int i = 0; rank > 0 && i < count; ++i) EXPECT(theirs[i] == value(rank - 1, i));
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  finish(&request);
}

/* Sums whose last bits depend on the order of adding: the same over every transport. */
static void sums_of_fractions(int count) {
  double* parts = malloc((size_t)count * sizeof *parts);
  double* sums = malloc((size_t)count * sizeof *sums);
  for (int i = 0; i < count; ++i) parts[i] = 1.0 / (3 + rank * 7 + i);
  MPI_Allreduce(parts, sums, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  note(sums, (size_t)count * sizeof *sums);
  free(parts);
  free(sums);
}

static void everything_at_once(int count) {
  enum { kKinds = 4 };
  MPI_Request requests[kKinds];
  long* room = malloc(sizeof *room * (size_t)count * (size_t)(2 * ranks + 4));
  long *to_all = room, *summed = room + count, *gathered = room + 2 * (size_t)count;
  long* exchanged = gathered + (size_t)count * (size_t)ranks;
  fill_for(ranks, count);
  for (int i = 0; i < count; ++i) to_all[i] = value(rank, i);
  MPI_Ibcast(to_all, count, MPI_LONG, ranks - 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Iallreduce(mine, summed, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
  MPI_Iallgather(mine, count, MPI_LONG, gathered, count, MPI_LONG, MPI_COMM_WORLD, &requests[2]);
  MPI_Ialltoall(mine, count, MPI_LONG, exchanged, count, MPI_LONG, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(kKinds, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < count; ++i) EXPECT(to_all[i] == value(ranks - 1, i) && summed[i] == sum_at(i));
  for (int r = 0; r < ranks; ++r) {
    for (int i = 0; i < count; ++i) {
      EXPECT(gathered[r * count + i] == value(r, i));
      EXPECT(exchanged[r * count + i] == value(r, rank * count + i));
    }
  }
  free(room);
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
    sums_of_fractions(kCounts[i]);
    everything_at_once(kCounts[i]);
    the_rest_not_blocking(kCounts[i]);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  parts_of_several_lengths();
  all_to_all_of_several_lengths();
  end("collectives");
  return 0;
}
