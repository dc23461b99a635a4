/* What a message's envelope has to carry, to the highest tag: Open MPI lays communicator, source
 * and tag out in the 64 bits of a tag, or leaves the source to the provider, as mtl_ofi_tag_mode
 * says. */
#include "ranks.h"

enum { kLargest = 100000, kCommunicators = 40 };

static const int kSizes[] = {0, 8, 1000, 5000, kLargest};
static char out[kLargest], in[kLargest];
static int highest;

static int size_for(int tag) {
  return kSizes[(unsigned)tag % (sizeof kSizes / sizeof kSizes[0])];
}

static void is_what_was_sent(const MPI_Status* status, int from, int tag) {
  int count;
  MPI_Get_count(status, MPI_CHAR, &count);
  EXPECT(status->MPI_SOURCE == from && status->MPI_TAG == tag && count == size_for(tag));
  EXPECT(is_filled(in, (size_t)count, from, tag));
}

static void every_tag_by_name_and_by_wildcard(int synchronous) {
  const int tags[] = {0,           1,      255, 256, 65535, 65536, highest / 2, highest / 2 + 1,
                      highest - 1, highest};
  for (size_t i = 0; i < sizeof tags / sizeof tags[0]; ++i) {
    for (int way = 0; way < 4; ++way) {
      const int tag = tags[i], size = size_for(tag), left = left_of(rank);
      MPI_Request sent;
      MPI_Status status;
      fill(out, (size_t)size, rank, tag);
      (synchronous ? MPI_Issend : MPI_Isend)(out, size, MPI_CHAR, right_of(rank), tag,
                                             MPI_COMM_WORLD, &sent);
      const int source = way & 1 ? MPI_ANY_SOURCE : left, wanted = way & 2 ? MPI_ANY_TAG : tag;
      MPI_Probe(source, wanted, MPI_COMM_WORLD, &status);
      EXPECT(status.MPI_SOURCE == left && status.MPI_TAG == tag);
      MPI_Recv(in, kLargest, MPI_CHAR, source, wanted, MPI_COMM_WORLD, &status);
      is_what_was_sent(&status, left, tag);
      MPI_Wait(&sent, MPI_STATUS_IGNORE);
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
}

/* All send the same tag to rank 0, which takes them by their source, the last one first. */
static void one_tag_from_each_by_source(void) {
  const int tag = highest - 3, size = size_for(tag);
  if (rank != 0) {
    fill(out, (size_t)size, rank, tag);
    MPI_Send(out, size, MPI_CHAR, 0, tag, MPI_COMM_WORLD);
  } else {
    for (int from = ranks - 1; from > 0; --from) {
      MPI_Status status;
      MPI_Recv(in, kLargest, MPI_CHAR, from, tag, MPI_COMM_WORLD, &status);
      is_what_was_sent(&status, from, tag);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void one_tag_in_each_communicator(void) {
  static char sent[kCommunicators][8];
  MPI_Comm all[kCommunicators];
  MPI_Request requests[kCommunicators];
  for (int i = 0; i < kCommunicators; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &all[i]);
    fill(sent[i], sizeof sent[i], rank, i);
    MPI_Isend(sent[i], sizeof sent[i], MPI_CHAR, right_of(rank), highest, all[i], &requests[i]);
  }
  for (int i = kCommunicators - 1; i >= 0; --i) {
    MPI_Recv(in, kLargest, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, all[i], MPI_STATUS_IGNORE);
    EXPECT(is_filled(in, sizeof sent[i], left_of(rank), i));
  }
  MPI_Waitall(kCommunicators, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kCommunicators; ++i) MPI_Comm_free(&all[i]);
}

/* HIGHEST TAG */
int main(int argc, char** argv) {
  begin(&argc, &argv);
  int *bound, there = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &there);
  highest = argc > 1 ? atoi(argv[1]) : 0;
  EXPECT(there && highest > 65536 && *bound >= highest);
  if (rank == 0) printf("tags up to %d\n", *bound);
  every_tag_by_name_and_by_wildcard(0);
  every_tag_by_name_and_by_wildcard(1);
  one_tag_from_each_by_source();
  one_tag_in_each_communicator();
  end("tags");
  return 0;
}
