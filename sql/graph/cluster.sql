-- fillfactor: every create counts itself in its cluster's row; room on the page keeps that a HOT update.
CREATE TABLE IF NOT EXISTS {{cluster}} (
  id bigint PRIMARY KEY,
  size integer NOT NULL,
  above {{key}}[] NOT NULL
) WITH (fillfactor = 90)
