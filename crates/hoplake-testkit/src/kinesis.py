"""moto's server, whose shards end as those of Kinesis: what was put into a shard before it was split stays there, nothing is put into it
afterwards, and its last records come without an iterator for more."""

import sys
from collections import OrderedDict

from moto.kinesis import models
from moto.server import main

stream, backend = models.Stream, models.KinesisBackend
shard_for_key, split_shard, get_records = stream.get_shard_for_key, stream.split_shard, backend.get_records


def open_shard_for_key(self, *key):
    shards = self.shards
    self.shards = {name: shard for name, shard in shards.items() if shard.is_open}
    try:
        return shard_for_key(self, *key)
    finally:
        self.shards = shards


def split_and_keep(self, name, *rest):
    shard = self.shards[name]
    records, shard.records = shard.records, OrderedDict()
    split_shard(self, name, *rest)
    shard.records = records


def get_records_to_the_end(self, stream_arn, shard_iterator, limit):
    following, records, behind = get_records(self, stream_arn, shard_iterator, limit)
    name, shard_id, read = models.decompose_shard_iterator(following)
    shard = self.describe_stream(stream_arn=stream_arn, stream_name=name).get_shard(shard_id)
    has_more = any(number > int(read) for number in shard.records)
    return (following if shard.is_open or has_more else None), records, behind


stream.get_shard_for_key, stream.split_shard, backend.get_records = open_shard_for_key, split_and_keep, get_records_to_the_end
main(sys.argv[1:])
