// Asks a server as users of the driver for JavaScript do. Arguments: URL, token. The graph `g` has people; `new` begins empty.
'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { driver, process: gremlin, structure } = require('gremlin');

const [ADDRESS, TOKEN] = process.argv.slice(1);
const { statics: __, t: T } = gremlin;
const { Client, DriverRemoteConnection, auth } = driver;
const ENDLESS = 'g.inject(1).repeat(__.identity()).times(1000000000)';
const MANY = Array.from({ length: 5000 }, (_, number) => number);

// Settings of a client.
function settings(mimeType, traversalSource, password = TOKEN) {
  return { mimeType, traversalSource, authenticator: new auth.PlainTextSaslAuthenticator('ann', password) };
}

// Whether a call fails with this status, exception and message.
async function fails(status, exception, words, call) {
  const error = await call().then(() => assert.fail(`no failure, and not ${status}`), (error) => error);
  assert.equal(error.statusCode, status, error.stack);
  assert.ok(error.statusMessage.includes(words), error.statusMessage);
  const attributes = error.statusAttributes;
  const exceptions = attributes instanceof Map ? attributes.get('exceptions') : attributes.exceptions;
  assert.deepEqual(exceptions, [`hoplake.${exception}Exception`]);
}

// The only result.
async function one(traversal) {
  const [result, ...more] = await traversal.toList();
  assert.deepEqual(more, []);
  return result;
}

// Properties of an element by their names.
function values(element) {
  return Object.fromEntries(element.properties.map((property) => [property.key, property.value]));
}

async function reads(mimeType) {
  const connection = new DriverRemoteConnection(ADDRESS, settings(mimeType));
  const g = gremlin.traversal().with_(connection);
  assert.equal(await one(g.V().hasLabel('Person').count()), 256);
  assert.equal(await one(g.V('Person:1').values('name')), 'P, 1');
  assert.deepEqual(await g.V().hasLabel('Nobody').toList(), []);
  assert.deepEqual(await g.inject(...MANY).toList(), MANY);
  assert.deepEqual(await g.inject('a', 'a', 'b').toList(), ['a', 'a', 'b']);
  for (const value of [null, true, 7, -(2 ** 40), 1.5, NaN, -Infinity, 'ä€😀', new Date(86_400_001), [1, [2]]]) {
    assert.deepEqual(await one(g.inject(value)), value);
  }
  await connection.close();

  const client = new Client(ADDRESS, settings(mimeType, 'g'));
  const people = await client.submit('g.V().hasLabel(kind).count()', { kind: 'Person' });
  assert.deepEqual(people.toArray(), [256]);
  const batches = [];
  for await (const batch of client.stream('g.inject(numbers).unfold()', { numbers: MANY }, { batchSize: 100 })) {
    batches.push(batch.toArray());
  }
  assert.deepEqual(batches.map((batch) => batch.length), Array(50).fill(100));
  assert.deepEqual(batches.flat(), MANY);
  await client.close();
}

async function writes(name, mimeType) {
  const connection = new DriverRemoteConnection(ADDRESS, settings(mimeType, 'new'));
  const g = gremlin.traversal().with_(connection);

  // Each a request, and a commit.
  const ann = await one(g.addV('person').property('name', name).property('age', 30).property('size', 1.5));
  const friend = g.V(ann.id).as('ann').addV('person').property('name', `${name} 2`);
  const knows = await one(friend.addE('knows').from_('ann').property('since', 2020));
  const bo = knows.inV;

  assert.ok(ann instanceof structure.Vertex);
  assert.deepEqual([ann.label, values(ann)], ['person', { name, age: 30, size: 1.5 }]);
  assert.ok(knows instanceof structure.Edge);
  assert.deepEqual([knows.label, knows.outV.id, values(knows)], ['knows', ann.id, { since: 2020 }]);
  assert.deepEqual(values(await one(g.with_('materializeProperties', 'tokens').V(ann.id))), {});

  const path = await one(g.V(ann.id).as('a').out('knows').as('b').path().by('name'));
  assert.ok(path instanceof structure.Path);
  assert.deepEqual(path.objects, [name, `${name} 2`]);
  assert.deepEqual(path.labels.map((labels) => [...labels]), [['a'], ['b']]);
  const whole = await one(g.V(ann.id).outE('knows').inV().path());
  assert.deepEqual(whole.objects.map((object) => object.id), [ann.id, knows.id, bo.id]);

  const entries = (map) => Object.fromEntries(map instanceof Map ? map : Object.entries(map));
  const names = g.V(ann.id, bo.id).groupCount().by('name');
  assert.deepEqual(entries(await one(names)), { [name]: 1, [`${name} 2`]: 1 });
  assert.deepEqual(entries(await one(g.V(bo.id).valueMap())), { name: [`${name} 2`] });
  const tokens = entries(await one(g.V(bo.id).elementMap()));
  assert.deepEqual(Object.values(tokens), [bo.id, 'person', `${name} 2`]);
  await connection.close();
  return [ann, g];
}

async function transacts(name, mimeType) {
  const connection = new DriverRemoteConnection(ADDRESS, settings(mimeType, 'new'));
  const g = gremlin.traversal().with_(connection);
  const count = (g) => one(g.V().has('name', `${name} 3`).count());
  for (const end of ['rollback', 'commit']) {
    const transaction = g.tx();
    const within = transaction.begin();
    await within.addV('person').property('name', `${name} 3`).iterate();
    assert.deepEqual([await count(within), await count(g)], [1, 0]);
    await transaction[end]();
    assert.equal(await count(g), end === 'commit' ? 1 : 0);
  }

  const [first, second] = [g.tx(), g.tx()];
  for (const transaction of [first, second]) {
    await transaction.begin().V().has('name', `${name} 3`).property('age', 7).iterate();
  }
  await first.commit();
  await fails(500, 'Conflict', 'changed', () => second.commit());

  // A session of texts.
  const client = new Client(ADDRESS, { ...settings(mimeType, 'new'), session: `session of ${name}` });
  await client.submit('x', { x: 1 }).catch(() => {});
  await client.submit("g.addV('person').property('name', name)", { name: `${name} 4` });
  await client.submit('g.tx().commit()');
  await client.submit("g.addV('person').property('name', name)", { name: `${name} 4` });
  await client.close();
  assert.equal(await one(g.V().has('name', `${name} 4`).count()), 1);
  await connection.close();
}

async function errs(mimeType) {
  const connection = new DriverRemoteConnection(ADDRESS, settings(mimeType, 'new'));
  const g = gremlin.traversal().with_(connection);
  await fails(595, 'Fail', 'enough', () => g.inject(1).fail('enough').iterate());
  await fails(500, 'Query', 'sum', () => g.inject('a').sum().next());
  await fails(498, 'Step', '`program`', () => g.V().program('x').iterate());
  const endless = () => g.with_('evaluationTimeout', 50).inject(1).repeat(__.identity()).times(1e9);
  await fails(598, 'Timeout', 'time', () => endless().iterate());
  await connection.close();

  const client = new Client(ADDRESS, settings(mimeType, 'new'));
  await fails(597, 'Syntax', 'line 1, column 5', () => client.submit('g.V('));
  await fails(498, 'Step', '`foo`', () => client.submit('g.V().foo()'));
  await fails(500, 'Query', 'sum', () => client.submit("g.inject('a').sum()"));
  await fails(598, 'Timeout', 'time', () => client.submit(ENDLESS, {}, { evaluationTimeout: 50 }));
  // It is still there.
  assert.deepEqual((await client.submit('g.inject(1)')).toArray(), [1]);
  await client.close();

  const stranger = new Client(ADDRESS, settings(mimeType, 'new', 'wrong'));
  await fails(401, 'Unauthenticated', 'token', () => stranger.submit('g.V()'));
  await stranger.close();
  const lost = new Client(ADDRESS, settings(mimeType, 'nothing'));
  await fails(499, 'NotFound', '"nothing"', () => lost.submit('g.V()'));
  await lost.close();
}

// A query whose client closes its connection: the test looks whether it ends.
async function leaves() {
  const client = new Client(ADDRESS, settings(undefined, 'new'));
  console.log('ready');
  await once(process.stdin, 'data');
  const answer = client.submit(ENDLESS).then(() => assert.fail('an answer'), (error) => error);
  await once(process.stdin, 'data');
  await client.close();
  assert.equal((await answer).message, 'Connection has been closed.');
  await once(process.stdin, 'end');
}

async function main() {
  for (const [name, mimeType] of [
    ['binary', 'application/vnd.graphbinary-v1.0'],
    ['json', 'application/vnd.gremlin-v3.0+json'],
    ['old json', 'application/vnd.gremlin-v2.0+json'],
  ]) {
    await reads(mimeType);
    await writes(name, mimeType);
    await transacts(name, mimeType);
    await errs(mimeType);
  }
  await leaves();
}

main().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
