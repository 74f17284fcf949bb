"""Answers SQL: a JSON text on each line of the input, a JSON list of rows or an object with an error on each line of the output."""

import json
import sys

import duckdb

connection = duckdb.connect()
print(json.dumps(duckdb.__version__), flush=True)
for line in sys.stdin:
    try:
        answer = connection.execute(json.loads(line)).fetchall()
    except Exception as error:
        answer = {"error": str(error)}
    print(json.dumps(answer), flush=True)
