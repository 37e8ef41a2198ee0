CREATE SEQUENCE IF NOT EXISTS {{cluster_id}} AS bigint
