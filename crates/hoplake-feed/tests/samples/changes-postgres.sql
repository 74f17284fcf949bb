-- What happened while the producer of the sample of PostgreSQL followed.
INSERT INTO kinds VALUES (
  3, 32767, 2147483647, 9223372036854775807, false, 0.0001, 'NaN', 'NaN', 'Infinity', '-0.01',
  '0001-01-01', '1000-01-01 00:00:00', '1969-12-31 23:59:59.999', '9999-12-31 23:59:59.999999', '1969-12-31 23:59:59+00',
  '9999-12-31 23:59:59.999999+00', '00:00:00', '24:00:00', '00:00:00.000001', '00:00:00-12', '-1 mons -00:00:00.000001',
  'red', B'0', B'00000000', B'', '', '', '', '', 'null', 'null', '00000000-0000-0000-0000-000000000000', '::1/64',
  '::/0', '00:00:00:00:00:00', 'empty', '(,)', 2147483647, '{}', '{}', '{}', '{}', '{}'
);
INSERT INTO kinds (id, price, any_price, single, twice) VALUES (4, 1, 1e20, -3.4e38, 1e-300);
INSERT INTO kinds (id, day, at_6, stamp_6) VALUES (5, 'infinity', '-infinity', 'infinity');
INSERT INTO kinds (id, day, at_6, stamp_6) VALUES (6, '0044-03-15 BC', '0044-03-15 12:00:00 BC', '0044-03-15 12:00:00+00 BC');
UPDATE kinds SET
  small = 1, whole = 2, big = 3, flag = true, price = 4.1, any_price = 5.10, single = 0.1, twice = 123456789.123456789, cash = 6, day = '2000-01-01',
  at_0 = '2000-01-01 01:02:03', at_3 = '2000-01-01 01:02:03.4', at_6 = '2000-01-01 01:02:03.000004', stamp_0 = '2000-01-01 01:02:03+00',
  stamp_6 = '2000-01-01 01:02:03.4+00', time_0 = '01:02:03', time_3 = '01:02:03.4', time_6 = '01:02:03.000004', time_z = '01:02:03+00',
  span = '1 day', shade = 'blue', bit_1 = B'1', bit_8 = B'00000101', bits = B'1', bytes = '\x00', letters = 'abcde', name = 'é',
  note = 'plain', doc = '[]', docb = '[]', numbers = '{7}', names = '{b}'
  WHERE id = 2;
UPDATE kinds SET note = NULL WHERE id = 1;
DELETE FROM kinds WHERE id = 3;
-- A transaction of many rows and several tables.
BEGIN;
INSERT INTO person VALUES (3, 'Cid', 1), (9223372036854775807, 'Max', 3);
INSERT INTO member VALUES (3, 'rd', '2022-07-01'), (9223372036854775807, 'rd', '2022-07-02');
UPDATE person SET boss = 3 WHERE id = 2;
UPDATE person SET name = name || '!';
DELETE FROM member WHERE person = 2;
COMMIT;
BEGIN;
INSERT INTO person VALUES (4, 'Nobody', NULL);
ROLLBACK;
-- What is undone within a transaction is not logged.
BEGIN;
INSERT INTO person VALUES (5, 'Eve', NULL);
SAVEPOINT s;
INSERT INTO person VALUES (6, 'Nobody', NULL);
ROLLBACK TO SAVEPOINT s;
COMMIT;
-- Changed primary keys, of one column and of two.
UPDATE visit SET id = 100 WHERE id = 1;
UPDATE member SET team = 'lab' WHERE person = 3;
UPDATE letter SET read = true WHERE id = 1;
UPDATE letter SET id = 2 WHERE id = 1;
INSERT INTO visit (id, place) VALUES (2, 'Rom'), (3, 'Ulm');
UPDATE visit SET place = 'Roma' WHERE id = 2;
TRUNCATE visit;
INSERT INTO visit VALUES (4, 'Oslo');
-- A rule of a foreign key, whose effects are in the log.
DELETE FROM person WHERE id = 1;
ALTER TABLE visit ADD COLUMN stars int;
INSERT INTO visit VALUES (5, 'Kyiv', 5);
