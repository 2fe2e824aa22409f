\set customer random(1, 10000)
\set first random(1, 3000)
\set second random(1, 3000)
\set quantity random(1, 5)
BEGIN;
INSERT INTO orders (customer_id) VALUES (:customer) RETURNING id AS order_id \gset
INSERT INTO order_lines SELECT :order_id, 1, sku, :quantity, price FROM products WHERE sku = 'SKU-' || lpad(:first::text, 6, '0');
INSERT INTO order_lines SELECT :order_id, 2, sku, 1, price FROM products WHERE sku = 'SKU-' || lpad(:second::text, 6, '0');
UPDATE stock SET on_hand = on_hand - :quantity, counted_at = localtimestamp WHERE sku = 'SKU-' || lpad(:first::text, 6, '0');
UPDATE orders SET total = (SELECT sum(quantity * price) FROM order_lines WHERE order_id = :order_id), status = 'paid' WHERE id = :order_id;
INSERT INTO payments (order_id, amount, details) SELECT id, total, '{"method": "card"}' FROM orders WHERE id = :order_id;
COMMIT;
