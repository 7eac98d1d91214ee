/* SPDX-License-Identifier: Apache-2.0 */
/* Prints docs/ops.md: the op table (lib/ops/ops_*.def), whether the CPU device has a kernel for
 * each op, and the omissions. */
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "task/kernels/engine/kernel_table.h"

struct row {
	const char *op, *in, *out, *attrs, *shape;
};
#define OP(name, in, out, attrs, flags, shape) {#name, in, out, attrs, #shape},
static const struct row control[] = {
#include "lib/ops/ops_control.def"
};
static const struct row array[] = {
#include "lib/ops/ops_array.def"
};
static const struct row math[] = {
#include "lib/ops/ops_math.def"
};
static const struct row nn[] = {
#include "lib/ops/ops_nn.def"
};
static const struct row randoms[] = {
#include "lib/ops/ops_random.def"
};
static const struct row state[] = {
#include "lib/ops/ops_state.def"
};
static const struct row train[] = {
#include "lib/ops/ops_train.def"
};
static const struct row flow[] = {
#include "lib/ops/ops_flow.def"
};
static const struct row data[] = {
#include "lib/ops/ops_data.def"
};
static const struct row sparse[] = {
#include "lib/ops/ops_sparse.def"
};
static const struct row io[] = {
#include "lib/ops/ops_io.def"
};
static const struct row boosted_trees[] = {
#include "lib/ops/ops_boosted_trees.def"
};
static const struct row contrib[] = {
#include "lib/ops/ops_contrib.def"
};
#undef OP

static const struct section {
	const char *title, *file;
	const struct row *rows;
	unsigned count;
} sections[] = {
#define SECTION(title, file, rows)                                                                 \
	{                                                                                          \
		title, "lib/ops/" file, rows, MU_COUNT(rows)                                       \
	}
    SECTION("Structure and control flow", "ops_control.def", control),
    SECTION("Shapes, copies and indices", "ops_array.def", array),
    SECTION("Mathematics", "ops_math.def", math),
    SECTION("Neural networks", "ops_nn.def", nn),
    SECTION("Random numbers", "ops_random.def", randoms),
    SECTION("Variables", "ops_state.def", state),
    SECTION("Optimizers", "ops_train.def", train),
    SECTION("Queues, accumulators and other holders of tensors", "ops_flow.def", flow),
    SECTION("Datasets and iterators", "ops_data.def", data),
    SECTION("Sparse tensors and lookup tables", "ops_sparse.def", sparse),
    SECTION("Files, strings and summaries", "ops_io.def", io),
    SECTION("Boosted trees of TensorFlow 1's estimators", "ops_boosted_trees.def", boosted_trees),
    SECTION("tf.contrib of TensorFlow 1", "ops_contrib.def", contrib),
};

/* Ops that graph passes replace by other nodes need no kernel. */
static const char *const inlined[] = {
#define INLINED(op, expand) #op,
#include "lib/inline/inlined.def"
#undef INLINED
};

static bool can_run(const char *op)
{
	for (unsigned i = 0; i < MU_COUNT(inlined); i++)
		if (strcmp(inlined[i], op) == 0)
			return true;
	return cpu_kernel_find(op) != NULL;
}

static unsigned with_kernel(const struct section *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->count; i++)
		n += can_run(s->rows[i].op);
	return n;
}

/* Prints the text of a row in a table cell, and escapes characters that end the line or the cell.
 */
static void cell(const char *text)
{
	printf(" %s", *text ? "`" : "");
	for (const char *s = text; *s; s++)
		if (*s == '\n')
			fputs("\\n", stdout);
		else if (*s == '|')
			fputs("\\|", stdout);
		else
			putchar(*s);
	printf("%s |", *text ? "`" : "");
}

/* The mark of an op for the part of its output shapes that is inferred at graph construction. */
static const char *shape_mark(const struct row *r)
{
	if (strcmp(r->shape, "shape_unknown") == 0)
		return " ◇";
	return strcmp(r->shape, "NULL") || strchr(r->out, '[') ? " ◆" : "";
}

static void print_section(const struct section *s)
{
	unsigned have = with_kernel(s);
	const char *before = "";

	printf("\n## %s\n\n`%s`: %u of %u have a kernel.\n", s->title, s->file, have, s->count);
	if (have)
		printf("\n| op | inputs | outputs | attributes |\n|---|---|---|---|\n");
	for (unsigned i = 0; i < s->count; i++) {
		const struct row *r = &s->rows[i];
		if (!can_run(r->op))
			continue;
		printf("| %s%s |", r->op, shape_mark(r));
		cell(r->in);
		cell(r->out);
		cell(r->attrs);
		printf("\n");
	}
	if (have == s->count)
		return;
	printf("\nKnown, without a kernel: ");
	for (unsigned i = 0; i < s->count; i++)
		if (!can_run(s->rows[i].op)) {
			printf("%s%s", before, s->rows[i].op);
			before = ", ";
		}
	printf(".\n");
}

/* Types for which TensorFlow has a CPU kernel and Muster has none: a reason, followed by its ops.
 */
static int print_left_out(const char *path)
{
	char line[512];
	FILE *f = fopen(path, "r");

	if (!f)
		return fprintf(stderr, "cannot read %s\n", path), 1;
	printf(
	    "\n## Unsupported ops and types\n\n"
	    "Not in the table are datasets of LMDB, SQL and snapshot files, CSR sparse matrices, "
	    "quantized layers, statistics aggregators, the boosted trees and tensor forests of "
	    "tf.contrib, PeriodicResample, FusedConv2DBiasActivation, ops of TPUs and of XLA, "
	    "and the types float8 and int4: they need libraries or devices that a task does not "
	    "have, or no program on parameter servers was found that uses them.\n\n"
	    "The types below have a CPU kernel in TensorFlow 2.15 and here none, or one with "
	    "other results. `tests/compat/types_diff.py` runs each op in each type that "
	    "TensorFlow registers.\n");
	while (fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '>')
			printf("\n%s\n\n", line + 2);
		else if (line[0] != '#')
			printf("* %s\n", line);
	}
	fclose(f);
	return 0;
}

int main(void)
{
	unsigned have = 0, known = 0;

	for (unsigned i = 0; i < MU_COUNT(sections); i++) {
		have += with_kernel(&sections[i]);
		known += sections[i].count;
	}
	printf(
	    "# Ops\n\n"
	    "Made by `make docs` from the op table and the kernels; do not edit.\n\n"
	    "%u ops are known, %u of them have a kernel or become nodes that have (calls, branches "
	    "and "
	    "loops of functions). A known op may travel in a graph and be "
	    "placed; a step that needs an op without a kernel fails with the op's name.\n\n"
	    "An argument is `name:type`. A type is an attribute of the op (`T`), a fixed one, "
	    "`N*T` for N tensors, `list(T)` for one tensor for each type in T, or `ref(T)` for a "
	    "reference to a variable. Behind it stands the shape, if it is known: `[*b,n]` has any "
	    "dimensions and a last one named n. An attribute is `name:kind`, with the allowed "
	    "values in braces (`index`, `complex`, `floating`, `real` and `number` stand for "
	    "several "
	    "types), the minimum after `>=` and the default after `=`. "
	    "◆ marks ops whose output shapes are known while a graph is built, ◇ ops whose output "
	    "shapes are unknown then, as in TensorFlow.\n",
	    known, have);
	for (unsigned i = 0; i < MU_COUNT(sections); i++)
		print_section(&sections[i]);
	return print_left_out("tests/compat/types_left_out.txt");
}
