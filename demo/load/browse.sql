\set customer random(1, 10000)
\set product random(1, 3000)
INSERT INTO page_views (customer_id, path, address, milliseconds) VALUES (:customer, '/product/' || :product, '10.1.2.3', random() * 300);
