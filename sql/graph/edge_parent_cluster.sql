CREATE INDEX IF NOT EXISTS {{edge_parent_cluster_index}} ON {{edge}} (parent_cluster)
