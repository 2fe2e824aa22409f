\set order_id random(1, 15000)
DELETE FROM orders WHERE id = :order_id;
