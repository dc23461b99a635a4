/* Dynamic windows: memory is attached to them after they were made, and reached by its address.
 * Lists that all ranks lengthen at once, by compare-and-swap and fetch-and-op; accumulations under
 * one lock of all. With the argument "attached-before" no rank attaches memory while another
 * reaches into its own. */
#include <stddef.h>
#include <string.h>

#include "ranks.h"

enum { kNodes = 32, kAdds = 200 };

typedef struct {
  long rank; /* -1: there is none */
  MPI_Aint at;
} Place;

typedef struct {
  long value, visits;
  Place next;
} Node;

static int attached_before;
static MPI_Win window;
static Node* nodes[kNodes];

static MPI_Aint place_of(const void* memory) {
  MPI_Aint at;
  MPI_Get_address(memory, &at);
  return at;
}

static Node* attach_node(long value) {
  Node* node;
  MPI_Alloc_mem(sizeof *node, MPI_INFO_NULL, &node);
  *node = (Node){.value = value, .next = {.rank = -1}};
  MPI_Win_attach(window, node, sizeof *node);
  return node;
}

static void detach_node(Node* node) {
  MPI_Win_detach(window, node);
  MPI_Free_mem(node);
}

static Place member(Place of, size_t offset) {
  of.at = MPI_Aint_add(of.at, (MPI_Aint)offset);
  return of;
}
#define MEMBER(place, name) member(place, offsetof(Node, name))

static long fetch_and_add(Place at, long what) {
  long found;
  MPI_Fetch_and_op(&what, &found, MPI_LONG, (int)at.rank, at.at, MPI_SUM, window);
  MPI_Win_flush((int)at.rank, window);
  return found;
}

static long read_long(Place at) {
  long found, unused = 0;
  MPI_Fetch_and_op(&unused, &found, MPI_LONG, (int)at.rank, at.at, MPI_NO_OP, window);
  MPI_Win_flush((int)at.rank, window);
  return found;
}

static void write_long(Place at, long what) {
  MPI_Accumulate(&what, 1, MPI_LONG, (int)at.rank, at.at, 1, MPI_LONG, MPI_REPLACE, window);
  MPI_Win_flush((int)at.rank, window);
}

static long compare_and_swap(Place at, long old, long new) {
  long found;
  MPI_Compare_and_swap(&new, &old, &found, MPI_LONG, (int)at.rank, at.at, window);
  MPI_Win_flush((int)at.rank, window);
  return found;
}

/* Where a node's rank is set, its address is about to be: it is written first by who has the node.
 */
static Place next_of(Place node) {
  Place next = {.rank = read_long(MEMBER(node, next.rank))};
  while (next.rank >= 0 && (next.at = (MPI_Aint)read_long(MEMBER(node, next.at))) == 0) {
  }
  return next;
}

static void append(Place tail, Place node) {
  for (;;) {
    if (compare_and_swap(MEMBER(tail, next.rank), -1, node.rank) == -1) {
      write_long(MEMBER(tail, next.at), (long)node.at);
      return;
    }
    tail = next_of(tail);
  }
}

static void every_rank_lengthens_one_list(void) {
  Place head = {.rank = 0};
  Node* first = NULL;
  if (rank == 0) {
    first = attach_node(-1);
    head.at = place_of(first);
  }
  MPI_Bcast(&head.at, 1, MPI_AINT, 0, MPI_COMM_WORLD);
  for (int i = 0; attached_before && i < kNodes; ++i) nodes[i] = attach_node(rank * 1000L + i);
  if (attached_before) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < kNodes; ++i) {
    if (!attached_before) nodes[i] = attach_node(rank * 1000L + i);
    append(head, (Place){.rank = rank, .at = place_of(nodes[i])});
  }
  MPI_Barrier(MPI_COMM_WORLD);

  /* Each rank's nodes are there once, in its order. */
  long* next_value = calloc((size_t)ranks, sizeof *next_value);
  long count = 0;
  for (Place at = next_of(head); at.rank >= 0; at = next_of(at), ++count) {
    EXPECT(at.rank < ranks);
    EXPECT(read_long(MEMBER(at, value)) == at.rank * 1000 + next_value[at.rank]++);
    fetch_and_add(MEMBER(at, visits), 1);
  }
  free(next_value);
  EXPECT(count == (long)kNodes * ranks);
  note(&count, sizeof count);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < kNodes; ++i) {
    EXPECT(read_long((Place){.rank = rank, .at = place_of(&nodes[i]->visits)}) == ranks);
  }
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < kNodes; ++i) detach_node(nodes[i]);
  if (rank == 0) detach_node(first);
}

static void accumulations_into_attached_memory_under_one_lock_of_all(void) {
  enum { kCells = 256 };
  long *cells, part[kCells];
  MPI_Aint* places = malloc(sizeof *places * (size_t)ranks);
  MPI_Alloc_mem(sizeof *cells * kCells, MPI_INFO_NULL, &cells);
  for (int i = 0; i < kCells; ++i) {
    cells[i] = 0;
    part[i] = i;
  }
  MPI_Win_attach(window, cells, sizeof *cells * kCells);
  const MPI_Aint mine = place_of(cells);
  MPI_Allgather(&mine, 1, MPI_AINT, places, 1, MPI_AINT, MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  for (int turn = 0; turn < kAdds; ++turn) {
    const int to = (rank + turn) % ranks;
    MPI_Accumulate(part, kCells, MPI_LONG, to, places[to], kCells, MPI_LONG, MPI_SUM, window);
    if (turn % 16 == 15) MPI_Win_flush_all(window);
  }
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  long total = 0, all = 0;
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
  for (int i = 0; i < kCells; ++i) EXPECT(cells[i] == (long)i * cells[1]);
  total = cells[1];
  MPI_Win_unlock(rank, window);
  MPI_Allreduce(&total, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(all == (long)kAdds * ranks);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_detach(window, cells);
  MPI_Free_mem(cells);
  free(places);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  attached_before = argc > 1 && strcmp(argv[1], "attached-before") == 0;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  every_rank_lengthens_one_list();
  accumulations_into_attached_memory_under_one_lock_of_all();
  MPI_Win_free(&window);
  end("dynamic windows");
  return 0;
}
