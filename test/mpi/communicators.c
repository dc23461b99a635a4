/* Communicators made of others in every way, what is sent in one is not seen in another, topologies and their
 * neighbours, and intercommunicators. */
#include "ranks.h"

static int sum_in(MPI_Comm where, int number) {
  int sum = 0;
  MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, where);
  return sum;
}

static int sum_of_class(int class, int of) {
  int sum = 0;
  for (int r = class; r < ranks; r += of) sum += r;
  return sum;
}

static void the_same_tag_in_two_communicators(void) {
  MPI_Comm copy, later;
  MPI_Request made;
  int here = rank, there = rank + 1000, from_here, from_there;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_idup(MPI_COMM_WORLD, &later, &made);
  MPI_Wait(&made, MPI_STATUS_IGNORE);
  MPI_Request sent[2];
  MPI_Isend(&here, 1, MPI_INT, right_of(rank), 1, copy, &sent[0]);
  MPI_Isend(&there, 1, MPI_INT, right_of(rank), 1, later, &sent[1]);
  MPI_Recv(&from_there, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, later, MPI_STATUS_IGNORE);
  MPI_Recv(&from_here, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, copy, MPI_STATUS_IGNORE);
  EXPECT(from_here == left_of(rank) && from_there == left_of(rank) + 1000);
  MPI_Waitall(2, sent, MPI_STATUSES_IGNORE);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&later);
}

static void split_and_split_again(void) {
  MPI_Comm half, pair, shared;
  int size, place;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half); /* in reverse */
  MPI_Comm_rank(half, &place);
  MPI_Comm_size(half, &size);
  EXPECT(place == (ranks - 1 - rank) / 2);
  EXPECT(sum_in(half, rank) == sum_of_class(rank % 2, 2));
  MPI_Comm_split(half, place / 2, 0, &pair);
  MPI_Barrier(pair);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 1, 0, &shared);
  EXPECT((shared == MPI_COMM_NULL) == (rank == 0));
  if (rank != 0) {
    EXPECT(sum_in(shared, 1) == ranks - 1);
    MPI_Comm_free(&shared);
  }
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared);
  MPI_Comm_size(shared, &size);
  EXPECT(size == ranks / 2); /* the ranks of one host */
  MPI_Comm_free(&shared);
  MPI_Comm_free(&pair);
  MPI_Comm_free(&half);
}

static void groups_choose_their_members(void) {
  MPI_Group all, ends;
  MPI_Comm together, alone;
  const int chosen[] = {ranks - 1, 0};
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 2, chosen, &ends);
  MPI_Comm_create(MPI_COMM_WORLD, ends, &together);
  if (together != MPI_COMM_NULL) {
    int place;
    MPI_Comm_rank(together, &place);
    EXPECT(place == (rank == 0));
    EXPECT(sum_in(together, rank + 5) == ranks - 1 + 10);
    MPI_Comm_create_group(MPI_COMM_WORLD, ends, 9, &alone); /* the others do not take part */
    EXPECT(sum_in(alone, 1) == 2);
    MPI_Comm_free(&alone);
    MPI_Comm_free(&together);
  }
  MPI_Group_free(&ends);
  MPI_Group_free(&all);
}

static void a_ring_and_its_neighbours(void) {
  MPI_Comm ring, graph;
  const int size[] = {ranks}, round[] = {1};
  const int sources[] = {left_of(rank)}, targets[] = {right_of(rank)}, weights[] = {1};
  int said[2] = {rank * 2, rank * 2 + 1}, heard[2], number = rank, from_left = -1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, size, round, 0, &ring);
  MPI_Neighbor_alltoall(said, 1, MPI_INT, heard, 1, MPI_INT, ring);
  EXPECT(heard[0] == left_of(rank) * 2 + 1 || ranks == 2);
  EXPECT(heard[1] == right_of(rank) * 2 || ranks == 2);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, sources, weights, 1, targets, weights, MPI_INFO_NULL, 0, &graph);
  MPI_Neighbor_allgather(&number, 1, MPI_INT, &from_left, 1, MPI_INT, graph);
  EXPECT(from_left == left_of(rank));
  MPI_Comm_free(&graph);
  MPI_Comm_free(&ring);
}

static void two_halves_talk(void) {
  MPI_Comm half, bridge, merged;
  int other_size, place, word, all[64];
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 77, &bridge);
  MPI_Comm_remote_size(bridge, &other_size);
  EXPECT(other_size == ranks / 2);
  EXPECT(sum_in(bridge, rank) == sum_of_class(1 - rank % 2, 2));
  MPI_Comm_rank(half, &place);
  MPI_Sendrecv(&rank, 1, MPI_INT, place, 3, &word, 1, MPI_INT, place, 3, bridge, MPI_STATUS_IGNORE);
  EXPECT(word == (rank ^ 1));
  MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, bridge);
  for (int i = 0; i < other_size; ++i) EXPECT(all[i] == 2 * i + 1 - rank % 2);
  word = rank % 2 == 0 && place == 0 ? 4711 : 0;
  MPI_Bcast(&word, 1, MPI_INT, rank % 2 ? 0 : place == 0 ? MPI_ROOT : MPI_PROC_NULL, bridge);
  EXPECT(rank % 2 == 0 || word == 4711);
  MPI_Intercomm_merge(bridge, rank % 2, &merged);
  EXPECT(sum_in(merged, 1) == ranks);
  MPI_Comm_rank(merged, &place);
  EXPECT(place == rank / 2 + rank % 2 * (ranks / 2));
  MPI_Comm_free(&merged);
  MPI_Comm_free(&bridge);
  MPI_Comm_free(&half);
}

static void many_are_made_and_freed(void) {
  for (int turn = 0; turn < 100; ++turn) {
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    EXPECT(sum_in(copy, turn) == turn * ranks);
    MPI_Comm_free(&copy);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  the_same_tag_in_two_communicators();
  split_and_split_again();
  groups_choose_their_members();
  a_ring_and_its_neighbours();
  two_halves_talk();
  many_are_made_and_freed();
  end("communicators");
  return 0;
}
