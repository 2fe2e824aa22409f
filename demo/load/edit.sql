\set product random(1, 3000)
\set customer random(1, 10000)
UPDATE products SET price = price + 0.01, attributes = attributes || '{"edited": true}' WHERE sku = 'SKU-' || lpad(:product::text, 6, '0');
UPDATE customers SET newsletter = NOT newsletter, tags = array_append(tags[1:3], 'seen') WHERE id = :customer;
