CREATE INDEX IF NOT EXISTS {{node_cluster_index}} ON {{node}} (cluster)
