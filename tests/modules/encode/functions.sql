-- The encoder's test module as SQL functions, in schema public.
CREATE FUNCTION encode_value(v anyelement, timestamps_text bool DEFAULT false,
	numerics_double bool DEFAULT false, OUT class text, OUT value text)
	AS '$libdir/sluice_encode_test' LANGUAGE C STRICT;
CREATE FUNCTION encode_storage(regtype) RETURNS "char"
	AS '$libdir/sluice_encode_test' LANGUAGE C STRICT;
CREATE FUNCTION encode_schema(publications text[], numerics_double bool DEFAULT false) RETURNS text
	AS '$libdir/sluice_encode_test' LANGUAGE C STRICT;
CREATE FUNCTION encode_table(regclass, publications text[]) RETURNS text
	AS '$libdir/sluice_encode_test' LANGUAGE C STRICT;
CREATE FUNCTION encode_publish_as(regclass, publications text[]) RETURNS regclass
	AS '$libdir/sluice_encode_test' LANGUAGE C STRICT;
CREATE FUNCTION encode_scan(regclass, publications text[], OUT rows int8, OUT bytes int8,
	OUT ms float8, OUT memory int8)
	AS '$libdir/sluice_encode_test' LANGUAGE C STRICT;
-- class and value in one text, for comparisons
CREATE FUNCTION enc(v anyelement, timestamps_text bool DEFAULT false,
	numerics_double bool DEFAULT false) RETURNS text LANGUAGE sql STRICT AS
	$$ SELECT class || ' ' || coalesce(value, '') FROM public.encode_value(v, timestamps_text, numerics_double) $$;
