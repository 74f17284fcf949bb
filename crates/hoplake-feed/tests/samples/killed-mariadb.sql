-- What debezium-mariadb-killed.jsonl is about: the engine was killed within the transaction, and started again.
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20));
CREATE TABLE u (id INT PRIMARY KEY);
START TRANSACTION;
INSERT INTO u VALUES (1);
INSERT INTO t SELECT seq, 'v' FROM seq_1_to_40;
UPDATE t SET v = 'w' WHERE id <= 5;
COMMIT;
INSERT INTO u VALUES (2);
