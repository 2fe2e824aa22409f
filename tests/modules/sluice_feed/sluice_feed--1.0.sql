-- makes a shard that no decoder and no launcher serves, and starts its storer
CREATE FUNCTION feed_create(shard text) RETURNS void LANGUAGE C STRICT AS 'MODULE_PATHNAME';
CREATE FUNCTION feed_drop(shard text) RETURNS void LANGUAGE C STRICT AS 'MODULE_PATHNAME';
-- after a restart of the server, or of the storer: pid of the storer, once it runs
CREATE FUNCTION feed_storer(shard text) RETURNS int LANGUAGE C STRICT AS 'MODULE_PATHNAME';
-- begins a generation behind the stored head; returns that
CREATE FUNCTION feed_start(shard text) RETURNS int8 LANGUAGE C STRICT AS 'MODULE_PATHNAME';
-- transactions first, first + 10, …; each of so many rows (random up to it if
-- negative) with a text of so many bytes; every rollback-th is rolled back
CREATE FUNCTION feed(shard text, first int8, transactions int, change_rows int, bytes int,
	rollback_each int DEFAULT 0, skip_ack bool DEFAULT false)
RETURNS int8 LANGUAGE C STRICT AS 'MODULE_PATHNAME';
-- a transaction without an end
CREATE FUNCTION feed_open(shard text, major int8, change_rows int, bytes int)
RETURNS void LANGUAGE C STRICT AS 'MODULE_PATHNAME';
-- waits until it is stored; false after 60 s
CREATE FUNCTION feed_stored(shard text, major int8) RETURNS bool LANGUAGE C STRICT AS 'MODULE_PATHNAME';
CREATE FUNCTION feed_set_low(shard text, major int8) RETURNS void LANGUAGE C STRICT AS 'MODULE_PATHNAME';
CREATE FUNCTION feed_save_replica(shard text, name text, durable int8) RETURNS void LANGUAGE C STRICT AS 'MODULE_PATHNAME';
CREATE FUNCTION feed_set_retention(shard text, ms int8, bytes int8) RETURNS void LANGUAGE C STRICT AS 'MODULE_PATHNAME';
-- reads the log as a sender does, in transactions of its own pieces
CREATE FUNCTION feed_read(shard text, after int8, max_bytes int, OUT transactions int8, OUT bytes int8,
	OUT slices int8, OUT last int8) LANGUAGE C STRICT AS 'MODULE_PATHNAME';
CREATE FUNCTION feed_set_slot(shard text, slot text) RETURNS void LANGUAGE C STRICT AS 'MODULE_PATHNAME';
-- the stream's entry: stored and first as text, the stored transaction's end, state and message
CREATE FUNCTION feed_entry(shard text, OUT stored text, OUT first text, OUT stored_end int8, OUT state text,
	OUT message text) LANGUAGE C STRICT AS 'MODULE_PATHNAME';
-- a replica that needs everything from the first position on
CREATE FUNCTION feed_hold(shard text) RETURNS void LANGUAGE C STRICT AS 'MODULE_PATHNAME';
