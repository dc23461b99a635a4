/* What the MPI programs of the tests have in common: checks that name what went wrong, content that
 * says where it comes from, and a digest of all that was received, to be compared with another
 * transport's. */
#ifndef PULLMAN_TEST_MPI_RANKS_H
#define PULLMAN_TEST_MPI_RANKS_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks;
static uint64_t digest = 14695981039346656037u;

#define EXPECT(what)                                                            \
  do {                                                                          \
    if (!(what)) {                                                              \
      fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, rank, #what); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                             \
    }                                                                           \
  } while (0)

static inline void begin(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

/* FNV-1a, of what must be the same whatever carried it. */
static inline void note(const void* bytes, size_t size) {
  const unsigned char* at = bytes;
  for (size_t i = 0; i < size; ++i) digest = (digest ^ at[i]) * 1099511628211u;
}

static inline void end(const char* what) {
  uint64_t all = 0;
  MPI_Reduce(&digest, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("%s: right on %d ranks, digest %016llx\n", what, ranks, (unsigned long long)all);
  MPI_Finalize();
}

static inline int right_of(int of) {
  return (of + 1) % ranks;
}

static inline int left_of(int of) {
  return (of + ranks - 1) % ranks;
}

/* Byte `at` of a message from `sender` with that tag. */
static inline char content(int sender, int tag, size_t at) {
  return (char)(sender * 31 + tag * 7 + (int)(at % 251));
}

static inline void fill(char* bytes, size_t size, int sender, int tag) {
  for (size_t i = 0; i < size; ++i) bytes[i] = content(sender, tag, i);
}

static inline int is_filled(const char* bytes, size_t size, int sender, int tag) {
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != content(sender, tag, i)) return 0;
  }
  note(bytes, size < 4096 ? size : 4096);
  return 1;
}

#endif
