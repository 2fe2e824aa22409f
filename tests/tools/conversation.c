/*
 * conversation.c: speaks docs/protocol.md to a server and prints what it gets,
 * a line each, for tests.
 *
 *   conversation [--acks] [--slow MS] [--until PATTERN] [--extended]
 *                [--then SQL] CONNINFO 'CALL …'
 *
 * It ends at the server's CopyDone, at an error (printed with its SQLSTATE),
 * or after a line that contains PATTERN; then it sends CopyDone itself.
 * --acks: every commit is acknowledged as applied and durable.
 * --slow: so many ms pass between two messages read.
 * --extended: the call is made by the extended query protocol.
 * --then: a query that gives one value, run in the same session afterwards.
 * Exit status: 0, or 1 after an error.
 */
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libpq-fe.h>

#include "memory.h"
#include "wire.h"

static const char *until;
static bool acks;
static bool found;
static PGconn *conn;
static SluiceBuffer stream;		/* bytes of frames that are not whole yet */
static SluiceWatermark applied;

static void __attribute__((format(printf, 1, 2)))
say(const char *format,...)
{
	char		line[4096];
	va_list		args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	puts(line);
	fflush(stdout);
	if (until != NULL && strstr(line, until) != NULL)
		found = true;
}

static const char *
mark(SluiceWatermark watermark)
{
	static char texts[4][SLUICE_WATERMARK_TEXT_MAX];
	static int	next;
	char	   *text = texts[next++ % 4];

	sluice_watermark_format(watermark, text);
	return text;
}

static void
append_value(char *line, size_t size, SluiceCursor *cursor)
{
	SluiceValue value;
	size_t		at = strlen(line);

	if (!sluice_cursor_value(cursor, &value))
		return;
	switch (value.class)
	{
		case SLUICE_NULL:
			snprintf(line + at, size - at, " null");
			break;
		case SLUICE_UNCHANGED:
			snprintf(line + at, size - at, " unchanged");
			break;
		case SLUICE_INTEGER:
			snprintf(line + at, size - at, " %" PRId64, value.u.integer);
			break;
		case SLUICE_REAL:
			snprintf(line + at, size - at, " %.17g", value.u.real);
			break;
		case SLUICE_TEXT:
			snprintf(line + at, size - at, " '%.*s'",
					 (int) (value.u.bytes.size > 40 ? 40 : value.u.bytes.size), value.u.bytes.data);
			break;
		case SLUICE_BLOB:
			snprintf(line + at, size - at, " blob(%u)", value.u.bytes.size);
			break;
	}
}

static void
row(const SluiceFrame *frame)
{
	SluiceRowHead head;
	SluiceCursor values;
	char		line[2048];

	if (!sluice_wire_get_row(frame, &head, &values))
	{
		say("damaged row");
		return;
	}
	snprintf(line, sizeof(line), "%s %u old %d:",
			 frame->tag == SLUICE_TAG_INSERT ? "insert" :
			 frame->tag == SLUICE_TAG_UPDATE ? "update" : "delete",
			 head.table_oid, head.old);
	for (int i = 0; i < head.nold + head.nnew; i++)
		append_value(line, sizeof(line), &values);
	say("%s", line);
}

static void
acknowledge(bool reply)
{
	SluiceBuffer out;

	sluice_buffer_init(&out, &sluice_malloc_allocator);
	sluice_wire_put_u8(&out, 'A');
	sluice_wire_put_watermark(&out, applied);
	sluice_wire_put_watermark(&out, applied);
	sluice_wire_put_u64(&out, 0);
	sluice_wire_put_u8(&out, reply);
	if (PQputCopyData(conn, out.data, (int) out.length) < 0 || PQflush(conn) < 0)
		say("could not send: %s", PQerrorMessage(conn));
	sluice_buffer_release(&out);
}

static void
truncated(const SluiceFrame *frame)
{
	SluiceTruncate truncate;

	if (!sluice_wire_get_truncate(frame, &sluice_malloc_allocator, &truncate))
	{
		say("damaged truncate");
		return;
	}
	for (uint32_t i = 0; i < truncate.ntables; i++)
		say("truncate %u", truncate.table_oids[i]);
	free((void *) truncate.table_oids);
}

static void
frame_line(const SluiceFrame *frame)
{
	SluiceBegin begin;
	SluiceCommit commit;

	switch (frame->tag)
	{
		case SLUICE_TAG_BEGIN:
			if (sluice_wire_get_begin(frame, &begin))
				say("begin %s xid %" PRIu64, mark(begin.watermark), begin.xid);
			break;
		case SLUICE_TAG_COMMIT:
			if (sluice_wire_get_commit(frame, &commit))
			{
				applied = commit.watermark;
				say("commit %s", mark(commit.watermark));
				if (acks)
					acknowledge(false);
			}
			break;
		case SLUICE_TAG_INSERT:
		case SLUICE_TAG_UPDATE:
		case SLUICE_TAG_DELETE:
			row(frame);
			break;
		case SLUICE_TAG_TRUNCATE:
			truncated(frame);
			break;
		default:
			say("frame %c of %u bytes", frame->tag, frame->size);
	}
}

static void
frames(const char *data, size_t size)
{
	SluiceFrame frame;
	size_t		done = 0;

	sluice_buffer_append(&stream, data, size);
	while (!found && sluice_wire_frame(stream.data + done, stream.length - done, &frame) == SLUICE_WIRE_OK)
	{
		frame_line(&frame);
		done += frame.total;
	}
	memmove(stream.data, stream.data + done, stream.length - done);
	stream.length -= done;
}

static void
greeting(SluiceCursor *cursor)
{
	unsigned	version = sluice_cursor_u16(cursor);
	uint64_t	system = sluice_cursor_u64(cursor);
	unsigned	timeline = sluice_cursor_u32(cursor);
	int			switches = sluice_cursor_u16(cursor);
	char	   *lineage;

	for (int i = 0; i < switches; i++)
	{
		sluice_cursor_u32(cursor);
		sluice_cursor_u64(cursor);
	}
	lineage = sluice_cursor_string(cursor, &sluice_malloc_allocator);
	say("greeting version %u system %" PRIu64 " timeline %u lineage %s", version, system, timeline,
		lineage ? lineage : "?");
	free(lineage);
}

static void
snapshot(SluiceCursor *cursor, char *line, size_t size)
{
	uint64_t	xmin = sluice_cursor_u64(cursor);
	uint64_t	xmax = sluice_cursor_u64(cursor);
	uint32_t	n = sluice_cursor_u32(cursor);
	size_t		at;

	snprintf(line, size, "snapshot %" PRIu64 ":%" PRIu64 ":", xmin, xmax);
	for (uint32_t i = 0; i < n; i++)
	{
		at = strlen(line);
		snprintf(line + at, size - at, "%s%" PRIu64, i ? "," : "", sluice_cursor_u64(cursor));
	}
}

static void
list(SluiceCursor *cursor)
{
	char		line[1024];
	SluiceWatermark low;
	uint64_t	high;
	uint32_t	n;

	sluice_cursor_u64(cursor);
	sluice_cursor_u32(cursor);
	free(sluice_cursor_string(cursor, &sluice_malloc_allocator));
	snapshot(cursor, line, sizeof(line));
	low = sluice_cursor_watermark(cursor);
	high = sluice_cursor_u64(cursor);
	n = sluice_cursor_u32(cursor);
	say("list %s low %s high %" PRIX64 " tables %u", line, mark(low), high, n);
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	oid = sluice_cursor_u32(cursor);
		char	   *schema = sluice_cursor_string(cursor, &sluice_malloc_allocator);
		char	   *name = sluice_cursor_string(cursor, &sluice_malloc_allocator);
		int64_t		rows = (int64_t) sluice_cursor_u64(cursor);
		int64_t		bytes = (int64_t) sluice_cursor_u64(cursor);
		char	   *problem = sluice_cursor_string(cursor, &sluice_malloc_allocator);

		say("table %u %s.%s rows %" PRId64 " bytes %" PRId64 " problem %s", oid, schema, name, rows,
			bytes, problem ? problem : "-");
		free(schema);
		free(name);
		free(problem);
	}
}

static void
header(SluiceCursor *cursor)
{
	char		line[1024];
	SluiceTable table;
	size_t		used;
	SluiceWatermark low;
	uint32_t	oid = sluice_cursor_u32(cursor);

	if (!sluice_table_decode(cursor->at, (size_t) (cursor->end - cursor->at), &used,
							 &sluice_malloc_allocator, &table))
	{
		say("damaged header");
		return;
	}
	cursor->at += used;
	snapshot(cursor, line, sizeof(line));
	low = sluice_cursor_watermark(cursor);
	say("header %u %s.%s columns %u key %u %s low %s high %" PRIX64, oid, table.schema, table.name,
		table.ncolumns, table.nkey, line, mark(low), sluice_cursor_u64(cursor));
}

static void
message(const char *data, int size)
{
	SluiceCursor cursor;

	sluice_cursor_init(&cursor, data + 1, (size_t) size - 1);
	switch (data[0])
	{
		case 'W':
			frames(data + 1, (size_t) size - 1);
			return;
		case 'X':
			stream.length = 0;
			say("reset");
			return;
		case 'G':
			greeting(&cursor);
			return;
		case 'L':
			list(&cursor);
			return;
		case 'H':
			header(&cursor);
			return;
		case 'F':
			{
				uint32_t	oid = sluice_cursor_u32(&cursor);

				say("finished %u rows %" PRIu64, oid, sluice_cursor_u64(&cursor));
				return;
			}
		case 'N':
			say("gone %u", sluice_cursor_u32(&cursor));
			return;
		case 'K':
			sluice_cursor_u64(&cursor);
			if (cursor.at < cursor.end)
			{
				uint64_t	flush = sluice_cursor_u64(&cursor);
				uint64_t	decoded = sluice_cursor_u64(&cursor);
				SluiceWatermark sent = sluice_cursor_watermark(&cursor);

				say("keepalive flush %" PRIX64 " decoded %" PRIX64 " sent %s", flush, decoded, mark(sent));
				if (sluice_cursor_u8(&cursor))
					acknowledge(false);
			}
			else
				say("alive");
			return;
		default:
			say("unknown message %c", data[0]);
	}
}

static int
finish(void)
{
	PGresult   *result;
	int			status = 0;

	while ((result = PQgetResult(conn)) != NULL)
	{
		ExecStatusType what = PQresultStatus(result);

		if (what == PGRES_COPY_BOTH || what == PGRES_COPY_IN)
			PQputCopyEnd(conn, NULL);
		else if (what == PGRES_COPY_OUT)
		{
			char	   *data;

			while (PQgetCopyData(conn, &data, 0) > 0)
				PQfreemem(data);
		}
		else if (what == PGRES_COMMAND_OK)
			say("end %s", PQcmdStatus(result));
		else
		{
			const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);

			say("error %s %s", PQresultErrorField(result, PG_DIAG_SQLSTATE),
				PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
			if (hint)
				say("hint %s", hint);
			status = 1;
		}
		PQclear(result);
		if (PQstatus(conn) == CONNECTION_BAD)
			break;
	}
	return status;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{"acks", no_argument, NULL, 'a'},
		{"slow", required_argument, NULL, 's'},
		{"until", required_argument, NULL, 'u'},
		{"extended", no_argument, NULL, 'e'},
		{"then", required_argument, NULL, 't'},
		{0}
	};
	int			option;
	int			slow = 0;
	bool		extended = false;
	const char *then = NULL;
	char	   *data;
	int			size = 0;
	PGresult   *result;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
	{
		if (option == 'a')
			acks = true;
		else if (option == 's')
			slow = atoi(optarg);
		else if (option == 'u')
			until = optarg;
		else if (option == 'e')
			extended = true;
		else if (option == 't')
			then = optarg;
		else
			return 2;
	}
	if (argc - optind != 2)
		return 2;
	sluice_buffer_init(&stream, &sluice_malloc_allocator);
	conn = PQconnectdb(argv[optind]);
	if (PQstatus(conn) != CONNECTION_OK)
	{
		fprintf(stderr, "%s", PQerrorMessage(conn));
		return 2;
	}
	result = extended ? PQexecParams(conn, argv[optind + 1], 0, NULL, NULL, NULL, NULL, 0) :
		PQexec(conn, argv[optind + 1]);
	if (PQresultStatus(result) != PGRES_COPY_BOTH)
	{
		say("error %s %s", PQresultErrorField(result, PG_DIAG_SQLSTATE), PQresultErrorMessage(result));
		return 1;
	}
	PQclear(result);
	while (!found && (size = PQgetCopyData(conn, &data, 0)) > 0)
	{
		message(data, size);
		PQfreemem(data);
		if (slow)
			poll(NULL, 0, slow);
	}
	if (found)
	{
		PQputCopyEnd(conn, NULL);
		while ((size = PQgetCopyData(conn, &data, 0)) > 0)
			PQfreemem(data);
	}
	option = finish();
	if (then != NULL && PQstatus(conn) == CONNECTION_OK)
	{
		until = NULL;
		result = PQexec(conn, then);
		say("then %s", PQresultStatus(result) == PGRES_TUPLES_OK ? PQgetvalue(result, 0, 0) :
			PQresultErrorMessage(result));
		PQclear(result);
	}
	PQfinish(conn);
	return option;
}
