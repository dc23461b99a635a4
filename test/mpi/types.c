/* Derived types of every constructor, at the sender, at the receiver and at both; packed by hand; across sizes
 * that go at once and that are granted. */
#include <stddef.h>
#include <string.h>

#include "ranks.h"

static void to_the_right(const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count,
                         MPI_Datatype in_type, int tag) {
  MPI_Status status;
  MPI_Sendrecv(out, out_count, out_type, right_of(rank), tag, in, in_count, in_type, left_of(rank), tag,
               MPI_COMM_WORLD, &status);
  EXPECT(status.MPI_SOURCE == left_of(rank) && status.MPI_TAG == tag);
}

static void columns_become_rows(int rows) {
  enum { kColumns = 40 };
  int* matrix = malloc(sizeof *matrix * (size_t)rows * kColumns);
  int* row = malloc(sizeof *row * (size_t)rows);
  MPI_Datatype column;
  MPI_Type_vector(rows, 1, kColumns, MPI_INT, &column);
  MPI_Type_commit(&column);
  for (int i = 0; i < rows * kColumns; ++i) matrix[i] = rank * 1000000 + i;
  to_the_right(matrix + 3, 1, column, row, rows, MPI_INT, 1);
  for (int i = 0; i < rows; ++i) EXPECT(row[i] == left_of(rank) * 1000000 + i * kColumns + 3);
  /* And rows become columns: the neighbours' own, the others' numbers stay. */
  for (int i = 0; i < rows; ++i) row[i] = rank * 7 + i;
  to_the_right(row, rows, MPI_INT, matrix + 5, 1, column, 2);
  for (int i = 0; i < rows * kColumns; ++i) {
    const int expected = i % kColumns == 5 ? left_of(rank) * 7 + i / kColumns : rank * 1000000 + i;
    EXPECT(matrix[i] == expected);
  }
  note(matrix, sizeof *matrix * (size_t)rows * kColumns);
  MPI_Type_free(&column);
  free(matrix);
  free(row);
}

struct Particle {
  char kind;
  double place[3];
  int number;
  short spin[2];
};

static MPI_Datatype particle_type(void) {
  const int lengths[] = {1, 3, 1, 2};
  const MPI_Aint places[] = {offsetof(struct Particle, kind), offsetof(struct Particle, place),
                             offsetof(struct Particle, number), offsetof(struct Particle, spin)};
  const MPI_Datatype parts[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT, MPI_SHORT};
  MPI_Datatype bare, type;
  MPI_Type_create_struct(4, lengths, places, parts, &bare);
  MPI_Type_create_resized(bare, 0, sizeof(struct Particle), &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&bare);
  return type;
}

static void structures_with_gaps(int count) {
  struct Particle* all = calloc((size_t)count * 2, sizeof *all);
  struct Particle* came = all + count;
  MPI_Datatype type = particle_type();
  for (int i = 0; i < count; ++i) {
    all[i] = (struct Particle){(char)(i + rank), {i * 0.1, rank * 0.3, i / 7.0}, i * 3 + rank, {(short)i, (short)-i}};
  }
  to_the_right(all, count, type, came, count, type, 3);
  const int left = left_of(rank);
  for (int i = 0; i < count; ++i) {
    EXPECT(came[i].kind == (char)(i + left) && came[i].number == i * 3 + left);
    EXPECT(came[i].place[0] == i * 0.1 && came[i].place[1] == left * 0.3 && came[i].place[2] == i / 7.0);
    EXPECT(came[i].spin[0] == (short)i && came[i].spin[1] == (short)-i);
  }
  MPI_Type_free(&type);
  free(all);
}

static void a_box_of_a_cube(int side) {
  const int whole[] = {side, side, side}, box[] = {side / 2, side / 3, side / 4}, from[] = {1, 2, 3};
  const size_t cells = (size_t)side * (size_t)side * (size_t)side;
  double* out = malloc(cells * sizeof *out);
  double* in = calloc(cells, sizeof *in);
  MPI_Datatype c_order, fortran_order;
  MPI_Type_create_subarray(3, whole, box, from, MPI_ORDER_C, MPI_DOUBLE, &c_order);
  MPI_Type_create_subarray(3, whole, box, from, MPI_ORDER_FORTRAN, MPI_DOUBLE, &fortran_order);
  MPI_Type_commit(&c_order);
  MPI_Type_commit(&fortran_order);
  for (size_t i = 0; i < cells; ++i) out[i] = rank + (double)i / 3;
  to_the_right(out, 1, c_order, in, 1, c_order, 4);
  for (size_t i = 0; i < cells; ++i) {
    const int at[] = {(int)(i / (size_t)(side * side)), (int)(i / (size_t)side) % side, (int)i % side};
    int inside = 1;
    for (int d = 0; d < 3; ++d) inside = inside && at[d] >= from[d] && at[d] < from[d] + box[d];
    EXPECT(in[i] == (inside ? left_of(rank) + (double)i / 3 : 0));
  }
  to_the_right(out, 1, c_order, in, 1, fortran_order, 5);
  note(in, cells * sizeof *in);
  MPI_Type_free(&c_order);
  MPI_Type_free(&fortran_order);
  free(out);
  free(in);
}

static void blocks_here_and_there(void) {
  enum { kBlocks = 300 };
  static int lengths[kBlocks], at[kBlocks], out[kBlocks * 20], in[kBlocks * 20];
  int sum = 0;
  for (int i = 0; i < kBlocks; ++i) {
    lengths[i] = i % 9;
    at[i] = (kBlocks - 1 - i) * 20 + i % 3;  /* from the end to the start */
    sum += lengths[i];
  }
  MPI_Datatype type;
  MPI_Type_indexed(kBlocks, lengths, at, MPI_INT, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < kBlocks * 20; ++i) out[i] = rank * 10000 + i;
  to_the_right(out, 1, type, in, sum, MPI_INT, 6);
  for (int i = 0, came = 0; i < kBlocks; ++i) {
    for (int j = 0; j < lengths[i]; ++j) EXPECT(in[came++] == left_of(rank) * 10000 + at[i] + j);
  }
  note(in, (size_t)sum * sizeof *in);
  MPI_Type_free(&type);
}

static void packed_by_hand(void) {
  char bag[4096];
  double fractions[100];
  int place = 0, number = rank + 42;
  for (int i = 0; i < 100; ++i) fractions[i] = rank + i / 9.0;
  MPI_Pack(&number, 1, MPI_INT, bag, sizeof bag, &place, MPI_COMM_WORLD);
  MPI_Pack(fractions, 100, MPI_DOUBLE, bag, sizeof bag, &place, MPI_COMM_WORLD);
  to_the_right(bag, place, MPI_PACKED, bag + 2048, 2048, MPI_PACKED, 7);
  place = 0;
  MPI_Unpack(bag + 2048, 2048, &place, &number, 1, MPI_INT, MPI_COMM_WORLD);
  MPI_Unpack(bag + 2048, 2048, &place, fractions, 100, MPI_DOUBLE, MPI_COMM_WORLD);
  EXPECT(number == left_of(rank) + 42);
  for (int i = 0; i < 100; ++i) EXPECT(fractions[i] == left_of(rank) + i / 9.0);
}

static void part_of_a_type_arrives(void) {
  int out[7], in[40], elements, whole;
  MPI_Datatype pair;
  MPI_Status status;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  for (int i = 0; i < 7; ++i) out[i] = rank + i;
  MPI_Sendrecv(out, 7, MPI_INT, right_of(rank), 8, in, 20, pair, left_of(rank), 8, MPI_COMM_WORLD, &status);
  MPI_Get_elements(&status, pair, &elements);
  MPI_Get_count(&status, pair, &whole);
  EXPECT(elements == 7 && whole == MPI_UNDEFINED);
  for (int i = 0; i < 7; ++i) EXPECT(in[i] == left_of(rank) + i);
  MPI_Type_free(&pair);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  static const int kSizes[] = {4, 500, 60000};
  for (int i = 0; i < 3; ++i) columns_become_rows(kSizes[i]);
  for (int i = 0; i < 3; ++i) structures_with_gaps(kSizes[i]);
  a_box_of_a_cube(12);
  a_box_of_a_cube(72);
  blocks_here_and_there();
  packed_by_hand();
  part_of_a_type_arrives();
  end("derived types");
  return 0;
}
