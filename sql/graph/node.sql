CREATE TABLE IF NOT EXISTS {{node}} (
  id {{key}} PRIMARY KEY,
  cluster bigint NOT NULL,
  local {{key}}[] NOT NULL
)
