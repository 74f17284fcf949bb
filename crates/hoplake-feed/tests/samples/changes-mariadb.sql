-- What happened while the producers of the samples of MariaDB followed.
INSERT INTO kinds VALUES (
  3, 127, 0, FALSE, 32767, 0, 8388607, 0, 2147483647, 0, 9223372036854775807, 9223372036854775808,
  0.0001, 0, -3.4e38, 1e-300, '1969-12-31', '1000-01-01 00:00:00', '1969-12-31 23:59:59.999',
  '9999-12-31 23:59:59.999999', '1970-01-01 00:00:01', '2038-01-19 03:14:07.999999', '-838:59:59', '-00:00:00.001',
  '838:59:59.999999', 1901, 'red', '', b'0', b'0', b'0',
  '', '', '', '', '', '', '', 'null'
);
-- Dates of no calendar need a server that lets them pass.
SET @mode = @@sql_mode, sql_mode = '';
INSERT INTO kinds (id, day, at_0, at_6, stamp_0, built, colour) VALUES (4, '0000-00-00', '0000-00-00 00:00:00', '2024-00-10 00:00:00', 0, 0, 'pink');
SET sql_mode = @mode;
UPDATE kinds SET
  tiny = 1, tiny_u = 2, flag = TRUE, small = 3, small_u = 4, medium = -1, medium_u = 6, whole = 7, whole_u = 8, big = 9, big_u = 10,
  price = 11.1000, count_0 = -12, single = 0.1, twice = 123456789.123456789, day = '2000-01-01', at_0 = '2000-01-01 01:02:03',
  at_3 = '2000-01-01 01:02:03.4', at_6 = '2000-01-01 01:02:03.000004', stamp_0 = '2000-01-01 01:02:03', stamp_6 = '2000-01-01 01:02:03.4',
  time_0 = '01:02:03', time_3 = '01:02:03.4', time_6 = '-100:02:03.000004', built = 2000, colour = 'blue', tags = 'y', bit_1 = b'1',
  bit_10 = b'101', bit_64 = b'11111111', code = x'010203040506', bytes = x'00', picture = x'00', letters = 'abcde', name = 'é',
  west = 'ÿ', note = 'plain', doc = '[]'
  WHERE id = 2;
UPDATE kinds SET note = NULL WHERE id = 1;
DELETE FROM kinds WHERE id = 3;
-- A transaction of many rows and several tables.
START TRANSACTION;
INSERT INTO person VALUES (3, 'Cid', 1), (18446744073709551615, 'Max', 3);
INSERT INTO member VALUES (3, 'rd', '2022-07-01'), (18446744073709551615, 'rd', '2022-07-02');
UPDATE person SET boss = 3 WHERE id = 2;
UPDATE person SET name = CONCAT(name, '!');
DELETE FROM member WHERE person = 2;
COMMIT;
START TRANSACTION;
INSERT INTO person VALUES (4, 'Nobody', NULL);
ROLLBACK;
-- Changed primary keys, of one column and of two.
UPDATE visit SET id = 100 WHERE id = 1;
UPDATE member SET team = 'lab' WHERE person = 3;
INSERT INTO visit (id, place) VALUES (2, 'Rom'), (3, 'Ulm');
TRUNCATE TABLE visit;
INSERT INTO visit VALUES (4, 'Oslo');
-- A rule of a foreign key, whose effects are not in the log.
DELETE FROM person WHERE id = 1;
ALTER TABLE visit ADD COLUMN stars INT;
INSERT INTO visit VALUES (5, 'Kyiv', 5);
