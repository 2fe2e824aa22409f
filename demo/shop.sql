-- A small shop: what a web application keeps in its database. 100,000 rows.

CREATE TYPE order_status AS ENUM ('open', 'paid', 'shipped', 'returned');
CREATE DOMAIN country AS char(2) CHECK (VALUE ~ '^[A-Z]{2}$');

CREATE TABLE customers (
	id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	email text NOT NULL UNIQUE,
	name varchar(80) NOT NULL,
	birthday date,
	newsletter bool NOT NULL DEFAULT false,
	tags text[] NOT NULL DEFAULT '{}',
	created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE addresses (
	customer_id int NOT NULL REFERENCES customers ON DELETE CASCADE,
	kind text NOT NULL CHECK (kind IN ('home', 'work')),
	street text NOT NULL,
	city text NOT NULL,
	country country NOT NULL,
	PRIMARY KEY (customer_id, kind)
);

CREATE TABLE products (
	sku varchar(20) PRIMARY KEY,
	title text NOT NULL,
	description text,
	price numeric(10, 2) NOT NULL,
	weight real,
	attributes jsonb NOT NULL DEFAULT '{}',
	picture bytea
);

CREATE TABLE stock (
	sku varchar(20) PRIMARY KEY REFERENCES products,
	on_hand int NOT NULL,
	counted_at timestamp NOT NULL DEFAULT localtimestamp
);

CREATE TABLE orders (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	customer_id int NOT NULL REFERENCES customers,
	status order_status NOT NULL DEFAULT 'open',
	total numeric(12, 2) NOT NULL DEFAULT 0,
	note text,
	placed_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON orders (customer_id, placed_at DESC);

CREATE TABLE order_lines (
	order_id bigint NOT NULL REFERENCES orders ON DELETE CASCADE,
	line smallint NOT NULL,
	sku varchar(20) NOT NULL REFERENCES products,
	quantity int NOT NULL,
	price numeric(10, 2) NOT NULL,
	PRIMARY KEY (order_id, line)
);

CREATE TABLE payments (
	id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
	order_id bigint NOT NULL REFERENCES orders ON DELETE CASCADE,
	amount numeric(12, 2) NOT NULL,
	details json,
	paid_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON payments (order_id);

CREATE TABLE page_views (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	customer_id int,
	path text NOT NULL,
	address inet,
	milliseconds double precision NOT NULL,
	seen_at timestamp NOT NULL DEFAULT localtimestamp
);

-- for the measurement: one row each time
CREATE TABLE heartbeats (
	id bigint PRIMARY KEY,
	sent_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

SELECT setseed(0.15);

INSERT INTO customers (email, name, birthday, newsletter, tags, created_at)
SELECT 'customer' || g || '@example.org',
	   (ARRAY['Ada', 'Grace', 'Edsger', 'Barbara', 'Donald', 'Frances', 'Zoë', 'Jürgen'])[1 + g % 8] || ' ' ||
	   (ARRAY['Smith', 'Müller', 'García', 'O''Neil', 'Nowak', 'Sørensen', '山田'])[1 + g % 7],
	   CASE WHEN g % 5 > 0 THEN date '1950-01-01' + (random() * 20000)::int END,
	   g % 3 = 0,
	   CASE g % 4 WHEN 0 THEN ARRAY['regular'] WHEN 1 THEN ARRAY['regular', 'big "spender"'] ELSE '{}' END,
	   now() - random() * interval '3 years'
FROM generate_series(1, 10000) g;

INSERT INTO addresses
SELECT id, kind, (1 + id % 200) || ' Main Street', 'City ' || id % 300, (ARRAY['DE', 'FR', 'US', 'JP'])[1 + id % 4]
FROM customers, (VALUES ('home'), ('work')) AS k(kind)
WHERE kind = 'home' OR id % 4 = 0;

INSERT INTO products
SELECT 'SKU-' || lpad(g::text, 6, '0'), 'Product no. ' || g,
	   CASE WHEN g % 10 = 0
			-- long and hard to compress: stored out of line
			THEN (SELECT string_agg(md5(random()::text || g || i), ' ') FROM generate_series(1, 120) i)
			ELSE 'A very good product.' END,
	   (1 + random() * 500)::numeric(10, 2), (random() * 20)::real,
	   jsonb_build_object('colour', (ARRAY['red', 'green', 'blue'])[1 + g % 3], 'size', g % 50, 'tags', ARRAY[g % 7, g % 11]),
	   CASE WHEN g % 20 = 0 THEN decode(md5(g::text), 'hex') END
FROM generate_series(1, 3000) g;

INSERT INTO stock (sku, on_hand) SELECT sku, (random() * 1000)::int FROM products;

INSERT INTO orders (customer_id, status, note, placed_at)
SELECT 1 + (random() * 9999)::int, (enum_range(NULL::order_status))[1 + (random() * 3)::int],
	   CASE WHEN g % 9 = 0 THEN 'Please ring' || E'\n' || 'twice.' END,
	   now() - random() * interval '2 years'
FROM generate_series(1, 15000) g;

INSERT INTO order_lines
SELECT o.id, l, 'SKU-' || lpad((1 + (random() * 2999)::int)::text, 6, '0'), 1 + (random() * 4)::int,
	   (1 + random() * 500)::numeric(10, 2)
FROM orders o, generate_series(1, 3) l
WHERE l = 1 OR (o.id + l) % 2 = 0;

UPDATE orders SET total = t.total
FROM (SELECT order_id, sum(quantity * price) AS total FROM order_lines GROUP BY 1) t
WHERE t.order_id = orders.id;

INSERT INTO payments (order_id, amount, details, paid_at)
SELECT id, total, json_build_object('method', 'card', 'last4', lpad((id % 10000)::text, 4, '0')), placed_at + interval '1 minute'
FROM orders WHERE status <> 'open';

INSERT INTO page_views (customer_id, path, address, milliseconds, seen_at)
SELECT CASE WHEN g % 3 > 0 THEN 1 + g % 10000 END, '/product/' || g % 3000, ('10.0.' || g % 256 || '.7')::inet,
	   random() * 300, localtimestamp - random() * interval '1 day'
FROM generate_series(1, 16500) g;

VACUUM ANALYZE;
