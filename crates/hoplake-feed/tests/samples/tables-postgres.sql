-- The tables of the samples of PostgreSQL, and the rows that were there before a producer began.
CREATE TYPE colour AS ENUM ('red', 'blue', 'grün');
CREATE TYPE point_2d AS (x int, y float8);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TABLE kinds (
  id int PRIMARY KEY,
  small int2, whole int4, big int8, flag bool, price numeric(20, 4), any_price numeric, single float4, twice float8, cash money,
  day date, at_0 timestamp(0), at_3 timestamp(3), at_6 timestamp, stamp_0 timestamptz(0), stamp_6 timestamptz,
  time_0 time(0), time_3 time(3), time_6 time, time_z timetz, span interval,
  shade colour, bit_1 bit(1), bit_8 bit(8), bits varbit, bytes bytea,
  letters char(5), name varchar(40), note text, doc json, docb jsonb, ident uuid, address inet, net cidr, mac macaddr,
  range_i int4range, place point_2d, at_least positive,
  numbers int[], names text[], days date[], prices numeric(10, 2)[], stamps timestamptz[]
);
CREATE TABLE person (id bigint PRIMARY KEY, name varchar(40) NOT NULL, boss bigint REFERENCES person ON DELETE SET NULL);
CREATE TABLE member (
  person bigint REFERENCES person ON DELETE CASCADE, team varchar(4), since date, PRIMARY KEY (team, person)
);
CREATE TABLE visit (id int PRIMARY KEY, place varchar(20));
ALTER TABLE visit REPLICA IDENTITY FULL;
-- A long value is stored apart, and not logged when it does not change.
CREATE TABLE letter (id int PRIMARY KEY, read bool, body text);
ALTER TABLE letter ALTER COLUMN body SET STORAGE EXTERNAL;

INSERT INTO person VALUES (1, 'Ann', NULL), (2, 'Bob', 1);
INSERT INTO member VALUES (1, 'ops', '2020-03-01'), (2, 'ops', NULL);
INSERT INTO visit VALUES (1, 'Bern');
INSERT INTO letter VALUES (1, false, repeat('long ', 450));
INSERT INTO kinds VALUES (
  1, -32768, -2147483648, -9223372036854775808, true, -1234567890123456.7891, 12345678901234567890.123456789, 1.5, 0.1, '12.34',
  '2024-02-29', '2024-02-29 23:59:59', '2024-02-29 23:59:59.123', '2024-02-29 23:59:59.123456', '2024-02-29 23:59:59+00',
  '2024-02-29 23:59:59.123456+02', '12:59:07', '12:59:07.5', '23:59:59.999999', '12:59:07.5+02', '1 year 2 mons 3 days 04:05:06.5',
  'grün', B'1', B'10000001', B'101', '\x89504e470d0a1a0a00', 'ab', 'snow ☃ and 🦀', E'two\nlines, "quoted", \\ and \t a tab',
  '{"a": [1, 2.50, null], "ü": "é"}', '{"a": [1, 2.50, null], "ü": "é"}', '00112233-4455-6677-8899-aabbccddeeff', '192.168.0.1',
  '10.0.0.0/8', '08:00:2b:01:02:03', '[1,10)', '(1,2.5)', 1, '{1,NULL,3}', '{a,"b, c",NULL,"ü"}', '{2024-02-29}', '{1.10,-2.00}',
  '{2024-02-29 23:59:59.123456+00}'
);
INSERT INTO kinds (id) VALUES (2);
