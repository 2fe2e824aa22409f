/*
 * test_copy.c: a first copy from messages made by hand: list, tables, files.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "copy_file.h"
#include "copy_messages.h"
#include "log.h"
#include "unit.h"

static char path[100];
static SluiceAgent agent;

/* ---- a file with a list ---- */

typedef struct Setting
{
	SluiceReplica *replica;
	SluiceCopyList list;
	SluiceProgress progress;
	SluiceCopyTable copy;
} Setting;

static void
begin(Setting *setting)
{
	SluiceOrigin origin;

	sluice_replica_remove(path);
	CU_ASSERT_EQUAL_FATAL(sluice_copy_file_open(&agent, path, &setting->replica), SLUICE_OK);
	CU_ASSERT_EQUAL(setting->replica->stage, SLUICE_STAGE_EMPTY);
	CU_ASSERT_PTR_NULL(setting->replica->checkpoint);
	sluice_copy_list_init(&setting->list);
	build_list();
	CU_ASSERT_TRUE_FATAL(sluice_copy_list_decode(&setting->list, message.data, message.length));
	origin = setting->list.origin;
	origin.shard = agent.config.shard;
	CU_ASSERT_EQUAL(sluice_copy_file_begin(setting->replica), SLUICE_OK);
	CU_ASSERT_EQUAL(sluice_replica_begin(setting->replica), SLUICE_OK);
	CU_ASSERT_EQUAL(sluice_replica_set_origin(setting->replica, &origin, "[]"), SLUICE_OK);
	CU_ASSERT_EQUAL(sluice_replica_set_list(setting->replica, &setting->list.placed), SLUICE_OK);
	CU_ASSERT_EQUAL(sluice_copy_list_store(setting->replica, &setting->list), SLUICE_OK);
	CU_ASSERT_EQUAL(sluice_replica_set_stage(setting->replica, SLUICE_STAGE_COPYING), SLUICE_OK);
	sluice_copy_list_assign_names(setting->replica, &setting->list);
	sluice_progress_start(&setting->progress, false, sluice_agent_clock());
	sluice_copy_table_init(&setting->copy, setting->replica, &setting->list, &setting->progress);
}

static void
end(Setting *setting)
{
	if (setting->replica->in_transaction)
		CU_ASSERT_EQUAL(sluice_replica_commit(setting->replica, NULL), SLUICE_OK);
	sluice_copy_table_release(&setting->copy);
	sluice_copy_list_release(&setting->list);
	sluice_replica_close(setting->replica);
}

static void
take_all(Setting *setting)
{
	uint32_t	oids[10];

	while (sluice_copy_list_take(&setting->list, 1, oids, 10) > 0)
		;
}

static int64_t
number(SluiceReplica *replica, const char *sql)
{
	sqlite3_stmt *statement;
	int64_t		result = INT64_MIN;

	if (sqlite3_prepare_v2(replica->db, sql, -1, &statement, NULL) != SQLITE_OK)
		return result;
	if (sqlite3_step(statement) == SQLITE_ROW)
		result = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return result;
}

/* ---- tests ---- */

static void
lists(void)
{
	SluiceCopyList list;
	uint32_t	oids[10];

	sluice_copy_list_init(&list);
	build_list();
	CU_ASSERT_TRUE_FATAL(sluice_copy_list_decode(&list, message.data, message.length));
	CU_ASSERT_EQUAL(list.origin.system_id, UINT64_C(7500000000000000001));
	CU_ASSERT_EQUAL(list.origin.timeline, 3);
	CU_ASSERT_EQUAL(list.origin.timestamps, 1);
	CU_ASSERT_EQUAL(list.origin.numerics, 0);
	CU_ASSERT_STRING_EQUAL(list.origin.replica_version, "4abcde");
	CU_ASSERT_STRING_EQUAL(list.publications, "[\"p\"]");
	CU_ASSERT_EQUAL(list.placed.low.major, 1000);
	CU_ASSERT_EQUAL(list.placed.high, 2000);
	CU_ASSERT_EQUAL(list.placed.nxids, 2);
	CU_ASSERT_TRUE(list.count == 4 && list.waiting == 3 && list.done == 1);
	CU_ASSERT_EQUAL(list.items[0].oid, A);	/* the largest */
	CU_ASSERT_EQUAL(sluice_copy_list_find(&list, B)->rows, 81);	/* a guess */
	CU_ASSERT_PTR_NULL(sluice_copy_list_find(&list, 1));
	CU_ASSERT_EQUAL(sluice_copy_list_take(&list, 1, oids, 10), 2);
	CU_ASSERT_EQUAL(sluice_copy_list_take(&list, 1, oids + 2, 10), 1);
	CU_ASSERT_EQUAL(sluice_copy_list_take(&list, 1, oids + 3, 10), 0);
	sluice_copy_list_give_back(&list, oids + 1, 2);
	CU_ASSERT_EQUAL(list.waiting, 2);
	CU_ASSERT_EQUAL(sluice_copy_list_take(&list, 1, oids, 1), 1);
	sluice_copy_list_release(&list);

	for (size_t n = 0; n < message.length; n++)
	{
		char	   *exact = malloc(n + 1);

		memcpy(exact, message.data, n);
		sluice_copy_list_init(&list);
		CU_ASSERT_FALSE(sluice_copy_list_decode(&list, exact, n));
		sluice_copy_list_release(&list);
		free(exact);
	}
}

static void
batches(void)
{
	SluiceCopyList list;
	uint32_t	oids[200];
	size_t		n;

	sluice_copy_list_init(&list);
	sluice_buffer_reset(&message);
	sluice_wire_put_u64(&message, 1);
	sluice_wire_put_u32(&message, 1);
	sluice_wire_put_string(&message, "00");
	put_placed(1, 2);
	sluice_wire_put_u32(&message, 3000);
	for (uint32_t i = 0; i < 3000; i++)
		put_item(i + 1, "t", 1, i < 3 ? INT64_C(1000000000) : 100, NULL);
	sluice_wire_put_u8(&message, 0);
	sluice_wire_put_u8(&message, 0);
	sluice_wire_put_string(&message, "[]");
	CU_ASSERT_TRUE_FATAL(sluice_copy_list_decode(&list, message.data, message.length));
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(sluice_copy_list_take(&list, 4, oids, 200), 1);
	CU_ASSERT_EQUAL(sluice_copy_list_take(&list, 4, oids, 200), 200);
	CU_ASSERT_EQUAL(list.waiting, 2797);
	for (int calls = 0; list.waiting > 0; calls++)
	{
		n = sluice_copy_list_take(&list, 4, oids, 200);
		CU_ASSERT_TRUE_FATAL(n > 0 && calls < 60);
		CU_ASSERT_TRUE(n <= list.waiting + n);
		if (list.waiting + n < 8)
			CU_ASSERT_EQUAL(n, 1);	/* the last ones are shared */
	}
	sluice_copy_list_release(&list);
}

static void
tables(void)
{
	Setting		setting;
	SluiceTable a = small_table(A, "a");
	SluiceTable b = small_table(B, "b");
	SluiceReplicaTable *table;

	begin(&setting);
	take_all(&setting);
	CU_ASSERT_EQUAL(send_header(&setting.copy, &a), SLUICE_OK);
	CU_ASSERT_EQUAL(send_rows(&setting.copy, &a, 1, 10), SLUICE_OK);
	CU_ASSERT_EQUAL(send_rows(&setting.copy, &a, 100, 5), SLUICE_OK);
	CU_ASSERT_FALSE(sluice_replica_find(setting.replica, A)->copied);
	CU_ASSERT_EQUAL(send_end(&setting.copy, A, 15), SLUICE_OK);
	CU_ASSERT_EQUAL(send_header(&setting.copy, &b), SLUICE_OK);
	CU_ASSERT_EQUAL(send_end(&setting.copy, B, 0), SLUICE_OK);
	CU_ASSERT_EQUAL(send_gone(&setting.copy, C), SLUICE_OK);
	CU_ASSERT_EQUAL(setting.list.done, setting.list.count);
	CU_ASSERT_EQUAL(setting.progress.rows, 15);
	CU_ASSERT_EQUAL(setting.progress.tables_done, 3);

	table = sluice_replica_find(setting.replica, A);
	CU_ASSERT_TRUE(table->copied && table->integer_key);
	CU_ASSERT_PTR_NOT_NULL_FATAL(table->placed);
	CU_ASSERT_TRUE(table->placed->low.major == 1100 && table->placed->high == 2100);
	CU_ASSERT_TRUE(table->placed->xmin == 700 && table->placed->nxids == 2);
	CU_ASSERT_EQUAL(number(setting.replica, "SELECT count(*) FROM a"), 15);
	CU_ASSERT_EQUAL(number(setting.replica, "SELECT sum(id) FROM a"), 55 + 510);
	CU_ASSERT_EQUAL(number(setting.replica, "SELECT count(v) FROM a"), 9);
	/* 1100 in base 36 is "uk" */
	CU_ASSERT_EQUAL(number(setting.replica, "SELECT count(*) FROM a WHERE \"_0_version\" = '1uk'"),
					15);
	CU_ASSERT_EQUAL(number(setting.replica, "SELECT count(*) FROM b"), 0);
	CU_ASSERT_EQUAL(number(setting.replica, "SELECT count(*) FROM \"_sluice.copy\""), 0);
	table = sluice_replica_find(setting.replica, C);
	CU_ASSERT_TRUE(table->copied && table->placed == NULL);
	CU_ASSERT_STRING_EQUAL(table->problem, SLUICE_PROBLEM_GONE);
	end(&setting);
}

static void
broken_protocol(void)
{
	Setting		setting;
	SluiceTable a = small_table(A, "a");
	SluiceTable b = small_table(B, "b");

	begin(&setting);
	/* not asked for */
	CU_ASSERT_EQUAL(send_header(&setting.copy, &a), SLUICE_RETRY);
	CU_ASSERT_EQUAL(send_gone(&setting.copy, A), SLUICE_RETRY);
	take_all(&setting);
	CU_ASSERT_EQUAL(send_rows(&setting.copy, &a, 1, 1), SLUICE_RETRY);
	CU_ASSERT_EQUAL(send_end(&setting.copy, A, 0), SLUICE_RETRY);
	CU_ASSERT_EQUAL(sluice_copy_table_message(&setting.copy, "", 0), SLUICE_RETRY);
	CU_ASSERT_EQUAL(sluice_copy_table_message(&setting.copy, "?", 1), SLUICE_RETRY);
	CU_ASSERT_EQUAL(sluice_copy_table_message(&setting.copy, "K12345678", 9), SLUICE_OK);

	CU_ASSERT_EQUAL(send_header(&setting.copy, &a), SLUICE_OK);
	CU_ASSERT_EQUAL(send_header(&setting.copy, &b), SLUICE_RETRY);
	CU_ASSERT_EQUAL(send_end(&setting.copy, B, 0), SLUICE_RETRY);
	CU_ASSERT_EQUAL(send_end(&setting.copy, A, 1), SLUICE_RETRY);
	CU_ASSERT_EQUAL(send_gone(&setting.copy, B), SLUICE_RETRY);
	/* half a frame, a frame of another kind */
	CU_ASSERT_EQUAL(sluice_copy_table_message(&setting.copy, "W\5\0\0\0I12", 8), SLUICE_RETRY);
	CU_ASSERT_EQUAL(sluice_copy_table_message(&setting.copy, "W\0\0\0\0A", 6), SLUICE_RETRY);
	/* another form of the table */
	b.fingerprint = 7;
	CU_ASSERT_NOT_EQUAL(send_rows(&setting.copy, &b, 1, 1), SLUICE_OK);
	end(&setting);
}

static void
lost_connection(void)
{
	Setting		setting;
	SluiceTable a = small_table(A, "a");
	uint32_t	oids[] = {A};

	begin(&setting);
	take_all(&setting);
	CU_ASSERT_EQUAL(send_header(&setting.copy, &a), SLUICE_OK);
	CU_ASSERT_EQUAL(send_rows(&setting.copy, &a, 1, 10), SLUICE_OK);
	CU_ASSERT_EQUAL(sluice_copy_table_abandon(&setting.copy), SLUICE_OK);
	sluice_copy_list_give_back(&setting.list, oids, 1);
	CU_ASSERT_PTR_NULL(sluice_replica_find(setting.replica, A));
	CU_ASSERT_EQUAL(number(setting.replica, "SELECT count(*) FROM a"), INT64_MIN);
	CU_ASSERT_EQUAL(setting.progress.rows, 0);

	/* another connection copies it from the beginning */
	take_all(&setting);
	CU_ASSERT_EQUAL(send_header(&setting.copy, &a), SLUICE_OK);
	CU_ASSERT_EQUAL(send_rows(&setting.copy, &a, 1, 7), SLUICE_OK);
	CU_ASSERT_EQUAL(send_end(&setting.copy, A, 7), SLUICE_OK);
	CU_ASSERT_EQUAL(number(setting.replica, "SELECT count(*) FROM a"), 7);
	end(&setting);
}

static void
given_up(void)
{
	Setting		setting;
	SluiceTable a = small_table(A, "a");
	SluiceTableProblem problem = {A, "a row is too large"};

	begin(&setting);
	take_all(&setting);
	CU_ASSERT_EQUAL(send_header(&setting.copy, &a), SLUICE_OK);
	sluice_buffer_reset(&message);
	sluice_wire_put_u8(&message, 'W');
	put_row(&a, 1, "x");
	sluice_wire_table_problem(&message, &problem);
	CU_ASSERT_EQUAL(send(&setting.copy), SLUICE_OK);
	CU_ASSERT_EQUAL(send_end(&setting.copy, A, 1), SLUICE_OK);
	CU_ASSERT_STRING_EQUAL(sluice_replica_find(setting.replica, A)->problem, problem.problem);
	CU_ASSERT_EQUAL(number(setting.replica, "SELECT count(*) FROM a"), 0);
	end(&setting);
}

/* Tables that were renamed between the list and their turn. */
static void
renamed(void)
{
	Setting		setting;
	SluiceTable a = small_table(A, "a");
	SluiceTable b = small_table(B, "a");	/* was b; a is x by now, says the stream later */
	SluiceTable c = small_table(C, "new name");

	begin(&setting);
	take_all(&setting);
	CU_ASSERT_EQUAL(send_header(&setting.copy, &a), SLUICE_OK);
	CU_ASSERT_EQUAL(send_end(&setting.copy, A, 0), SLUICE_OK);
	CU_ASSERT_EQUAL(send_header(&setting.copy, &b), SLUICE_OK);
	CU_ASSERT_EQUAL(send_end(&setting.copy, B, 0), SLUICE_OK);
	CU_ASSERT_EQUAL(send_header(&setting.copy, &c), SLUICE_OK);
	CU_ASSERT_EQUAL(send_end(&setting.copy, C, 0), SLUICE_OK);
	CU_ASSERT_STRING_EQUAL(sluice_replica_find(setting.replica, A)->name, "a");
	CU_ASSERT_STRING_EQUAL(sluice_replica_find(setting.replica, B)->name, "a~4006");
	CU_ASSERT_STRING_EQUAL(sluice_replica_find(setting.replica, C)->name, "new name");
	end(&setting);
}

static void
files(void)
{
	Setting		setting;
	SluiceTable a = small_table(A, "a");
	SluiceReplica *replica;
	SluiceCopyList list;
	SluicePosition position = {{1000, 0}, 0, 0, 0};

	begin(&setting);
	take_all(&setting);
	CU_ASSERT_EQUAL(send_header(&setting.copy, &a), SLUICE_OK);
	CU_ASSERT_EQUAL(send_rows(&setting.copy, &a, 1, 3), SLUICE_OK);
	CU_ASSERT_EQUAL(send_end(&setting.copy, A, 3), SLUICE_OK);
	end(&setting);

	/* in the same run of the system it goes on */
	CU_ASSERT_EQUAL_FATAL(sluice_copy_file_open(&agent, path, &replica), SLUICE_OK);
	CU_ASSERT_EQUAL(replica->stage, SLUICE_STAGE_COPYING);
	sluice_copy_list_init(&list);
	CU_ASSERT_EQUAL(sluice_copy_list_load(replica, &list), SLUICE_OK);
	CU_ASSERT_TRUE(list.count == 2 && list.waiting == 2 && list.done == 0);
	CU_ASSERT_PTR_NOT_NULL(sluice_copy_list_find(&list, B));
	sluice_copy_list_release(&list);
	CU_ASSERT_EQUAL(number(replica, "SELECT count(*) FROM a"), 3);
	CU_ASSERT_EQUAL(sluice_copy_file_sync(replica), SLUICE_OK);
	sluice_replica_close(replica);

	/* synced: in any */
	CU_ASSERT_EQUAL_FATAL(sluice_copy_file_open(&agent, path, &replica), SLUICE_OK);
	CU_ASSERT_EQUAL(replica->stage, SLUICE_STAGE_COPYING);
	sqlite3_exec(replica->db, "UPDATE \"_sluice.copyRun\" SET boot = 'another'", NULL, NULL, NULL);
	sluice_replica_close(replica);

	/* written in another run without syncs: it begins anew */
	CU_ASSERT_EQUAL_FATAL(sluice_copy_file_open(&agent, path, &replica), SLUICE_OK);
	CU_ASSERT_EQUAL(replica->stage, SLUICE_STAGE_EMPTY);
	sluice_replica_close(replica);

	/* a complete one is left alone */
	begin(&setting);
	CU_ASSERT_EQUAL(sluice_replica_commit(setting.replica, NULL), SLUICE_OK);
	CU_ASSERT_EQUAL(sluice_copy_file_complete(setting.replica, &position), SLUICE_OK);
	end(&setting);
	CU_ASSERT_EQUAL_FATAL(sluice_copy_file_open(&agent, path, &replica), SLUICE_OK);
	CU_ASSERT_EQUAL(replica->stage, SLUICE_STAGE_CATCHING_UP);
	CU_ASSERT_EQUAL(replica->position.watermark.major, 1000);
	CU_ASSERT_EQUAL(number(replica, "SELECT count(*) FROM \"_sluice.copy\""), INT64_MIN);
	sluice_replica_close(replica);

	/* one of another shard is not ours */
	agent.config.shard = (char *) "other";
	CU_ASSERT_EQUAL_FATAL(sluice_copy_file_open(&agent, path, &replica), SLUICE_OK);
	CU_ASSERT_EQUAL(replica->stage, SLUICE_STAGE_EMPTY);
	sluice_replica_close(replica);
	agent.config.shard = (char *) "s";

	/* nor one that is damaged */
	CU_ASSERT_EQUAL(truncate(path, 5000), 0);
	CU_ASSERT_EQUAL_FATAL(sluice_copy_file_open(&agent, path, &replica), SLUICE_OK);
	CU_ASSERT_EQUAL(replica->stage, SLUICE_STAGE_EMPTY);
	sluice_replica_close(replica);
}

static void
progress_lines(void)
{
	SluiceProgress progress;
	char		text[200];

	sluice_progress_start(&progress, false, 1000000);
	progress.tables = 3;
	progress.rows_expected = 4000000;
	sluice_progress_format(&progress, 1000000, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "copying: 0 of 3 tables, 0 of about 4,000,000 rows (0 %), 0.0 MB, "
						   "0 rows/s");
	progress.tables_done = 1;
	progress.rows = 1000000;
	progress.bytes = 123456789;
	sluice_progress_format(&progress, 11000000, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "copying: 1 of 3 tables, 1,000,000 of about 4,000,000 rows (25 %), "
						   "123.5 MB, 100,000 rows/s, about 0:30 left");
	progress.rows = 5000000;	/* more than was thought */
	sluice_progress_format(&progress, 11000000, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "copying: 1 of 3 tables, 5,000,000 of about 5,000,000 rows "
						   "(100 %), 123.5 MB, 500,000 rows/s");
}

static const UnitTest tests[] = {
	{"the list of tables", lists},
	{"large tables alone, small ones together", batches},
	{"tables with their snapshots", tables},
	{"messages that may not come", broken_protocol},
	{"a lost connection's table begins anew", lost_connection},
	{"a table that the server gives up is emptied", given_up},
	{"tables renamed meanwhile", renamed},
	{"which files are gone on with", files},
	{"progress", progress_lines},
};

int
main(void)
{
	int			result;

	snprintf(path, sizeof(path), "/tmp/sluice-test-copy-%ld.db", (long) getpid());
	agent.config.shard = (char *) "s";
	agent.config.name = (char *) "r";
	agent.wake_fd = -1;
	agent.lock_fd = -1;
	sluice_buffer_init(&message, &sluice_malloc_allocator);
	result = unit_main("copy", tests, sizeof(tests) / sizeof(tests[0]));
	sluice_replica_remove(path);
	sluice_buffer_release(&message);
	return result;
}
