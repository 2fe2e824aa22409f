-- Who may do what: nothing for PUBLIC, sluice_replica streams, sluice_monitor
-- sees status, the rest is the owner's.
BEGIN;
SELECT plan(31);

SELECT has_role('sluice_replica');
SELECT has_role('sluice_monitor');
SELECT is((SELECT rolcanlogin OR rolsuper OR rolreplication FROM pg_roles WHERE rolname = 'sluice_replica'),
	false, 'sluice_replica has no powers of its own');
SELECT is((SELECT rolcanlogin OR rolsuper OR rolreplication FROM pg_roles WHERE rolname = 'sluice_monitor'),
	false, 'sluice_monitor has no powers of its own');

-- everything of the extension, whatever is added later
SELECT is_empty($$
	SELECT p.oid::regprocedure FROM pg_proc p
	WHERE p.pronamespace = 'sluice'::regnamespace AND has_function_privilege('public', p.oid, 'EXECUTE')
	$$, 'PUBLIC executes nothing');
SELECT is_empty($$
	SELECT c.oid::regclass FROM pg_class c
	WHERE c.relnamespace = 'sluice'::regnamespace
		AND has_table_privilege('public', c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
	$$, 'PUBLIC reads nothing');
SELECT is(has_schema_privilege('public', 'sluice', 'USAGE, CREATE'), false, 'PUBLIC has no way in');

SELECT set_eq($$
	SELECT p.proname::text FROM pg_proc p
	WHERE p.pronamespace = 'sluice'::regnamespace
		AND has_function_privilege('sluice_replica', p.oid, 'EXECUTE')
	$$, ARRAY['stream', 'copy', 'change_log'], 'what sluice_replica executes');
SELECT set_eq($$
	SELECT p.proname::text FROM pg_proc p
	WHERE p.pronamespace = 'sluice'::regnamespace
		AND has_function_privilege('sluice_monitor', p.oid, 'EXECUTE')
	$$, ARRAY['list_shards', 'get_shard_status', 'get_replica_status', 'replication_state',
		'replication_config'], 'what sluice_monitor executes');
SELECT set_eq($$
	SELECT c.relname::text FROM pg_class c
	WHERE c.relnamespace = 'sluice'::regnamespace AND has_table_privilege('sluice_monitor', c.oid, 'SELECT')
	$$, ARRAY['shards', 'shard_status', 'replica_status'], 'what sluice_monitor reads');
SELECT is(has_schema_privilege('sluice_replica', 'sluice', 'CREATE'), false, 'sluice_replica makes nothing');
SELECT is(has_schema_privilege('sluice_monitor', 'sluice', 'CREATE'), false, 'sluice_monitor makes nothing');

-- an entry point that commits must not become atomic
SELECT is_empty($$
	SELECT p.oid::regprocedure FROM pg_proc p
	WHERE p.pronamespace = 'sluice'::regnamespace AND p.prokind = 'p'
		AND (p.prosecdef OR p.proconfig IS NOT NULL)
	$$, 'procedures have neither SECURITY DEFINER nor SET');
SELECT is_empty($$
	SELECT p.oid::regprocedure FROM pg_proc p
	WHERE p.pronamespace = 'sluice'::regnamespace AND p.prosecdef
	$$, 'nothing is SECURITY DEFINER');
SELECT has_view('sluice', 'shards', 'view shards');
SELECT has_view('sluice', 'shard_status', 'view shard_status');
SELECT has_view('sluice', 'replica_status', 'view replica_status');
SELECT columns_are('sluice', 'shards', ARRAY['name', 'publications', 'slot', 'owner', 'owner_address',
	'state', 'replica_version', 'auto_reset', 'retention_time', 'retention_size', 'timestamps',
	'numerics', 'reset_required', 'reset_reason', 'paused']);
SELECT columns_are('sluice', 'shard_status', ARRAY['shard', 'slot', 'state', 'state_since', 'waits_for',
	'message', 'sqlstate', 'decoder_pid', 'storer_pid', 'replicas', 'first', 'head', 'stored', 'low',
	'flushed_lsn', 'decoded_lsn', 'confirmed_lsn', 'restart_lsn', 'decode_lag_bytes', 'decode_lag',
	'store_lag_bytes', 'store_lag', 'retained_bytes', 'last_commit_time', 'transactions', 'changes',
	'bytes', 'stored_transactions', 'stored_bytes', 'resets', 'reset_at', 'reset_reason']);
SELECT columns_are('sluice', 'replica_status', ARRAY['shard', 'replica', 'pid', 'state', 'mode', 'sent',
	'applied', 'durable', 'sent_lag_bytes', 'applied_lag_bytes', 'durable_lag_bytes', 'applied_lag',
	'bytes_sent', 'waits_for', 'connected_at', 'reply_time', 'seen_at']);

-- as a user with no role of ours; pgTAP itself must stay reachable
CREATE ROLE sluice_test_nobody;
SET LOCAL ROLE sluice_test_nobody;
SELECT throws_ok('SELECT * FROM sluice.shards', '42501');
SELECT throws_ok($$ SELECT sluice.set_option('s', 'auto_reset', 'off') $$, '42501');
RESET ROLE;

-- execution alone does not make an administrator
GRANT USAGE ON SCHEMA sluice TO sluice_test_nobody;
GRANT EXECUTE ON ALL ROUTINES IN SCHEMA sluice TO sluice_test_nobody;
SET LOCAL ROLE sluice_test_nobody;
SELECT throws_ok($$ SELECT sluice.set_option('s', 'auto_reset', 'off') $$, '42501',
	'permission denied to set an option of a shard');
SELECT throws_ok($$ CALL sluice.create_shard('s') $$, '42501', 'permission denied to create a shard');
SELECT throws_ok($$ CALL sluice.drop_shard('s') $$, '42501', 'permission denied to drop a shard');
RESET ROLE;

SET LOCAL ROLE sluice_monitor;
SELECT lives_ok('SELECT * FROM sluice.shards');
SELECT lives_ok('SELECT * FROM sluice.shard_status');
SELECT lives_ok('SELECT * FROM sluice.replica_status');
SELECT throws_ok($$ CALL sluice.create_shard('s') $$, '42501');
RESET ROLE;
SET LOCAL ROLE sluice_replica;
SELECT throws_ok('SELECT * FROM sluice.shard_status', '42501');
SELECT throws_ok($$ SELECT sluice.forget_replica('s', 'r') $$, '42501');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
