-- A database that is not UTF8: what a replica gets is.
\set QUIET on
\pset fieldsep '\n'
SET client_min_messages = warning;
SELECT current_database() AS home \gset
DROP DATABASE IF EXISTS encode_latin1;
CREATE DATABASE encode_latin1 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
\connect encode_latin1
SET client_encoding = 'UTF8';
SET client_min_messages = warning;
CREATE EXTENSION pgtap;
\ir ../modules/encode/functions.sql
SELECT no_plan();
-- the module's text holds the bytes as they are: in LATIN1 a character each
CREATE FUNCTION bytes(v text) RETURNS text LANGUAGE sql AS $$ SELECT convert_from(convert_to(v, 'LATIN1'), 'UTF8') $$;
CREATE TYPE "münz" AS ENUM ('é');
CREATE TABLE "täble" ("naïve" text PRIMARY KEY, "größe" "münz" DEFAULT 'é');
CREATE PUBLICATION p FOR ALL TABLES;
SELECT is(bytes(enc('Größe é'::text)), 'TEXT Größe é', 'text'), is(bytes(enc('é'::"münz")), 'TEXT é', 'enum'),
	is(bytes(enc(ARRAY['é', 'ü'])), 'TEXT ["é","ü"]', 'array'), is(bytes(enc('{"é":1}'::jsonb)), 'TEXT {"é": 1}', 'jsonb'),
	is(bytes(enc(ROW('é')::record)), 'TEXT (é)', 'output function'), is(bytes(enc('é'::name)), 'TEXT é', 'name'),
	is(enc(repeat('é', 100000)), 'TEXT ' || repeat(convert_from(convert_to('é', 'UTF8'), 'LATIN1'), 100000), 'a large one'),
	is(bytes(encode_schema('{p}')), $$public.täble identity d key naïve
  1 naïve text t not_null
  2 größe münz t enum default 'é'::"münz"
  index täble_pkey (naïve) unique primary identity
$$, 'names');
SELECT * FROM finish();
\connect :home
DROP DATABASE encode_latin1;
