CREATE TABLE IF NOT EXISTS {{edge}} (
  child bigint,
  parent {{key}},
  parent_cluster bigint NOT NULL,
  PRIMARY KEY (child, parent)
)
